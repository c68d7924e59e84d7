// Reads HDF5 from memory. Sizes that a header claims are compared with the bytes at hand before anything is allocated;
// external links, external storage and virtual datasets are refused, so that a file only ever speaks for itself.
#include "store/reader.h"

#include "base/threads.h"
#include "base/version.h"
#include "store/image.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace noether::store {
namespace {

/// Deflate gives at most 1032 bytes for one; what claims more than this for each byte of its file is not believed.
constexpr std::uint64_t kLargestRatio = 1100;
/// Each thread copies so much at once from a file on disk.
constexpr std::uint64_t kStripe = std::uint64_t{4} << 20;
/// So many threads fill the memory bus or the disk; more would only be in other programs' way.
constexpr int kReaders = 4;

/// Lets HDF5 open memory that is already there, without the copies that it makes otherwise: every "allocation" is the
/// image.
H5File open_image(const Image& image, const std::string& name) {
  hdf5_start();
  const Properties access(H5Pcreate(H5P_FILE_ACCESS), name);
  hdf5_check(H5Pset_fapl_core(access, 1 << 16, false), name);
  hdf5_check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), name);
  H5FD_file_image_callbacks_t callbacks{
      [](std::size_t, H5FD_file_image_op_t, void* bytes) { return bytes; },
      [](void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) { return to; },
      [](void*, std::size_t, H5FD_file_image_op_t, void*) -> void* { return nullptr; },
      [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; },
      [](void* bytes) { return bytes; },
      [](void*) -> herr_t { return 0; },
      image.bytes()};
  hdf5_check(H5Pset_file_image_callbacks(access, &callbacks), name);
  hdf5_check(H5Pset_file_image(access, image.bytes(), image.length), name);
  // The name must be new to HDF5 and must not exist on disk; nothing can below /dev/null.
  static std::atomic<unsigned> counter{0};
  const std::string unique = fmt::format("/dev/null/{}", counter++);
  return H5File(H5Fopen(unique.c_str(), H5F_ACC_RDONLY, access), name + ": damaged HDF5 file");
}

std::string article(std::string_view kind) {
  return fmt::format("a {}{}", kind, kind == "tokens" || kind == "tensors" ? " file" : "");
}

/// An open dataset and what its header says, which need not be true.
struct Opened {
  Dataset dataset;
  DataType type;
  Shape shape;
  std::uint64_t count, bytes; ///< elements, and their size in the file's type
};

std::string where(const FileReader::State& state, const std::string& path) { return state.name + ": " + path; }

void refuse_unknown_filters(hid_t creation, const std::string& what) {
  const int filters = H5Pget_nfilters(creation);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, settings = 0;
    std::size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, &settings);
    if (filter < 0 || H5Zfilter_avail(filter) <= 0)
      throw Error("{} is compressed by filter {} ({}), which this HDF5 library does not have", what, filter,
                  name[0] == '\0' ? "without a name" : name);
  }
}

bool exists(hid_t file, const std::string& path) {
  if (path == "/") return true;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) break;
  }
  return H5Oexists_by_name(file, path.c_str(), H5P_DEFAULT) > 0;
}

std::string describe_found(const FileReader& reader, const std::string& path) {
  std::vector<std::string> found = reader.datasets();
  if (std::string near = did_you_mean(path, found); !near.empty()) return near;
  if (found.empty()) return " (it holds no datasets)";
  const bool all = found.size() <= 4;
  if (!all) found.resize(4);
  return fmt::format(" (found: {}{})", fmt::join(found, ", "), all ? "" : ", ...");
}

