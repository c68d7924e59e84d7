// What a model makes of how a text goes on: the loss and the rank of each token of its end, given what stands before.
#pragma once

#include "architecture/checkpoint.h"
#include "base/reporter.h"
#include "evaluation/biases.h"
#include "evaluation/loss.h"
#include "models/model.h"
#include "text/bpe.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace noether::evaluation {

struct ScoringOptions {
  /// What stands before a text. none: nothing does, as in lm-eval, so that a text's own first token is not scored; but
  /// end-of-text does where there is nothing else, the context being empty.
  Prefix prefix = Prefix::none;
  Biases biases = Biases::mean;
  std::uint64_t seed = 0; ///< of sampled biases: item i has those of (seed, step i)
  models::Precision precision = models::Precision::f32;
  int threads = 1;
};

/// Tokens of which the last are asked for.
struct Continuation {
  std::vector<std::int64_t> ids;
  std::int64_t asked = 1; ///< ids[asked..] are asked for, each after all that stand before it
  bool truncated = false; ///< the beginning was left out, as the model's context is shorter
};

struct TokenScore {
  double loss;       ///< nats
  std::int64_t rank; ///< 1: the likeliest token of the tokenizer; of equals the lowest id comes first
};

/// The sum over tokens, in nats: minus the logarithm of the probability of all of them.
double total_loss(std::span<const TokenScore> scores);

/// A mean over items of equal weight, and its standard error: sqrt(sum (y - mean)^2 / (n (n - 1))).
struct Mean {
  double value = 0;
  std::optional<double> standard_error; ///< nothing for fewer than two items
};
Mean mean_of(std::span<const double> values);

/// A model that is asked how texts go on. Valid as long as the checkpoint.
class ContinuationScorer {
public:
  /// Throws Error for a checkpoint without a tokenizer, and for Prefix::end_of_text where that has none. Turns off
  /// LibTorch's own threads in this process.
  ContinuationScorer(architecture::Checkpoint& checkpoint, const ScoringOptions& options);

  /// `text` after `context`. Both are encoded together, and the tokens that hold a byte of `text` are asked for; white
  /// space at the end of `context` counts as the beginning of `text`, as in lm-eval. When all are longer than the
  /// model's context, the beginning is left out.
  /// Throws Error, beginning with `where`, when `text` alone is too long, is empty, or nothing can stand before it.
  Continuation continuation(std::string_view context, std::string_view text, const std::string& where);
  /// All of `text`, but for the first token where nothing stands before it; of one that is longer than the model's
  /// context, the end. Throws Error, beginning with `where`, when there is nothing to score.
  Continuation sentence(std::string_view text, const std::string& where);

  /// The tokens that are asked for of each of a group. What all of a group begin with is computed once. Call it in
  /// for_each_item(), with the item's number.
  std::vector<std::vector<TokenScore>> score(std::span<const Continuation> group, std::int64_t item) const;

  /// Calls work(i) for each i in [0, count) on the threads of the options, each item on one: write results by index.
  void for_each_item(std::int64_t count, Reporter& reporter, const std::function<void(std::int64_t)>& work) const;

  const std::string& name() const { return name_; }

private:
  Continuation fitted(std::vector<std::int64_t> ids, std::int64_t asked, const std::string& where) const;
  std::vector<TokenScore> scores(const at::Tensor& states, std::span<const std::int64_t> targets) const;

  std::string name_;
  ScoringOptions options_;
  models::Model model_;
  text::Tokenizer tokenizer_;
  text::Encoder encoder_;
};

} // namespace noether::evaluation
