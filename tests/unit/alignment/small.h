// A small model whose heads can be followed by hand.
#pragma once

#include "alignment/scores.h"
#include "architecture/presets.h"

#include <fmt/format.h>

namespace noether::alignment {

struct Small {
  architecture::Checkpoint checkpoint;
  models::Model model;

  explicit Small(
      const std::string& name = "gpt2", const std::function<void(architecture::Config&)>& change = [](auto&) {}) {
    architecture::Config config = architecture::describe(
        name, {.layers = 2, .heads = 4, .width = 32, .hidden = 48, .context = 12, .vocab_size = 300});
    config.symmetry_break = architecture::Break::q;
    change(config);
    architecture::validate(config);
    checkpoint = architecture::initialise(config, 7, 1);
    checkpoint.name = "small.h5";
    for (float& x : checkpoint.parameters.span()) x *= 5; // so that nothing is nearly zero
    model = models::bind(config, checkpoint.parameters);
  }
  /// One number of a parameter.
  double at(const std::string& name, std::int64_t index) const {
    for (const architecture::Parameter& parameter : checkpoint.layout)
      if (parameter.name == name) return checkpoint.parameters.data()[parameter.offset + index];
    throw std::runtime_error(name);
  }
};

/// The 256 bytes, then words; the last token is end-of-text.
inline text::Tokenizer words_tokenizer(const std::vector<std::string>& words) {
  text::Tokenizer tokenizer;
  for (int byte = 0; byte < 256; ++byte) tokenizer.tokens.emplace_back(1, static_cast<char>(byte));
  tokenizer.tokens.insert(tokenizer.tokens.end(), words.begin(), words.end());
  tokenizer.special = {{"<|endoftext|>", tokenizer.vocab_size()}};
  tokenizer.tokens.emplace_back("<|endoftext|>");
  return tokenizer;
}

} // namespace noether::alignment
