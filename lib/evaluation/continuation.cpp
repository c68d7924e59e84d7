// Scores of continuations. Every item is computed by itself on one thread, as windows are in loss.cpp; endings of one
// context share the pass over it, which a cache of keys and values holds.
#include "evaluation/continuation.h"

#include "base/error.h"
#include "base/number.h"
#include "base/threads.h"
#include "evaluation/score.h"
#include "evaluation/serial.h"
#include "text/split.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace noether::evaluation {
namespace {

const text::Tokenizer& tokenizer_of(const architecture::Checkpoint& checkpoint) {
  if (!checkpoint.tokenizer) throw Error("{}: it has no tokenizer to read with", checkpoint.name);
  return *checkpoint.tokenizer;
}

/// [1, end - begin] int64 over these ids.
at::Tensor view(const std::vector<std::int64_t>& ids, std::int64_t begin, std::int64_t end) {
  return at::from_blob(const_cast<std::int64_t*>(ids.data()) + begin, {1, end - begin}, at::kLong);
}

/// How many inputs all of a group have in common, before any that predicts a token that is asked for.
std::int64_t shared_inputs(std::span<const Continuation> group) {
  const std::vector<std::int64_t>& first = group.front().ids;
  std::int64_t shared = group.front().asked - 1;
  for (const Continuation& other : group.subspan(1)) {
    shared = std::min(shared, other.asked - 1);
    const auto end = std::mismatch(first.begin(), first.begin() + shared, other.ids.begin(), other.ids.end()).first;
    shared = end - first.begin();
  }
  return shared;
}

} // namespace

double total_loss(std::span<const TokenScore> scores) {
  double sum = 0;
  for (const TokenScore& score : scores) sum += score.loss;
  return sum;
}

Mean mean_of(std::span<const double> values) {
  RatioEstimate estimate;
  for (const double value : values) estimate.add(value, 1);
  return {estimate.ratio(), estimate.standard_error()};
}

ContinuationScorer::ContinuationScorer(architecture::Checkpoint& checkpoint, const ScoringOptions& options)
    : name_(checkpoint.name), options_(options), tokenizer_(tokenizer_of(checkpoint)), encoder_(tokenizer_) {
  if (options.prefix == Prefix::end_of_text && !tokenizer_.end_of_text)
    throw Error("{}: its tokenizer has no end-of-text token to begin with", name_);
  stop_torch_threads();
  model_ = models::bind(checkpoint.config, checkpoint.parameters);
  model_.precision = options.precision;
}

Continuation ContinuationScorer::continuation(std::string_view context, std::string_view text,
                                              const std::string& where) {
  if (text.empty()) throw Error("{}: what is to be predicted is empty", where);
  const text::SplitText split = text::encode_split(encoder_, tokenizer_, context, text);
  std::vector<std::int64_t> ids(split.ids.begin(), split.ids.end());
  auto asked = static_cast<std::int64_t>(split.second);
  if (asked == 0 && !tokenizer_.end_of_text)
    throw Error("{}: nothing stands before what is to be predicted, and the tokenizer of {} has no end-of-text token",
                where, name_);
  if (tokenizer_.end_of_text && (asked == 0 || options_.prefix != Prefix::none)) {
    ids.insert(ids.begin(), *tokenizer_.end_of_text);
    ++asked;
  }
  return fitted(std::move(ids), asked, where);
}

Continuation ContinuationScorer::sentence(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> ids;
  if (options_.prefix != Prefix::none && tokenizer_.end_of_text) ids.push_back(*tokenizer_.end_of_text);
  for (const std::uint32_t id : encoder_.encode(text)) ids.push_back(id);
  if (ids.size() < 2) throw Error("{}: \"{}\" is too short to be scored", where, text);
  const std::size_t most = static_cast<std::size_t>(model_.config.context) + 1;
  const bool truncated = ids.size() > most;
  if (truncated) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  return {std::move(ids), 1, truncated};
}

