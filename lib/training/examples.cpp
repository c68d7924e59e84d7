#include "training/examples.h"

#include "base/error.h"
#include "store/byte_input.h"
#include "text/json_lines.h"
#include "text/split.h"

namespace noether::training {

std::int64_t Examples::inputs() const {
  std::int64_t count = 0;
  for (const Example& example : examples) count += static_cast<std::int64_t>(example.ids.size()) - 1;
  return count;
}

std::int64_t Examples::targets() const {
  std::int64_t count = 0;
  for (const Example& example : examples) count += static_cast<std::int64_t>(example.ids.size()) - example.asked;
  return count;
}

Examples read_examples(const std::string& path) {
  Examples examples{.name = store::input_name(path), .digest = {}, .examples = {}};
  examples.digest = text::for_each_json_line(path, [&](const text::JsonLine& line) {
    Example example{.prompt = line.string("prompt"), .completion = line.string("completion"), .line = line.line};
    if (example.completion.empty()) throw Error("{}: the field completion is empty", line.where);
    examples.examples.push_back(std::move(example));
  });
  if (examples.examples.empty()) throw Error("{}: it holds no examples", examples.name);
  return examples;
}

void encode(Examples& examples, const text::Tokenizer& tokenizer, std::int64_t context) {
  text::Encoder encoder(tokenizer);
  for (Example& example : examples.examples) {
    const text::SplitText split = text::encode_split(encoder, tokenizer, example.prompt, example.completion);
    example.ids.assign(split.ids.begin(), split.ids.end());
    example.asked = static_cast<std::int64_t>(split.second);
    if (example.asked == 0) {
      if (!tokenizer.end_of_text)
        throw Error("{}:{}: nothing stands before the completion, and the tokenizer has no end-of-text token",
                    examples.name, example.line);
      example.ids.insert(example.ids.begin(), *tokenizer.end_of_text);
      example.asked = 1;
    }
    if (tokenizer.end_of_text) example.ids.push_back(*tokenizer.end_of_text);
    const std::int64_t excess = static_cast<std::int64_t>(example.ids.size()) - 1 - context;
    if (excess <= 0) continue;
    if (excess >= example.asked)
      throw Error("{}:{}: a completion of {} tokens is longer than the context of {}", examples.name, example.line,
                  static_cast<std::int64_t>(example.ids.size()) - example.asked, context);
    example.ids.erase(example.ids.begin(), example.ids.begin() + excess);
    example.asked -= excess;
    if (++examples.truncated == 1) examples.first_truncated = example.line;
  }
}

} // namespace noether::training
