// The HDF5 library is not safe against damaged metadata, so a child process walks through it first. This protects from
// damage, not from a file made to take over the library: the child is no sandbox. Numbers are not read, only what leads
// to them.
#include "store/rehearsal.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

namespace noether::store {
namespace {

constexpr rlim_t kSeconds = 10;                                // of processor time: a loop in the library
constexpr std::uint64_t kAllowance = std::uint64_t{512} << 20; // bytes of memory beyond the file's own length

/// Private memory that the process has asked for, touched or not, in bytes.
std::uint64_t data_memory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

template <class Work> void ignore_errors(const Work& work) {
  try {
    work();
  } catch (const Error&) { // it is one in the other process too, where somebody listens
  }
}

/// Opens and reads each attribute of the object at `name`.
void walk_attributes(hid_t file, const char* name, std::uint64_t length) {
  H5Aiterate_by_name(
      file, name, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
      [](hid_t object, const char* attribute_name, const H5A_info_t*, void* data) -> herr_t {
        ignore_errors([&] {
          const Attribute attribute(H5Aopen(object, attribute_name, H5P_DEFAULT), "attribute");
          const DataType type(H5Aget_type(attribute), "attribute");
          const Space space(H5Aget_space(attribute), "attribute");
          const std::uint64_t count =
              static_cast<std::uint64_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space), 0));
          std::uint64_t bytes = 0;
          if (__builtin_mul_overflow(count, H5Tget_size(type), &bytes) || bytes > *static_cast<std::uint64_t*>(data))
            return;
          std::vector<std::byte> values(bytes);
          if (H5Aread(attribute, type, values.data()) >= 0) H5Dvlen_reclaim(type, space, H5P_DEFAULT, values.data());
        });
        return 0;
      },
      &length, H5P_DEFAULT);
}

void walk(const Image& image, const std::string& name) {
  const FileReader reader(std::make_unique<FileReader::State>(name, image));
  const hid_t file = reader.state().file;
  walk_attributes(file, "/", image.length);
  for (const std::string& path : reader.datasets()) {
    ignore_errors([&] { reader.info(path); });
    ignore_errors([&] { reader.text(path); });
    ignore_errors([&] {
      const Dataset dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT), path);
      const Space space(H5Dget_space(dataset), path);
      hsize_t chunks = 0;
      H5Dget_num_chunks(dataset, space, &chunks); // through the whole index
    });
    walk_attributes(file, path.c_str(), image.length);
  }
}

/// HDF5 calls this for each of its errors; notes whether memory was what it lacked.
herr_t note_lack_of_memory(hid_t stack, void* lacking) {
  H5Ewalk2(
      stack, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        if (error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC) *static_cast<bool*>(out) = true;
        return 0;
      },
      lacking);
  return 0;
}

/// What the child does; true when this process may do the same.
bool survives(const Image& image, const std::string& name) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(number, SIG_DFL);
  const rlimit none{0, 0}, seconds{kSeconds, kSeconds};
  const rlimit memory{data_memory() + kAllowance + image.length, RLIM_INFINITY};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_CPU, &seconds);
  ::setrlimit(RLIMIT_DATA, &memory);
  const int nowhere = ::open("/dev/null", O_WRONLY); // the C library's last words, when it finds its heap destroyed
  ::dup2(nowhere, STDERR_FILENO);
  bool lacking = false;
  H5Eset_auto2(H5E_DEFAULT, note_lack_of_memory, &lacking);
  try {
    ignore_errors([&] { walk(image, name); });
  } catch (...) { // too little memory; and nothing may leave the child by this way
    return false;
  }
  return !lacking;
}

} // namespace

void rehearse(const Image& image, const std::string& name) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(image.bytes());
  if (image.length > 8 && bytes[0] == 0x89 && bytes[8] == 2) return;
  hdf5_start();
  // Not the exit status: where SIGCHLD is ignored there is none.
  const Mapping shared(::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1);
  if (!shared) throw std::bad_alloc();
  const pid_t child = ::fork();
  if (child < 0) throw Error("{}: cannot start a process to try the file: {}", name, system_reason(errno));
  if (child == 0) {
    if (survives(image, name)) *shared.data() = std::byte{1};
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (*shared.data() != std::byte{1}) throw Error("{}: damaged HDF5 file: the HDF5 library fails over it", name);
}

} // namespace noether::store