Opened open_dataset(const FileReader& reader, const FileReader::State& state, const std::string& path) {
  hdf5_start();
  const std::string what = where(state, path);
  if (!exists(state.file, path)) throw Error("{}: no dataset {}{}", state.name, path, describe_found(reader, path));
  H5O_info_t object;
  hdf5_check(H5Oget_info_by_name2(state.file, path.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT), what);
  if (object.type != H5O_TYPE_DATASET) throw Error("{} is not a dataset", what);
  Dataset dataset(H5Dopen2(state.file, path.c_str(), H5P_DEFAULT), what);
  DataType type(H5Dget_type(dataset), what);
  const Space space(H5Dget_space(dataset), what);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) throw Error("{}: {}", what, hdf5_reason());
  Shape shape(static_cast<std::size_t>(rank));
  if (rank > 0) {
    hsize_t lengths[H5S_MAX_RANK];
    H5Sget_simple_extent_dims(space, lengths, nullptr);
    std::copy_n(lengths, rank, shape.begin());
  }
  std::uint64_t count = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : 1, bytes = 0;
  const std::size_t element = H5Tget_size(type);
  bool fits = element > 0;
  // Zeros last, or the product of the others could still overflow unseen.
  for (const std::uint64_t length : shape)
    fits = fits && !__builtin_mul_overflow(count, std::max<std::uint64_t>(length, 1), &count);
  fits = fits && !__builtin_mul_overflow(count, element, &bytes);
  if (!fits) throw Error("{} claims the shape [{}], which is too large", what, fmt::join(shape, ", "));
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) count = bytes = 0;
  return {std::move(dataset), std::move(type), std::move(shape), count, bytes};
}

/// Call before reading: refuses what would take more memory than the file can stand for, or would read other files.
/// Returns where the data lies in the image when it is contiguous there, else nothing.
const std::byte* check_storage(const FileReader::State& state, const Opened& opened, const std::string& what) {
  const std::uint64_t length = state.image.length;
  const Properties creation(H5Dget_create_plist(opened.dataset), what);
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation) != 0)
    throw Error("{} has its data in other files, which are not followed", what);
  std::uint64_t claim = opened.bytes;
  if (layout == H5D_CHUNKED) {
    refuse_unknown_filters(creation, what);
    hsize_t chunk[H5S_MAX_RANK];
    const int rank = H5Pget_chunk(creation, H5S_MAX_RANK, chunk);
    std::uint64_t chunk_bytes = H5Tget_size(opened.type);
    for (int i = 0; i < rank; ++i)
      if (__builtin_mul_overflow(chunk_bytes, chunk[i], &chunk_bytes)) chunk_bytes = UINT64_MAX;
    claim = std::max(claim, chunk_bytes);
  }
  // What it takes in the file is a claim too: HDF5 allocates as much for compressed chunks before it looks, and copies
  // as much as the shape says from a compact dataset, however little there is.
  const hsize_t stored = H5Dget_storage_size(opened.dataset);
  if (stored > length) throw Error("{} claims {} bytes of the file, which has {}", what, stored, length);
  if (layout == H5D_COMPACT && stored < opened.bytes)
    throw Error("{} has {} bytes, but its shape stands for {}", what, stored, opened.bytes);
  if (claim / kLargestRatio > length) throw Error("{} claims {} bytes, in a file of {}", what, claim, length);
  if (layout != H5D_CONTIGUOUS || opened.bytes == 0) return nullptr;
  const haddr_t offset = H5Dget_offset(opened.dataset);
  if (offset == HADDR_UNDEF) return nullptr; // never written: HDF5 makes up the fill value
  if (offset > length || opened.bytes > length - offset)
    throw Error("{} has its {} bytes at {}, beyond the file's end at {}", what, opened.bytes, offset, length);
  return state.image.bytes() + offset;
}

std::optional<Type> our_type(hid_t type) {
  for (const Type ours : {Type::u8, Type::u16, Type::u32, Type::u64, Type::i64, Type::f32, Type::f64}) {
    if (H5Tequal(type, hdf5_type(ours)) > 0) return ours;
    const DataType other(H5Tcopy(hdf5_type(ours)), "type");
    hdf5_check(H5Tset_order(other, H5T_ORDER_BE), "type");
    if (H5Tequal(type, other) > 0) return ours;
  }
  return std::nullopt;
}

