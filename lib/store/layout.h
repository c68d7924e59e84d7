// Where each byte of a file goes, for this room alone.
#pragma once

#include "store/content.h"
#include "store/descriptor.h"

namespace noether::store {

/// Large data that belongs at `offset` of the file and is still where the caller has it.
struct Piece {
  std::uint64_t offset, size; // bytes
  const void* data;
};

/// A whole file: the bytes of `pieces` (ordered, apart from each other), and everything else from `rest`, a memory file
/// that has holes where the pieces belong.
struct Layout {
  Descriptor rest;
  std::uint64_t length = 0; // bytes
  std::vector<Piece> pieces;
};

/// Throws Error when HDF5 refuses something.
Layout lay_out(const FileWriter::Content& content, const std::string& digest,
               const std::vector<std::string>& provenance, bool more);

} // namespace noether::store
