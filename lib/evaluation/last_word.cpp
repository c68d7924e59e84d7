// Source: the task lambada_openai of EleutherAI's lm-evaluation-harness. It estimates the perplexity's standard error
// by resampling; here it comes from that of the mean loss.
#include "evaluation/last_word.h"

#include "base/error.h"
#include "store/byte_input.h"
#include "text/json_lines.h"

#include <algorithm>
#include <cmath>

namespace noether::evaluation {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

LastWord last_word_of(const text::JsonLine& line) {
  std::string text = line.string("text");
  text.erase(text.find_last_not_of(kBlanks) + 1);
  const std::size_t blank = text.find_last_of(kBlanks);
  if (blank == std::string::npos || text.find_last_not_of(kBlanks, blank) == std::string::npos)
    throw Error("{}: expected two or more words in field text", line.where);
  return {text.substr(0, blank), text.substr(blank), line.line};
}

} // namespace

LastWords read_last_words(const std::string& path) {
  LastWords words{store::input_name(path), {}};
  text::for_each_json_line(path, [&](const text::JsonLine& line) { words.items.push_back(last_word_of(line)); });
  if (words.items.empty()) throw Error("{}: it holds no texts", words.name);
  return words;
}

std::vector<LastWordScore> score_last_words(architecture::Checkpoint& checkpoint, const LastWords& words,
                                            const ScoringOptions& options, Reporter& reporter) {
  ContinuationScorer scorer(checkpoint, options);
  std::vector<Continuation> asked;
  for (const LastWord& word : words.items)
    asked.push_back(scorer.continuation(word.before, word.word, fmt::format("{}:{}", words.name, word.line)));
  std::vector<LastWordScore> scores(asked.size());
  scorer.for_each_item(static_cast<std::int64_t>(asked.size()), reporter, [&](std::int64_t i) {
    const Continuation& one = asked[static_cast<std::size_t>(i)];
    const std::vector<TokenScore> tokens = scorer.score({&one, 1}, i).front();
    const bool right =
        std::all_of(tokens.begin(), tokens.end(), [](const TokenScore& token) { return token.rank == 1; });
    scores[static_cast<std::size_t>(i)] = {static_cast<std::int64_t>(tokens.size()), total_loss(tokens), right,
                                           one.truncated};
  });
  return scores;
}

LastWordSummary summary(const std::vector<LastWordScore>& scores) {
  LastWordSummary out;
  std::vector<double> right, losses;
  for (const LastWordScore& score : scores) {
    ++out.items;
    out.truncated += score.truncated ? 1 : 0;
    right.push_back(score.right ? 1 : 0);
    losses.push_back(score.loss);
  }
  out.acc = mean_of(right);
  out.loss = mean_of(losses);
  out.perplexity.value = std::exp(out.loss.value);
  if (out.loss.standard_error) out.perplexity.standard_error = *out.loss.standard_error * out.perplexity.value;
  return out;
}

} // namespace noether::evaluation
