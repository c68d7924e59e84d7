// The bytes of one HDF5 file in memory, and the state of its reader. For this room alone.
#pragma once

#include "store/descriptor.h"
#include "store/hdf5.h"
#include "store/reader.h"

#include <map>

namespace noether::store {

/// `length` bytes at `offset` of a mapping; where that is a mapped file on disk, `file` is it and `offset` holds there
/// too.
struct Image {
  std::shared_ptr<const Mapping> mapping;
  std::shared_ptr<const Descriptor> file;
  std::uint64_t offset = 0, length = 0; // bytes
  std::byte* bytes() const { return mapping->data() + offset; }
};

struct FileReader::State {
  /// Throws Error when HDF5 does not take the image, or its root attributes are not what they should be.
  State(std::string name, Image image);

  std::string name;
  Image image;
  H5File file;
  std::string kind, digest;
  std::int64_t format = 0;
  std::map<std::pair<std::string, Type>, std::vector<std::byte>> converted; ///< what view() could not map
};

} // namespace noether::store
