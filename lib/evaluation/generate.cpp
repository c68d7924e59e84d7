// Generation with a key/value cache. There is no batching of sequences: a batch of another size would round otherwise,
// and change a text in the middle.
#include "evaluation/generate.h"

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "evaluation/serial.h"
#include "text/bpe.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

namespace noether::evaluation {
namespace {

/// In nats: logits[id] - log(sum exp(logits)).
double log_probability(std::span<const float> logits, std::uint32_t id) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return static_cast<double>(logits[id]) - most - std::log(sum);
}

/// Lets texts out in their order: that whose turn it is at once, the others when it has come.
class Ordered {
public:
  explicit Ordered(const GenerateSink& sink) : sink_(sink) {}

  void text(std::int64_t number, std::string_view more) {
    const std::lock_guard<std::mutex> lock(guard_);
    if (number == turn_)
      sink_.text(more);
    else
      waiting_[number].text += more;
  }
  void end(std::int64_t number, Generation&& generation) {
    const std::lock_guard<std::mutex> lock(guard_);
    waiting_[number].end = std::move(generation);
    while (true) {
      const auto found = waiting_.find(turn_);
      if (found == waiting_.end()) return;
      if (!found->second.text.empty()) sink_.text(std::exchange(found->second.text, {}));
      if (!found->second.end) return;
      sink_.end(*found->second.end);
      waiting_.erase(found);
      ++turn_;
    }
  }

private:
  struct Waiting {
    std::string text;
    std::optional<Generation> end;
  };
  const GenerateSink& sink_;
  std::mutex guard_;
  std::int64_t turn_ = 0;
  std::map<std::int64_t, Waiting> waiting_;
};

/// A sequence under way: what it was given, and the model's state after it.
class Sequence {
public:
  Sequence(const models::Model& model, const models::StepBiases& biases)
      : model_(model), biases_(biases), cache_(models::make_cache(model.config, 1)) {}

  /// The logits after these tokens of it. `restarts` counts the times that the context was full.
  at::Tensor next(std::span<const std::uint32_t> more, std::int64_t& restarts) {
    ids_.insert(ids_.end(), more.begin(), more.end());
    auto pass = static_cast<std::int64_t>(more.size());
    if (cache_.length + pass > model_.config.context) {
      // All of them again: what was computed before counts positions from another start.
      pass = std::max<std::int64_t>(1, model_.config.context / 2);
      ids_.erase(ids_.begin(), ids_.end() - pass);
      cache_.length = 0;
      ++restarts;
    }
    const at::Tensor tokens = at::from_blob(ids_.data() + ids_.size() - pass, {1, pass}, at::kLong);
    const at::Tensor states = models::hidden(model_, tokens, biases_, &cache_);
    return models::logits(model_, states.slice(1, pass - 1)).reshape({-1}).contiguous();
  }

private:
  const models::Model& model_;
  const models::StepBiases& biases_;
  models::Cache cache_;
  std::vector<std::int64_t> ids_; ///< since the last restart
};

} // namespace

std::uint32_t choose(std::span<const float> logits, const GenerateOptions& options, double uniform) {
  const auto most = std::max_element(logits.begin(), logits.end()); // the first of equals
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); }))
    throw Error("the model's logits are not finite");
  if (options.temperature == 0) return static_cast<std::uint32_t>(most - logits.begin());

  std::vector<double> weights(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    weights[i] = std::exp((static_cast<double>(logits[i]) - static_cast<double>(*most)) / options.temperature);
  const auto size = static_cast<std::int64_t>(logits.size());
  if ((options.top_k > 0 && options.top_k < size) || options.top_p < 1) {
    std::vector<std::uint32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const auto likelier = [&](std::uint32_t a, std::uint32_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    const std::int64_t k = options.top_k > 0 ? std::min(options.top_k, size) : size;
    std::partial_sort(order.begin(), order.begin() + k, order.end(), likelier);
    double total = 0;
    for (std::int64_t i = 0; i < k; ++i) total += weights[order[static_cast<std::size_t>(i)]];
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      double& weight = weights[order[static_cast<std::size_t>(i)]];
      // The likeliest stays, however small the share.
      if (i >= k || (i > 0 && sum >= options.top_p * total))
        weight = 0;
      else
        sum += weight;
    }
  }
  // In the order of ids, so that a top_k or top_p that leaves nothing out changes no draw.
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    last = i;
    if (left < weights[i]) break;
    left -= weights[i];
  }
  return static_cast<std::uint32_t>(last);
}

