#include "text/split.h"

namespace noether::text {

SplitText encode_split(Encoder& encoder, const Tokenizer& tokenizer, std::string_view first, std::string_view second) {
  const std::size_t kept = first.find_last_not_of(" \t\n\v\f\r") + 1; // 0 where there is nothing else
  SplitText split{encoder.encode(std::string(first).append(second)), 0};
  std::size_t bytes = 0;
  while (split.second + 1 < split.ids.size()) {
    bytes += tokenizer.tokens[split.ids[split.second]].size();
    if (bytes > kept) break;
    ++split.second;
  }
  return split;
}

} // namespace noether::text
