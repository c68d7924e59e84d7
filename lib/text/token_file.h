// Token files: the ids of many documents end to end, where each begins, and the tokenizer that made them.
//
//   /tokens      uint16 [tokens], or uint32 when the vocabulary is larger than 65536. Attributes: text_bytes, the bytes
//   of text
//                that they stand for, special tokens not counted; final_end_of_text, 1 when an end-of-text token
//                follows the last document too, as in a text that ends with a separator
//   /documents   uint64 [documents + 1]: where each document begins, and the number of tokens. A document's end-of-text
//                token is its last token
//   /tokenizer   the tokenizer (text/tokenizer.h)
#pragma once

#include "store/stream.h"
#include "text/tokenizer.h"

#include <memory>
#include <span>

namespace noether::text {

/// A token file that was opened: nothing of it is in memory but the tokenizer and what is touched.
class TokenFile {
public:
  /// Throws Error when the file is of another kind or damaged (ids beyond the vocabulary are found by read()).
  explicit TokenFile(store::FileReader file);

  const std::string& name() const { return file_.name(); }
  const store::FileReader& file() const { return file_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const std::string& tokenizer_digest() const { return tokenizer_digest_; }
  std::uint64_t size() const { return size_; }             ///< tokens
  std::uint64_t text_bytes() const { return text_bytes_; } ///< bytes of text that they stand for
  /// Whether an end-of-text token follows the last document too.
  bool final_end_of_text() const { return final_end_of_text_; }
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
  bool final_end_of_text_ = false;
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
  /// The same in pieces: more tokens of the document at hand (the next one, if none is), and its end.
  void append(std::span<const std::uint32_t> ids);
  void end_document();
  /// An end-of-text token after the last document, if the tokenizer has one; nothing may follow.
  void end_text();
  std::uint64_t tokens() const;
  std::uint64_t documents() const;
  std::uint64_t text_bytes() const;
  /// The file, ready to be sent; this sink must live until it is.
  store::FileWriter finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace noether::text
