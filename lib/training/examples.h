// What a model is taught to answer: prompts, and what is to follow each. Loss is on the latter alone.
#pragma once

#include "text/tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace noether::training {

struct Example {
  std::string prompt, completion;
  std::int64_t line = 0; ///< in its file
  /// Set by encode(): what the model reads and, from `asked` on, is to predict.
  std::vector<std::int64_t> ids{};
  std::int64_t asked = 0;
};

struct Examples {
  std::string name;   ///< of the file, for messages
  std::string digest; ///< of its text
  std::vector<Example> examples;
  std::int64_t truncated = 0;       ///< how many have lost the beginning of their prompts
  std::int64_t first_truncated = 0; ///< the line of the first of these

  std::int64_t inputs() const;  ///< tokens that are read, of all
  std::int64_t targets() const; ///< tokens that are predicted
};

/// Reads JSON objects, one a line, - for stdin: {"prompt": "2 + 2 =", "completion": " 4"}
/// Throws Error, with the number of the line, for one that is not like this.
Examples read_examples(const std::string& path);

/// Turns the texts into tokens: prompt and completion together (text/split.h), end-of-text before an empty prompt, and
/// end-of-text behind every completion where the tokenizer has it. What is longer than the context loses the beginning
/// of its prompt. Throws Error, with the number of the line, for a completion that is too long by itself.
void encode(Examples& examples, const text::Tokenizer& tokenizer, std::int64_t context);

} // namespace noether::training