bool is_number(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

/// HDF5 would put the nearest value where one does not fit; here that is an error. Among floating-point types
/// infinities and NaN stay what they are, and an integer may be rounded to a floating-point number.
H5T_conv_ret_t refuse_misfits(H5T_conv_except_t what, hid_t from, hid_t to, void* value, void*, void*) {
  const bool out_of_range = what == H5T_CONV_EXCEPT_RANGE_HI || what == H5T_CONV_EXCEPT_RANGE_LOW;
  bool harmless = what == H5T_CONV_EXCEPT_PRECISION;
  if (H5Tget_class(to) == H5T_FLOAT && H5Tget_class(from) == H5T_FLOAT) {
    double number =
        0; // HDF5 counts infinities among what is out of range where the processor converts, as from double to float
    if (out_of_range && H5Tequal(from, H5T_NATIVE_DOUBLE) > 0) std::memcpy(&number, value, sizeof number);
    harmless = !out_of_range || std::isinf(number);
  }
  return harmless ? H5T_CONV_UNHANDLED : H5T_CONV_ABORT;
}

void read_converted(const Opened& opened, Type type, void* out, const std::string& what) {
  if (!is_number(opened.type)) throw Error("{} does not hold numbers", what);
  const Properties transfer(H5Pcreate(H5P_DATASET_XFER), what);
  hdf5_check(H5Pset_type_conv_cb(transfer, refuse_misfits, nullptr), what);
  if (opened.count > 0 && H5Dread(opened.dataset, hdf5_type(type), H5S_ALL, H5S_ALL, transfer, out) < 0)
    throw Error("{} cannot be read as {}: {}", what, name_of(type), hdf5_reason());
}

/// From the disk, as reading into memory is twice as fast as copying from a mapping that the kernel first has to fill
/// in.
void copy_out(const Image& image, const std::byte* data, void* out, std::uint64_t bytes, const std::string& what) {
  if (!image.file) {
    std::memcpy(out, data, bytes);
    return;
  }
  const auto start = static_cast<std::uint64_t>(data - image.mapping->data());
  const auto stripes = static_cast<std::int64_t>((bytes + kStripe - 1) / kStripe);
  parallel_for(stripes, std::min(usable_processors(), kReaders), [&](std::int64_t stripe) {
    std::uint64_t at = static_cast<std::uint64_t>(stripe) * kStripe;
    const std::uint64_t end = std::min(bytes, at + kStripe);
    while (at < end) {
      const ssize_t got =
          ::pread(*image.file, static_cast<std::byte*>(out) + at, end - at, static_cast<off_t>(start + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error("{}: {}", what, system_reason(errno));
      if (got == 0) throw Error("{}: the file became shorter while it was read", what);
      at += static_cast<std::uint64_t>(got);
    }
  });
}

/// Strings of fixed or variable length: `read` fills a buffer of the type it is given.
template <class Read>
std::vector<std::string> read_strings(hid_t file_type, std::uint64_t count, const std::string& what, const Read& read) {
  if (H5Tget_class(file_type) != H5T_STRING) throw Error("{} is not a string", what);
  std::vector<std::string> strings(count);
  const htri_t variable = H5Tis_variable_str(file_type);
  if (variable < 0) throw Error("{}: {}", what, hdf5_reason());
  if (count == 0) return strings;
  if (variable == 0) {
    const std::size_t size = H5Tget_size(file_type);
    std::string buffer(size * count, '\0');
    hdf5_check(read(file_type, buffer.data()), what);
    const H5T_str_t padding = H5Tget_strpad(file_type);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view padded(buffer.data() + i * size, size);
      if (padding == H5T_STR_NULLTERM)
        strings[i] = padded.substr(0, padded.find('\0'));
      else
        strings[i] = padded.substr(0, padded.find_last_not_of(padding == H5T_STR_SPACEPAD ? ' ' : '\0') + 1);
    }
    return strings;
  }
  std::vector<char*> pointers(count, nullptr);
  const herr_t status = read(file_type, pointers.data());
  for (std::uint64_t i = 0; i < count; ++i) {
    if (pointers[i] == nullptr) continue;
    strings[i] = pointers[i];
    H5free_memory(pointers[i]);
  }
  hdf5_check(status, what);
  return strings;
}

std::vector<std::string> read_strings(const FileReader::State& state, const Opened& opened, const std::string& what) {
  check_storage(state, opened, what);
  return read_strings(opened.type, opened.count, what, [&](hid_t type, void* out) {
    return H5Dread(opened.dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
  });
}

/// An attribute of one value, and its type.
struct OpenedAttribute {
  Attribute attribute;
  DataType type;
  std::string what;
};

bool attribute_exists(const FileReader::State& state, const std::string& path, const std::string& name) {
  hdf5_start();
  return exists(state.file, path) && H5Aexists_by_name(state.file, path.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

OpenedAttribute open_attribute(const FileReader::State& state, const std::string& path, const std::string& name) {
  if (!attribute_exists(state, path, name)) throw Error("{}: {} has no attribute {}", state.name, path, name);
  const std::string what = fmt::format("{}: attribute {} of {}", state.name, name, path);
  Attribute attribute(H5Aopen_by_name(state.file, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), what);
  DataType type(H5Aget_type(attribute), what);
  const Space space(H5Aget_space(attribute), what);
  if (H5Sget_simple_extent_npoints(space) != 1) throw Error("{} is not a single value", what);
  if (H5Tget_size(type) > state.image.length) throw Error("{} claims {} bytes", what, H5Tget_size(type));
  return {std::move(attribute), std::move(type), what};
}

std::int64_t read_integer(const OpenedAttribute& opened) {
  if (H5Tget_class(opened.type) != H5T_INTEGER) throw Error("{} is not an integer", opened.what);
  if (H5Tget_size(opened.type) > 8) throw Error("{} has more than 64 bits", opened.what);
  std::int64_t value = 0;
  hdf5_check(H5Aread(opened.attribute, H5T_NATIVE_INT64, &value), opened.what);
  std::uint64_t natural = 0;
  hdf5_check(H5Aread(opened.attribute, H5T_NATIVE_UINT64, &natural), opened.what);
  // Both conversions clip; they differ only for negative numbers, and for those beyond the range of int64.
  if (value >= 0 && natural != static_cast<std::uint64_t>(value))
    throw Error("{} is {}, too large", opened.what, natural);
  return value;
}

std::string read_string(const OpenedAttribute& opened) {
  return read_strings(opened.type, 1, opened.what,
                      [&](hid_t type, void* out) { return H5Aread(opened.attribute, type, out); })
      .front();
}

} // namespace

FileReader::State::State(std::string name_, Image image_)
    : name(std::move(name_)), image(std::move(image_)), file(open_image(image, name)) {
  if (attribute_exists(*this, "/", "noether_kind")) {
    kind = read_string(open_attribute(*this, "/", "noether_kind"));
    format = read_integer(open_attribute(*this, "/", "noether_format"));
  }
  if (attribute_exists(*this, "/", "noether_digest"))
    digest = read_string(open_attribute(*this, "/", "noether_digest"));
}

FileReader::FileReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileReader::FileReader(FileReader&&) noexcept = default;
FileReader& FileReader::operator=(FileReader&&) noexcept = default;
FileReader::~FileReader() = default;

const std::string& FileReader::name() const { return state_->name; }
const std::string& FileReader::kind() const { return state_->kind; }
const std::string& FileReader::digest() const { return state_->digest; }

void FileReader::expect(Kind kind) const {
  const std::string found = state_->kind.empty() ? "an HDF5 file that noether did not write" : article(state_->kind);
  if (state_->kind != kind.name) throw Error("{}: expected {}, found {}", state_->name, article(kind.name), found);
  if (state_->format > kind.format)
    throw Error("{}: format {} of {}, written by a newer noether; this is {}, which reads up to {}", state_->name,
                state_->format, kind.name, kVersion, kind.format);
  if (state_->format < 1)
    throw Error("{}: format {} of {}, expected 1 or more", state_->name, state_->format, kind.name);
}

std::vector<std::string> FileReader::texts(const std::string& path) const {
  return read_strings(*state_, open_dataset(*this, *state_, path), where(*state_, path));
}

std::vector<std::string> FileReader::provenance() const {
  if (!has("/provenance")) return {};
  return texts("/provenance");
}

bool FileReader::has(const std::string& path) const {
  hdf5_start();
  return exists(state_->file, path);
}

std::vector<std::string> FileReader::datasets(const std::string& group) const {
  hdf5_start();
  if (!exists(state_->file, group)) throw Error("{}: no group {}", state_->name, group);
  std::vector<std::string> found;
  const herr_t status = H5Lvisit_by_name(
      state_->file, group.c_str(), H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t base, const char* name, const H5L_info_t* link, void* out) -> herr_t {
        if (link->type != H5L_TYPE_HARD) return 0;
        H5O_info_t object;
        if (H5Oget_info_by_name2(base, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
        if (object.type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &found, H5P_DEFAULT);
  hdf5_check(status, where(*state_, group));
  const std::string prefix = group == "/" ? "/" : group + "/";
  for (std::string& name : found) name.insert(0, prefix);
  std::sort(found.begin(), found.end());
  return found;
}

ArrayInfo FileReader::info(const std::string& path) const {
  const Opened opened = open_dataset(*this, *state_, path);
  return {our_type(opened.type), opened.shape, opened.count};
}

bool FileReader::has_attribute(const std::string& path, const std::string& name) const {
  return attribute_exists(*state_, path, name);
}

std::int64_t FileReader::integer(const std::string& path, const std::string& name) const {
  return read_integer(open_attribute(*state_, path, name));
}

double FileReader::number(const std::string& path, const std::string& name) const {
  const OpenedAttribute opened = open_attribute(*state_, path, name);
  if (!is_number(opened.type)) throw Error("{} is not a number", opened.what);
  double value = 0;
  hdf5_check(H5Aread(opened.attribute, H5T_NATIVE_DOUBLE, &value), opened.what);
  return value;
}

std::string FileReader::string(const std::string& path, const std::string& name) const {
  return read_string(open_attribute(*state_, path, name));
}

std::string FileReader::text(const std::string& path) const {
  const Opened opened = open_dataset(*this, *state_, path);
  if (opened.count != 1) throw Error("{}: {} strings, expected one", where(*state_, path), opened.count);
  return read_strings(*state_, opened, where(*state_, path)).front();
}

void FileReader::read(const std::string& path, Type type, void* out, std::uint64_t count) const {
  const std::string what = where(*state_, path);
  const Opened opened = open_dataset(*this, *state_, path);
  if (opened.count != count)
    throw Error("{} has {} elements [{}], expected {}", what, opened.count, fmt::join(opened.shape, ", "), count);
  const std::byte* data = check_storage(*state_, opened, what);
  if (data != nullptr && H5Tequal(opened.type, hdf5_type(type)) > 0)
    return copy_out(state_->image, data, out, count * size_of(type), what);
  read_converted(opened, type, out, what);
}

std::uint64_t FileReader::checked_count(const std::string& path) const {
  const Opened opened = open_dataset(*this, *state_, path);
  check_storage(*state_, opened, where(*state_, path));
  return opened.count;
}

std::pair<const void*, std::uint64_t> FileReader::view_bytes(const std::string& path, Type type) const {
  const Opened opened = open_dataset(*this, *state_, path);
  const std::byte* data = check_storage(*state_, opened, where(*state_, path));
  const bool same = data != nullptr && H5Tequal(opened.type, hdf5_type(type)) > 0;
  if (same && reinterpret_cast<std::uintptr_t>(data) % size_of(type) == 0) return {data, opened.count};
  std::vector<std::byte>& values = state_->converted[{path, type}];
  if (values.empty()) {
    std::vector<std::byte> fresh(opened.count * size_of(type));
    if (same)
      std::memcpy(fresh.data(), data, fresh.size());
    else
      read_converted(opened, type, fresh.data(), where(*state_, path));
    values = std::move(fresh);
  }
  return {values.data(), opened.count};
}

} // namespace noether::store
