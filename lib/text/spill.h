// Bytes that grow, in memory first and in a temporary file when they become many.
#pragma once

#include "store/descriptor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace noether::text {

/// Holds up to `limit` bytes in memory; more go to a file in TMPDIR (/tmp when it is not set) that has no name, so that
/// it vanishes with the program however that ends.
class Spill {
public:
  static constexpr std::size_t kLimit = std::size_t{64} << 20;
  explicit Spill(std::size_t limit = kLimit) : limit_(limit) {}

  /// Throws Error: "TMPDIR (/tmp): no space left on device".
  void append(const void* data, std::size_t size);
  std::uint64_t size() const { return written_ + memory_.size(); }
  bool spilled() const { return file_ >= 0; }
  /// All bytes, in one piece: mapped when they were spilled. Nothing may be appended afterwards. Valid as long as this
  /// object.
  const void* data();

private:
  void flush();

  std::size_t limit_;
  std::vector<char> memory_; ///< all, or what has not gone to the file yet
  store::Descriptor file_;
  std::uint64_t written_ = 0;
  store::Mapping mapping_;
};

} // namespace noether::text