void continue_prompt(const models::Model& model, const text::Tokenizer& tokenizer, const GenerateOptions& options,
                     Generation& g, const std::function<void(std::string_view)>& more) {
  const auto prompt_number = static_cast<std::uint64_t>(g.prompt_number);
  const models::StepBiases biases = step_biases(model.config, options.biases, options.seed, prompt_number);
  const Random random(options.seed, Purpose::kSample, prompt_number, static_cast<std::uint32_t>(g.sample));
  text::Utf8Stream utf8;
  more(utf8.push(g.prompt));
  const auto say = [&](const std::string& text) {
    g.text += text;
    more(text);
  };

  Sequence sequence(model, biases);
  at::Tensor logits = g.prompt_ids.empty() ? sequence.next({&tokenizer.end_of_text.value(), 1}, g.restarts)
                                           : sequence.next(g.prompt_ids, g.restarts);
  g.finish = "length";
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::span<const float> all(logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
    // A vocabulary may be padded: ids beyond the tokenizer's stand for nothing, and are not drawn.
    const std::uint32_t id =
        choose(all.first(tokenizer.vocab_size()), options, random.uniform(static_cast<std::uint64_t>(i)));
    g.ids.push_back(id);
    g.log_probability += log_probability(all, id);
    if (options.stop && id == tokenizer.end_of_text) {
      g.finish = "end-of-text";
      break;
    }
    say(utf8.push(tokenizer.tokens[id]));
    if (i + 1 < options.tokens) logits = sequence.next({&id, 1}, g.restarts);
  }
  say(utf8.finish());
}

void generate(architecture::Checkpoint& checkpoint, const std::function<std::optional<std::string>()>& next_prompt,
              const GenerateOptions& options, const GenerateSink& sink) try {
  if (!checkpoint.tokenizer) throw Error("{}: it has no tokenizer to write with", checkpoint.name);
  const text::Tokenizer& tokenizer = *checkpoint.tokenizer;
  stop_torch_threads();
  const models::Model model = models::bind(checkpoint.config, checkpoint.parameters);

  Ordered ordered(sink);
  std::mutex source;
  std::optional<std::string> prompt;
  std::int64_t prompts = 0, sample = options.samples, texts = 0;
  bool over = false;
  /// The next text to make, with its number; the prompt's samples follow each other.
  const auto take = [&](Generation& generation) -> std::optional<std::int64_t> {
    const std::lock_guard<std::mutex> lock(source);
    if (sample == options.samples && !over) {
      prompt = next_prompt();
      over = !prompt;
      sample = 0;
      ++prompts;
    }
    if (over) return std::nullopt;
    generation.prompt_number = prompts - 1;
    generation.sample = sample++;
    generation.prompt = *prompt;
    return texts++;
  };

  const auto work = [&] {
    const TensorThread thread;
    text::Encoder encoder(tokenizer);
    while (true) {
      Generation g;
      const std::optional<std::int64_t> number = take(g);
      if (!number) return;
      g.prompt_ids = encoder.encode(g.prompt);
      if (g.prompt_ids.empty() && !tokenizer.end_of_text)
        throw Error("{}: an empty prompt needs an end-of-text token, and its tokenizer has none", checkpoint.name);
      continue_prompt(model, tokenizer, options, g, [&](std::string_view more) { ordered.text(*number, more); });
      ordered.end(*number, std::move(g));
    }
  };
  parallel_for(options.threads, options.threads, [&](std::int64_t) {
    try {
      work();
    } catch (...) { // so that the other threads begin nothing more
      const std::lock_guard<std::mutex> lock(source);
      over = true;
      throw;
    }
  });
} catch (const c10::Error& error) {
  throw Error("{}: {}", checkpoint.name, error.what_without_backtrace());
}

} // namespace noether::evaluation
