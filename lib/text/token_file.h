// Token files: the ids of many documents end to end, where each begins, and the tokenizer that made them.
#pragma once

#include "store/stream.h"
#include "text/tokenizer.h"

#include <memory>
#include <span>

namespace noether::text {

/// A token file that was opened: nothing of it is in memory but the tokenizer and what is touched.
class TokenFile {
public:
  /// Throws Error when the file is of another kind or damaged (ids beyond the vocabulary are found by check()).
  explicit TokenFile(store::FileReader file);

  const std::string& name() const { return file_.name(); }
  const store::FileReader& file() const { return file_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const std::string& tokenizer_digest() const { return tokenizer_digest_; }
  std::uint64_t size() const { return size_; }             ///< tokens
  std::uint64_t text_bytes() const { return text_bytes_; } ///< bytes of text that they stand for
  /// Where each document begins; the last entry is size(). A document ends with the end-of-text token that follows it,
  /// if any.
  std::span<const std::uint64_t> documents() const { return documents_; }
  /// Copies tokens [begin, begin + count) to out, widened. Throws Error beyond the end, or for an id that is not in the
  /// vocabulary: "tokens.h5: token 17 is 5000, beyond the vocabulary of 4096".
  void read(std::uint64_t begin, std::uint64_t count, std::int64_t* out) const;

private:
  store::FileReader file_;
  Tokenizer tokenizer_;
  std::string tokenizer_digest_;
  std::uint64_t size_ = 0, text_bytes_ = 0;
  std::span<const std::uint64_t> documents_;
  std::span<const std::uint16_t> narrow_; ///< one of the two is used
  std::span<const std::uint32_t> wide_;
};

/// Collects tokens for a token file in bounded memory: what does not fit goes to an unlinked file in TMPDIR.
class TokenSink {
public:
  explicit TokenSink(const Tokenizer& tokenizer);
  ~TokenSink();
  TokenSink(TokenSink&&) noexcept;
  /// One more document; an end-of-text token is put between two documents when the tokenizer has one.
  void add_document(std::span<const std::uint32_t> ids);
  std::uint64_t tokens() const;
  std::uint64_t documents() const;
  /// The file, ready to be sent; this sink must live until it is.
  store::FileWriter finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace noether::text
