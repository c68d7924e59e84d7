// Encoding and decoding with a byte-level BPE: any bytes are legal text, and decode(encode(x)) == x.
#pragma once

#include "text/tokenizer.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace noether::text {

/// Encodes text. Time is linear in its length (times log of the longest word), whatever it holds. One a thread: a copy
/// shares the tables, which nothing changes, and has a cache of its own. The tokenizer is not needed afterwards.
class Encoder {
public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  Encoder(const Encoder& other);
  Encoder(Encoder&&) noexcept;

  /// Appends the ids of `text` to `out`. Spellings of special tokens in it are plain text unless `special` is true:
  /// then they become their ids, the leftmost and there the longest first, and what is between them is encoded piece by
  /// piece.
  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool special = false);
  std::vector<std::uint32_t> encode(std::string_view text, bool special = false);
  /// The words that the pre-tokenizer cuts `text` into: for `tokenize show`.
  std::vector<std::string_view> words(std::string_view text) const;
  /// Whether some special token's spelling holds an ASCII blank, so that cutting text at blanks could cut one in two.
  bool blanks_in_special() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The bytes of these tokens end to end. Throws Error when an id is not in the vocabulary.
std::string decode(const Tokenizer& tokenizer, const std::uint32_t* ids, std::size_t count);

/// Holds back the bytes of a character whose end has not come yet, so that what is printed is valid UTF-8 at any
/// moment; bytes that can never become a character are passed on as U+FFFD, one for each longest beginning of a
/// character (Unicode's recommended practice, section 3.9, which Python's errors="replace" follows too).
class Utf8Stream {
public:
  std::string push(std::string_view bytes); ///< what can be printed now
  std::string finish();                     ///< what is left, an unfinished character as U+FFFD
private:
  std::string held_;
};

} // namespace noether::text
