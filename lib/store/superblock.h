// Where an HDF5 file ends, by its own word, and what other bytes look like. For this room alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace noether::store {

/// Gives up to `size` bytes from the front of the input; fewer when it ends before.
using Peek = std::function<std::string_view(std::size_t size)>;

/// The length in bytes of the HDF5 file that begins here, a user block before it included; nothing when there is no
/// superblock. Throws Error "NAME: ..." for a superblock that is cut short, contradictory, or newer than version 3.
std::optional<std::uint64_t> hdf5_length(const Peek& peek, const std::string& name);

/// What the bytes look like: "starts with PK: a zip archive; PyTorch's are for noether init from", "text", ...
std::string looks_like(std::string_view bytes);

} // namespace noether::store
