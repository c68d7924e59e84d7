// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace noether::store {

/// Writes into the target's folder without a name, so that a killed program leaves nothing behind (where the file
/// system has no such files, under a temporary name); commit() syncs it, renames it over the target and syncs the
/// folder. Without commit() the target stays as it was. A target that exists and is not a regular file (a FIFO,
/// /dev/null) is written as it is. A symbolic link is followed, so that the link stays and its file is replaced. Mode
/// and umask are respected. Two programs that write the same target never mix: the last rename wins.
class AtomicFile {
public:
  /// Throws Error: "model.h5: no such folder", "model.h5: permission denied".
  explicit AtomicFile(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  int descriptor() const { return descriptor_; }
  bool regular() const { return !target_.empty(); }
  /// Says how long the file will be, so that a full disk is noticed before the work; a hint, to be given before the
  /// first write.
  void reserve(std::uint64_t size);
  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Throws Error: "model.h5: no space left on device (the old model.h5 is unchanged)".
  void commit();

private:
  void discard();
  /// Sets temporary_ to the first name in the target's folder that make(name) does not find taken (EEXIST).
  template <class Make> void name_temporary(const Make& make);
  [[noreturn]] void fail(int number) const;

  std::string path_;
  std::string target_;    ///< the regular file to replace, or empty: path_ is written as it is
  std::string temporary_; ///< to be removed or renamed, or empty while there is no name
  int descriptor_ = -1;
  bool existed_ = false;
  std::size_t unsent_ = 0; ///< bytes written since the disk was last told to begin
};

/// Writes all of it, through short writes and interruptions. A closed pipe ends the program by SIGPIPE as in all of
/// Unix. Throws Error "NAME: no space left on device".
void write_all(int descriptor, const void* data, std::size_t size, std::string_view name);

} // namespace noether::store
