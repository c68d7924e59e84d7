// HDF5 files through pipes and on disk: one or several end to end, plain or inside zstd frames. An HDF5 file states its
// own length, so a reader knows where one ends and notices when one was cut short.
#pragma once

#include "store/reader.h"
#include "store/writer.h"

#include <optional>

namespace noether::store {

/// Files from a path, or from stdin for "-". What it is is told by its first bytes, never by its name.
class InputStream {
public:
  /// Opens, and reads nothing yet from stdin or a FIFO. Throws Error when the file is missing or is a folder,
  /// UsageError when stdin is a terminal.
  explicit InputStream(const std::string& path);
  InputStream(InputStream&&) noexcept;
  InputStream& operator=(InputStream&&) noexcept;
  ~InputStream();

  /// The next file, or nothing after the last. Throws Error: empty input, cut short (both lengths), neither HDF5 nor
  /// zstd (what its first bytes look like), an end after a file that announced another one.
  std::optional<FileReader> next();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The only file at `path` ("-": stdin), of the expected kind. Throws Error as above, and when more than one follows.
FileReader open_one(const std::string& path, Kind kind);
FileReader open_one(const std::string& path); ///< of any kind

/// Where files go: stdout for "-", a pipe, a FIFO, a device, or a regular file that is replaced whole or not at all.
class OutputStream {
public:
  /// zstd_level 0: plain. Refuses a terminal (UsageError) and an unwritable target at once, before any work.
  explicit OutputStream(const std::string& path, int zstd_level = 0);
  OutputStream(OutputStream&&) noexcept;
  OutputStream& operator=(OutputStream&&) noexcept;
  /// Without close() a regular file is left as it was.
  ~OutputStream();

  /// Lays the file out and sends it. `provenance`: the records to store, JSON objects, oldest first.
  /// more: another file follows in this stream; UsageError when the output is a regular file, which readers would cut.
  /// The arrays that the writer borrows may be changed when this returns.
  void write(FileWriter&& file, const std::vector<std::string>& provenance, bool more = false);

  /// True when the other end of the pipe is gone (POLLERR), so that long work can stop at once.
  bool reader_gone() const;

  /// Syncs and renames a regular file into place; for anything else checks that all was taken.
  void close();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace noether::store
