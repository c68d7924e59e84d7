// Text from a model, a token at a time.
#pragma once

#include "architecture/checkpoint.h"
#include "evaluation/biases.h"
#include "models/model.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace noether::evaluation {

struct GenerateOptions {
  std::int64_t tokens = 128; ///< at most so many new ones
  double temperature = 1;    ///< logits are divided by it; 0: always the likeliest token, of equals the lowest id
  std::int64_t top_k = 0;    ///< only the k likeliest; 0: all
  double top_p = 1;          ///< of those, only the likeliest that together reach this share
  std::int64_t samples = 1;  ///< texts for each prompt
  bool stop = true;          ///< at end-of-text
  Biases biases = Biases::mean;
  std::uint64_t seed = 0; ///< token i of sample s of prompt p is drawn with (seed, p, s, i), and nothing else
  int threads = 1;
};

/// One text.
struct Generation {
  std::int64_t prompt_number = 0, sample = 0;
  std::string prompt;
  std::string text; ///< what follows the prompt, valid UTF-8
  std::vector<std::uint32_t> prompt_ids, ids;
  double log_probability =
      0;              ///< of the ids, in nats, under the model itself: at temperature 1 and with nothing left out
  std::string finish; ///< "end-of-text" or "length"
  std::int64_t restarts = 0; ///< how often the context was full
};

/// Continues g.prompt_ids, which are g.prompt's: fills in text, ids, log_probability, finish and restarts. more: takes
/// the text as it is made. On the calling thread alone.
///
/// An empty prompt stands for the beginning of a document: end-of-text. When the context is full, or the prompt longer
/// than it, the last half a context of tokens is read again from the first position on, and the rest is forgotten.
void continue_prompt(const models::Model& model, const text::Tokenizer& tokenizer, const GenerateOptions& options,
                     Generation& g, const std::function<void(std::string_view)>& more);

/// The token that `uniform` in [0, 1) draws; of equal logits the lower id comes first. Throws Error for a logit that is
/// not finite.
std::uint32_t choose(std::span<const float> logits, const GenerateOptions& options, double uniform);

/// Where texts go as they are made.
struct GenerateSink {
  /// More of a text: its prompt first, then what follows as it comes, valid UTF-8 at every moment. Text after text, in
  /// the order of prompts and samples, whatever is computed meanwhile.
  std::function<void(std::string_view)> text;
  std::function<void(const Generation&)> end; ///< of that text
};

/// Continues prompts. A sequence is computed by itself on one thread, the prompt in one pass and then a token at a time
/// over a cache, so that its text is the same whatever else is made; threads share sequences.
/// next_prompt: the next one, or nothing after the last; called by one thread at a time.
/// Throws Error for a checkpoint without a tokenizer, and for an empty prompt where that has no end-of-text token.
void generate(architecture::Checkpoint& checkpoint, const std::function<std::optional<std::string>()>& next_prompt,
              const GenerateOptions& options, const GenerateSink& sink);

} // namespace noether::evaluation
