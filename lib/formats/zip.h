// zip archives whose entries are stored as they are, as torch.save writes them.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace noether::formats {

/// The entries by name, as views into `bytes`, the whole file; those of more than 4 GiB too (zip64). Every place and
/// size is compared with the bytes at hand; checksums are not. Throws Error "NAME: ..." when it is no zip archive or a
/// damaged one, and for an entry that is compressed or encrypted.
std::map<std::string, std::string_view> parse_stored_zip(std::string_view bytes, const std::string& name);

} // namespace noether::formats
