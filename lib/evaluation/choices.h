// Multiple choice: which of several endings of a context a model finds likeliest, as lm-eval scores it.
#pragma once

#include "evaluation/continuation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace noether::evaluation {

struct Choice {
  std::string context;
  std::vector<std::string> endings; ///< two or more
  std::size_t label = 0;            ///< which ending is right
  std::int64_t line = 0;            ///< in its file
};

struct Choices {
  std::string name; ///< of the file, for messages
  std::vector<Choice> items;
};

/// Reads JSON objects, one a line, - for stdin:
///   {"context": "Water is", "endings": ["wet.", "dry."], "label": 0}
/// A label may be a string of digits, as in the published HellaSwag.
/// Throws Error, with the number of the line, for one that is not like this.
Choices read_choices(const std::string& path);

struct ChoiceScore {
  std::vector<double> losses; ///< of each ending, in nats: minus its log-likelihood
  std::size_t guess = 0;      ///< the ending with the least loss; of equals the first
  std::size_t guess_norm = 0; ///< that with the least loss a byte of the ending
  bool truncated = false;     ///< the beginning of the context was left out
};

/// The scores, by item. An ending that begins without white space follows its context after a space, which is no part
/// of its length. Throws Error for an item that cannot be asked: "x.jsonl:3: ...".
std::vector<ChoiceScore> score_choices(architecture::Checkpoint& checkpoint, const Choices& choices,
                                       const ScoringOptions& options, Reporter& reporter);

/// lm-eval's acc and acc_norm with their standard errors.
struct ChoiceSummary {
  std::int64_t items = 0, truncated = 0;
  Mean acc, acc_norm;
};
ChoiceSummary summary(const Choices& choices, const std::vector<ChoiceScore>& scores);

} // namespace noether::evaluation
