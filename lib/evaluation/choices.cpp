// Source: the tasks of type multiple_choice of EleutherAI's lm-evaluation-harness. Its acc_norm divides by the
// characters of an ending, although its documents say bytes; they differ beyond ASCII only, and bytes are taken here.
#include "evaluation/choices.h"

#include "base/error.h"
#include "base/number.h"
#include "store/byte_input.h"
#include "text/json_lines.h"

#include <algorithm>
#include <cctype>

namespace noether::evaluation {
namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

Choice item_of(const text::JsonLine& line) {
  Choice choice;
  choice.line = line.line;
  choice.context = line.string("context");
  const nlohmann::json& endings = line.field("endings");
  if (!endings.is_array() || endings.size() < 2)
    throw Error("{}: expected a list of two or more strings in field endings", line.where);
  for (const nlohmann::json& ending : endings) {
    if (!ending.is_string() || ending.get_ref<const std::string&>().empty())
      throw Error("{}: expected strings in field endings, none of them empty", line.where);
    choice.endings.push_back(ending.get<std::string>());
  }
  const nlohmann::json& label = line.field("label");
  std::optional<std::int64_t> number;
  if (label.is_number_integer()) number = label.get<std::int64_t>();
  if (label.is_string()) number = parse_count(label.get_ref<const std::string&>());
  if (!number || *number < 0 || *number >= static_cast<std::int64_t>(choice.endings.size()))
    throw Error("{}: expected a whole number from 0 to {} in field label, found {}", line.where,
                choice.endings.size() - 1, label.dump());
  choice.label = static_cast<std::size_t>(*number);
  return choice;
}

std::size_t least(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

} // namespace

Choices read_choices(const std::string& path) {
  Choices choices{store::input_name(path), {}};
  text::for_each_json_line(path, [&](const text::JsonLine& line) { choices.items.push_back(item_of(line)); });
  if (choices.items.empty()) throw Error("{}: it holds no items", choices.name);
  return choices;
}

std::vector<ChoiceScore> score_choices(architecture::Checkpoint& checkpoint, const Choices& choices,
                                       const ScoringOptions& options, Reporter& reporter) {
  ContinuationScorer scorer(checkpoint, options);
  std::vector<std::vector<Continuation>> asked;
  for (const Choice& choice : choices.items) {
    const std::string where = fmt::format("{}:{}", choices.name, choice.line);
    const bool apart = choice.context.empty() || is_blank(choice.context.back());
    std::vector<Continuation>& one = asked.emplace_back();
    for (const std::string& ending : choice.endings)
      one.push_back(
          scorer.continuation(choice.context, apart || is_blank(ending.front()) ? ending : " " + ending, where));
  }
  std::vector<ChoiceScore> scores(asked.size());
  scorer.for_each_item(static_cast<std::int64_t>(asked.size()), reporter, [&](std::int64_t i) {
    const auto item = static_cast<std::size_t>(i);
    ChoiceScore& score = scores[item];
    std::vector<double> by_byte;
    for (const std::vector<TokenScore>& tokens : scorer.score(asked[item], i)) {
      const std::string& ending = choices.items[item].endings[by_byte.size()];
      score.losses.push_back(total_loss(tokens));
      by_byte.push_back(score.losses.back() / static_cast<double>(ending.size()));
    }
    score.guess = least(score.losses);
    score.guess_norm = least(by_byte);
    for (const Continuation& ending : asked[item]) score.truncated = score.truncated || ending.truncated;
  });
  return scores;
}

ChoiceSummary summary(const Choices& choices, const std::vector<ChoiceScore>& scores) {
  std::vector<double> right, right_norm;
  ChoiceSummary out;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    ++out.items;
    out.truncated += scores[i].truncated ? 1 : 0;
    right.push_back(scores[i].guess == choices.items[i].label ? 1 : 0);
    right_norm.push_back(scores[i].guess_norm == choices.items[i].label ? 1 : 0);
  }
  out.acc = mean_of(right);
  out.acc_norm = mean_of(right_norm);
  return out;
}

} // namespace noether::evaluation
