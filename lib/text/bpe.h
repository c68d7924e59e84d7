// Encoding and decoding with a byte-level BPE: any bytes are legal text, and decode(encode(x)) == x.
#pragma once

#include "text/tokenizer.h"

#include <memory>
#include <string_view>

namespace noether::text {

/// Encodes text. Time is linear in its length (times log of the longest word), whatever it holds. Not copied; one a
/// thread.
class Encoder {
public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;

  /// Appends the ids of `text` to `out`. Spellings of special tokens in it are plain text unless `special` is true.
  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool special = false);
  std::vector<std::uint32_t> encode(std::string_view text, bool special = false);
  /// The words that the pre-tokenizer cuts `text` into: for `tokenize show`.
  std::vector<std::string_view> words(std::string_view text) const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The bytes of these tokens end to end. Throws Error when an id is not in the vocabulary.
std::string decode(const Tokenizer& tokenizer, const std::uint32_t* ids, std::size_t count);

/// Holds back the bytes of a character whose end has not come yet, so that what is printed is valid UTF-8 at any
/// moment; bytes that can never become a character are passed on as U+FFFD.
class Utf8Stream {
public:
  std::string push(std::string_view bytes); ///< what can be printed now
  std::string finish();                     ///< what is left, an unfinished character as U+FFFD
private:
  std::string held_;
};

} // namespace noether::text