Continuation ContinuationScorer::fitted(std::vector<std::int64_t> ids, std::int64_t asked,
                                        const std::string& where) const {
  const std::int64_t excess = static_cast<std::int64_t>(ids.size()) - 1 - model_.config.context;
  if (excess <= 0) return {std::move(ids), asked, false};
  if (excess >= asked)
    throw Error("{}: {} tokens to predict are more than the context of {}, which is {}", where,
                static_cast<std::int64_t>(ids.size()) - asked, name_, model_.config.context);
  ids.erase(ids.begin(), ids.begin() + excess);
  return {std::move(ids), asked - excess, true};
}

std::vector<TokenScore> ContinuationScorer::scores(const at::Tensor& states,
                                                   std::span<const std::int64_t> targets) const {
  constexpr std::int64_t kRows = 64; // of logits at a time
  std::vector<TokenScore> out;
  for (std::int64_t begin = 0; begin < states.size(0); begin += kRows) {
    const at::Tensor logits = models::logits(model_, states.slice(0, begin, begin + kRows)).to(at::kFloat).contiguous();
    for (std::int64_t row = 0; row < logits.size(0); ++row) {
      const std::span<const float> all(logits.const_data_ptr<float>() + row * logits.size(1),
                                       static_cast<std::size_t>(logits.size(1)));
      const auto target = static_cast<std::size_t>(targets[static_cast<std::size_t>(begin + row)]);
      const double most = *std::max_element(all.begin(), all.end());
      double sum = 0;
      for (const float logit : all) sum += std::exp(static_cast<double>(logit) - most);
      TokenScore score{most + std::log(sum) - all[target], 1};
      if (!std::isfinite(score.loss)) throw Error("{}: the loss of a token is not finite", name_);
      // A vocabulary may be padded: ids beyond the tokenizer's stand for nothing.
      for (std::size_t id = 0; id < tokenizer_.vocab_size(); ++id)
        if (all[id] > all[target] || (all[id] == all[target] && id < target)) ++score.rank;
      out.push_back(score);
    }
  }
  return out;
}

std::vector<std::vector<TokenScore>> ContinuationScorer::score(std::span<const Continuation> group,
                                                               std::int64_t item) const {
  const models::StepBiases biases =
      step_biases(model_.config, options_.biases, options_.seed, static_cast<std::uint64_t>(item));
  const std::int64_t shared = group.size() > 1 ? shared_inputs(group) : 0;
  models::Cache cache;
  if (shared > 0) {
    architecture::Config sizes = model_.config;
    sizes.context = 0; // no more positions than the longest has
    for (const Continuation& one : group)
      sizes.context = std::max(sizes.context, static_cast<std::int64_t>(one.ids.size()) - 1);
    cache = models::make_cache(sizes, 1);
    models::hidden(model_, view(group.front().ids, 0, shared), biases, &cache);
  }
  std::vector<std::vector<TokenScore>> out;
  for (const Continuation& one : group) {
    cache.length = shared; // what another wrote behind it is overwritten
    const at::Tensor states =
        models::hidden(model_, view(one.ids, shared, static_cast<std::int64_t>(one.ids.size()) - 1), biases,
                       shared > 0 ? &cache : nullptr);
    out.push_back(scores(states[0].slice(0, one.asked - 1 - shared),
                         std::span(one.ids).subspan(static_cast<std::size_t>(one.asked))));
  }
  return out;
}

void ContinuationScorer::for_each_item(std::int64_t count, Reporter& reporter,
                                       const std::function<void(std::int64_t)>& work) const try {
  std::mutex guard;
  std::int64_t done = 0;
  parallel_for(count, options_.threads, [&](std::int64_t i) {
    const TensorThread thread;
    work(i);
    const std::lock_guard<std::mutex> lock(guard);
    if (++done < count && reporter.progress_due())
      reporter.progress(fmt::format("{}  {} of {} items", name_, human_count(static_cast<double>(done)),
                                    human_count(static_cast<double>(count))));
  });
} catch (const c10::Error& error) {
  throw Error("{}: {}", name_, error.what_without_backtrace());
}

} // namespace noether::evaluation
