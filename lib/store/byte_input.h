// Bytes from a descriptor, decompressed where they are zstd frames.
#pragma once

#include "store/descriptor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct ZSTD_DCtx_s;

namespace noether::store {

/// Opens for reading; "-" is stdin. Throws Error: "x.h5: no such file", "x: is a folder", ...
Descriptor open_input(const std::string& path);
/// How messages call it: the path, or "stdin".
std::string input_name(const std::string& path);

/// Reads a pipe, a device or a file from where it stands, never seeking. Any number of zstd frames end to end
/// (skippable ones too) are one run of bytes.
class ByteInput {
public:
  ByteInput(Descriptor descriptor, std::string name);
  ByteInput(ByteInput&&) noexcept;
  ~ByteInput();

  /// Call where compression may begin or have ended, before reading: at the start, and between two files. Looks whether
  /// zstd frames come next. Returns false at the end of the input.
  bool sniff();
  /// The next `size` bytes without taking them; fewer only where the run of bytes ends. Valid until the next call.
  std::string_view peek(std::size_t size);
  /// Takes `size` bytes; fewer only where the run of bytes ends.
  /// Throws Error for damaged or cut zstd frames: "x.zst: cut short inside a zstd frame, after 1048576 bytes of
  /// content".
  std::size_t read(void* out, std::size_t size);

private:
  std::string_view buffered() const { return {raw_.data() + begin_, end_ - begin_}; }
  bool fill(std::size_t size);
  std::size_t read_raw(void* out, std::size_t size);
  std::size_t decompress(void* out, std::size_t size);

  Descriptor descriptor_;
  std::string name_;
  std::vector<char> raw_; // as it came: raw_[begin_ .. end_) has not been used yet
  std::size_t begin_ = 0, end_ = 0;
  bool ended_ = false;
  bool compressed_ = false, in_frame_ = false;
  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> zstd_;
  std::string decoded_; // looked at, not yet taken
  std::uint64_t content_ = 0;
};

} // namespace noether::store
