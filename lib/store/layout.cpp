// HDF5 lays a file out in a sparse memory file and writes the metadata and what is small; large arrays it only gives a
// place. Equal content gives equal bytes: no times are stored, gaps are holes and so read as zeros. Source of the
// format: HDF5 File Format Specification 3.0 (superblock 2, which every HDF5 since 1.8 reads).
#include "store/layout.h"

#include "store/hdf5.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace noether::store {
namespace {

/// Up to here HDF5 copies the data itself; sending many small pieces one by one costs more than copying them.
constexpr std::uint64_t kSmall = std::uint64_t{64} << 10;
/// A cache line: whatever vector instructions a reader uses on a mapped file, arrays are aligned for them.
constexpr hsize_t kAlignment = 64;

Properties without_times(hid_t property_class) {
  Properties properties(H5Pcreate(property_class), "properties");
  hdf5_check(H5Pset_obj_track_times(properties, false), "properties");
  return properties;
}

H5File create_file(int descriptor) {
  const Properties access(H5Pcreate(H5P_FILE_ACCESS), "properties");
  // Version 1.8's format: attributes beyond 64 KiB, and readable by everything that is in use.
  // Not the default driver: that one resolves the symbolic links of a path, and a memory file has no other name.
  hdf5_check(H5Pset_fapl_stdio(access), "file driver");
  hdf5_check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "file format");
  hdf5_check(H5Pset_alignment(access, 1, kAlignment), "alignment");
  hdf5_check(H5Pset_file_locking(access, false, true), "file locking");
  const Properties creation = without_times(H5P_FILE_CREATE);
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  return H5File(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), "cannot lay out the file in memory");
}

/// H5Screate_simple has no scalars.
Space make_space(const Shape& shape, const std::string& what) {
  if (shape.empty()) return Space(H5Screate(H5S_SCALAR), what);
  const std::vector<hsize_t> lengths(shape.begin(), shape.end());
  return Space(H5Screate_simple(static_cast<int>(lengths.size()), lengths.data(), nullptr), what);
}

void write_attribute(hid_t object, const AttributeContent& attribute) {
  const std::string what = "attribute " + attribute.name;
  const Space space(H5Screate(H5S_SCALAR), what);
  const auto write = [&](hid_t type, const void* value) {
    const Attribute made(H5Acreate2(object, attribute.name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), what);
    hdf5_check(H5Awrite(made, type, value), what);
  };
  if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) write(H5T_STD_I64LE, integer);
  if (const auto* number = std::get_if<double>(&attribute.value)) write(H5T_IEEE_F64LE, number);
  if (const auto* text = std::get_if<std::string>(&attribute.value)) write(string_type(text->size()), text->c_str());
}

/// Makes the dataset; returns where HDF5 put it when the data is large and was left out, else nothing.
std::uint64_t write_dataset(hid_t file, const ObjectContent& object, hid_t type, const Space& space, bool large) {
  const Properties creation = without_times(H5P_DATASET_CREATE);
  hdf5_check(H5Pset_layout(creation, H5D_CONTIGUOUS), object.path);
  hdf5_check(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), object.path);
  hdf5_check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), object.path);
  const Dataset dataset(H5Dcreate2(file, object.path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                        object.path);
  for (const AttributeContent& attribute : object.attributes) write_attribute(dataset, attribute);
  if (large) {
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) throw Error("{}: HDF5 gives it no place in the file", object.path);
    return offset;
  }
  if (object.size > 0) hdf5_check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, object.data), object.path);
  return 0;
}

void write_group(hid_t file, const ObjectContent& object) {
  const bool root = object.path == "/";
  const Properties creation = without_times(H5P_GROUP_CREATE);
  const Group group(root ? H5Gopen2(file, "/", H5P_DEFAULT)
                         : H5Gcreate2(file, object.path.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT),
                    object.path);
  for (const AttributeContent& attribute : object.attributes) write_attribute(group, attribute);
}

/// A list of strings as long as the longest, padded: variable-length ones would go through HDF5's global heap.
void write_provenance(hid_t file, const std::vector<std::string>& records) {
  std::size_t longest = 1;
  for (const std::string& record : records) longest = std::max(longest, record.size());
  ObjectContent object;
  object.path = "/provenance";
  for (const std::string& record : records) {
    object.owned.insert(object.owned.end(), reinterpret_cast<const std::byte*>(record.data()),
                        reinterpret_cast<const std::byte*>(record.data()) + record.size());
    object.owned.resize(object.owned.size() + longest - record.size());
  }
  object.data = object.owned.data();
  object.size = object.owned.size();
  write_dataset(file, object, string_type(longest), make_space({records.size()}, object.path), false);
}

} // namespace

Layout lay_out(const FileWriter::Content& content, const std::string& digest,
               const std::vector<std::string>& provenance, bool more) {
  hdf5_start();
  Layout layout;
  layout.rest = Descriptor(::memfd_create("noether", MFD_CLOEXEC));
  if (layout.rest < 0) throw Error("cannot make a memory file: {}", system_reason(errno));
  H5File file = create_file(layout.rest);
  write_attribute(file, {"noether_kind", std::string(content.kind.name)});
  write_attribute(file, {"noether_format", std::int64_t{content.kind.format}});
  write_attribute(file, {"noether_digest", digest});
  if (more) write_attribute(file, {"noether_more", std::int64_t{1}});
  write_provenance(file, provenance);
  for (const ObjectContent& object : content.objects) {
    if (object.what == ObjectContent::What::group) {
      write_group(file, object);
      continue;
    }
    const bool text = object.what == ObjectContent::What::text;
    const DataType type = text ? string_type(object.size)
                          : object.what == ObjectContent::What::texts
                              ? string_type(object.width)
                              : DataType(H5Tcopy(hdf5_type(object.type)), object.path);
    const Space space = make_space(text ? Shape{} : object.shape, object.path);
    const bool large = object.size >= kSmall;
    const std::uint64_t offset = write_dataset(file, object, type, space, large);
    if (large) layout.pieces.push_back({offset, object.size, object.data});
  }
  file.close("cannot lay out the file in memory");
  std::sort(layout.pieces.begin(), layout.pieces.end(),
            [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
  struct stat status {};
  if (::fstat(layout.rest, &status) != 0) throw Error("memory file: {}", system_reason(errno));
  layout.length = static_cast<std::uint64_t>(status.st_size);
  return layout;
}

} // namespace noether::store
