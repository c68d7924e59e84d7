// Text from files and pipes, divided into documents, a few megabytes at a time.
#pragma once

#include "text/tokenizer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace noether::text {

/// What a document is.
enum class Division {
  separator, ///< what stands between lines that are equal to the separator
  line,      ///< a line, without its line feed; an empty line is an empty document
  file,      ///< a whole file
  jsonl,     ///< one string of each line's JSON object; blank lines are skipped
  one,       ///< all inputs, end to end
};

struct DocumentOptions {
  Division division = Division::separator;
  /// The line between two documents. The line feed before it belongs to it too, unless the document would be nothing
  /// but line feeds: so no two texts give the same documents. A separator at the very end ends the last document, and
  /// begins no empty one.
  std::string separator = "<|endoftext|>";
  std::string field = "text";           ///< of jsonl
  std::size_t batch_bytes = 8U << 20;   ///< about what is held at a time; more when a document cannot be cut
  std::size_t piece_bytes = 256U << 10; ///< about the longest piece; more when a document cannot be cut
  bool cut = true;                      ///< false: a piece is a whole document
};

/// Documents, or pieces of long ones, in the order of the input. A document is cut only where pre-tokenizer cuts it
/// too, so that the words of its pieces are its words.
struct Batch {
  struct Piece {
    std::size_t begin, size; ///< in text
    bool ends_document;
  };
  std::string text;
  std::vector<Piece> pieces;
  std::string_view operator[](std::size_t piece) const {
    return std::string_view(text).substr(pieces[piece].begin, pieces[piece].size);
  }
};

/// Reads plain or zstd-compressed text (told apart by the first bytes) from files and, for "-", from stdin.
class DocumentReader {
public:
  /// Looks whether every named file is there, and reads nothing yet. Throws Error: "x.txt: no such file", ...;
  /// UsageError when - is named twice.
  DocumentReader(std::vector<std::string> paths, DocumentOptions options, PreTokenizer pre_tokenizer);
  ~DocumentReader();
  DocumentReader(DocumentReader&&) noexcept;

  /// The next documents and pieces; false after the last. Throws Error for an empty file, one that is no text (HDF5,
  /// gzip), a line that is no JSON object with the field ("x.jsonl:17: ...").
  bool next(Batch& batch);

  bool ended_with_separator() const; ///< known after the last batch
  std::uint64_t documents() const;   ///< that have ended so far
  std::uint64_t bytes_read() const;  ///< of text, decompressed
  /// XXH3-128 of all text read, as 32 hexadecimal digits: for provenance.
  std::string digest() const;
  /// Bytes of all inputs, when that is known before reading: regular files, not compressed; 0 otherwise.
  std::uint64_t bytes_in_all() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Puts documents together again: with Division::separator and Division::line a text is given back byte for byte, but
/// for a line feed at its end that is missing after a last line or separator. Other divisions put documents end to end.
class DocumentWriter {
public:
  DocumentWriter(Division division, std::string separator, std::function<void(std::string_view)> write)
      : division_(division), separator_(std::move(separator)), write_(std::move(write)) {}
  void append(std::string_view bytes); ///< of the document at hand
  /// separated: another document follows, or a separator ends the text.
  void end_document(bool separated);

private:
  Division division_;
  std::string separator_;
  std::function<void(std::string_view)> write_;
  bool only_line_feeds_ = true; ///< so far, in the document at hand
};

/// Calls work(worker, piece number) for each piece on up to `threads` threads; worker is below `threads`, and one
/// worker has one piece at a time.
void for_each_piece(const Batch& batch, int threads, const std::function<void(int, std::size_t)>& work);

} // namespace noether::text
