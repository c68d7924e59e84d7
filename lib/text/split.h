// A text in two parts as the tokens of both: what a prompt should go on with, among the tokens of the whole.
#pragma once

#include "text/bpe.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace noether::text {

struct SplitText {
  std::vector<std::uint32_t> ids; ///< of both parts, encoded together
  std::size_t second = 0;         ///< the first of the second part's tokens: those that hold a byte of it
};

/// White space at the end of `first` counts as the beginning of `second`, as in lm-eval; so where `first` is nothing
/// else, and where one token holds the end of one and the beginning of the other, that is the second's. `second` is not
/// empty.
SplitText encode_split(Encoder& encoder, const Tokenizer& tokenizer, std::string_view first, std::string_view second);

} // namespace noether::text
