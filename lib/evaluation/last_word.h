// The last word of a text, predicted from all before it: LAMBADA's form (arXiv 1606.06031), as lm-eval scores it.
#pragma once

#include "evaluation/continuation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace noether::evaluation {

struct LastWord {
  std::string before, word; ///< word: with the white space before it
  std::int64_t line = 0;    ///< in its file
};

struct LastWords {
  std::string name; ///< of the file, for messages
  std::vector<LastWord> items;
};

/// Reads JSON objects, one a line, - for stdin: {"text": "..."}. The last word begins after the last white space,
/// that at the end of the text left out. Throws Error, with the number of the line, for a text of fewer than two words.
LastWords read_last_words(const std::string& path);

struct LastWordScore {
  std::int64_t tokens = 0; ///< of the word
  double loss = 0;         ///< of the word, in nats
  bool right = false;      ///< each of its tokens is the likeliest, given those before it
  bool truncated = false;  ///< the beginning of the text was left out
};

/// The scores, by item. Throws Error for an item that cannot be asked: "x.jsonl:3: ...".
std::vector<LastWordScore> score_last_words(architecture::Checkpoint& checkpoint, const LastWords& words,
                                            const ScoringOptions& options, Reporter& reporter);

struct LastWordSummary {
  std::int64_t items = 0, truncated = 0;
  Mean acc;
  Mean loss;       ///< nats a word
  Mean perplexity; ///< exp(loss) of a word; to first order its error is that of the loss times itself
};
LastWordSummary summary(const std::vector<LastWordScore>& scores);

} // namespace noether::evaluation
