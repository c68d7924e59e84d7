// Validation loss. Threads share windows, not matrix products: a product split over threads would sum in another order,
// and small models would wait for each other at every layer.
#include "evaluation/loss.h"

#include "base/choice.h"
#include "base/error.h"
#include "base/number.h"
#include "base/threads.h"
#include "evaluation/score.h"
#include "evaluation/serial.h"
#include "models/model.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>
#include <vector>

namespace noether::evaluation {
namespace {

constexpr std::array kPrefixes{"auto", "end-of-text", "none"};

/// The tokens as the model sees them: an input before each target. With a prefix target i is token i, and its input the
/// one before it, which is the prefix for the first; without one target i is token i + 1.
struct Data {
  const text::TokenFile& tokens;
  std::optional<std::int64_t> prefix;
  std::int64_t targets = 0;

  std::int64_t first() const { return prefix ? 0 : 1; } ///< the token that is target 0

  /// Inputs [begin, end) and one more, the last one's target: end - begin + 1 ids.
  void read(std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& out) const {
    out.resize(static_cast<std::size_t>(end - begin + 1));
    const std::int64_t skip = prefix && begin == 0 ? 1 : 0; // the prefix is not in the file
    if (skip == 1) out[0] = *prefix;
    tokens.read(static_cast<std::uint64_t>(begin + skip - (prefix ? 1 : 0)),
                static_cast<std::uint64_t>(end - begin + 1 - skip), out.data() + skip);
  }
};

Data data_of(const text::TokenFile& tokens, const LossOptions& options) {
  const auto& end_of_text = tokens.tokenizer().end_of_text;
  if (options.prefix == Prefix::end_of_text && !end_of_text)
    throw Error("{}: its tokenizer has no end-of-text token to begin with", tokens.name());
  Data data{tokens, {}};
  if (options.prefix != Prefix::none && end_of_text) data.prefix = *end_of_text;
  data.targets = static_cast<std::int64_t>(tokens.size()) - data.first();
  if (options.limit > 0) data.targets = std::min(data.targets, options.limit);
  if (data.targets < 1)
    throw Error("{}: no token to score: it holds {}{}", tokens.name(), tokens.size(),
                tokens.size() == 1 ? ", and nothing stands before that one" : "");
  return data;
}

void check(const std::string& name, const architecture::Config& config, const std::optional<text::Tokenizer>& tokenizer,
           const text::TokenFile& tokens, const LossOptions& options) {
  if (tokenizer && text::digest(*tokenizer) != tokens.tokenizer_digest())
    throw Error("{}: tokens of another tokenizer than that of {} ({:.12} and {:.12})", tokens.name(), name,
                tokens.tokenizer_digest(), text::digest(*tokenizer));
  if (options.window > config.context)
    throw Error("{}: a window of {} is longer than its context of {}", name, options.window, config.context);
  const std::int64_t window = options.window > 0 ? options.window : config.context;
  if (options.stride > window)
    throw Error("{}: a stride of {} skips tokens of a window of {}", name, options.stride, window);
  data_of(tokens, options);
}

/// Shows how far it is, and how long it will take; the threads take turns.
class Progress {
public:
  Progress(Reporter& reporter, const std::string& name, std::int64_t targets)
      : reporter_(reporter), name_(name), targets_(static_cast<double>(targets)) {}

  void add(std::int64_t scored) {
    const std::lock_guard<std::mutex> lock(guard_);
    done_ += static_cast<double>(scored);
    if (done_ < targets_ && reporter_.progress_due())
      reporter_.progress(fmt::format("{}  {} of {} tokens  {}/s  {} left", name_, human_count(done_),
                                     human_count(targets_), human_count(done_ / seconds()),
                                     human_duration(seconds() * (targets_ - done_) / done_)));
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

private:
  using Clock = std::chrono::steady_clock;
  std::mutex guard_;
  Reporter& reporter_;
  const std::string& name_;
  double targets_, done_ = 0;
  Clock::time_point start_ = Clock::now();
};

} // namespace

Prefix prefix_of(std::string_view name) { return choice_of<Prefix>(name, kPrefixes, "prefix"); }

void check_fit(const store::FileReader& checkpoint, const text::TokenFile& tokens, const LossOptions& options) {
  checkpoint.expect(store::kCheckpointFile);
  std::optional<text::Tokenizer> tokenizer;
  if (checkpoint.has("/tokenizer")) tokenizer = text::read_tokenizer(checkpoint);
  check(checkpoint.name(), architecture::config_from_json(checkpoint.text("/configuration"), checkpoint.name()),
        tokenizer, tokens, options);
}

Loss evaluate_loss(architecture::Checkpoint& checkpoint, const text::TokenFile& tokens, const LossOptions& options,
                   Reporter& reporter) try {
  const architecture::Config& config = checkpoint.config;
  check(checkpoint.name, config, checkpoint.tokenizer, tokens, options);
  const Data data = data_of(tokens, options);

  Loss row;
  row.window = options.window > 0 ? options.window : config.context;
  row.stride = options.stride > 0 ? options.stride : row.window;
  row.prefixed = data.prefix.has_value();
  const bool broken = config.symmetry_break != architecture::Break::none;
  row.biases = broken ? name_of(options.biases) : name_of(Biases::none);

  stop_torch_threads();
  models::Model model = models::bind(config, checkpoint.parameters);
  model.precision = options.precision;

  /// The losses of a window's scored targets, and the ids of those.
  struct Scored {
    std::vector<float> losses;
    std::vector<std::int64_t> ids;
  };
  const auto score = [&](std::int64_t k) {
    const Window at = window_at(k, data.targets, row.window, row.stride);
    std::vector<std::int64_t> ids;
    data.read(at.begin, at.end, ids);
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] >= config.vocab_size)
        throw Error("{}: token {} is {}, beyond the vocabulary of {}, which has {}", tokens.name(),
                    at.begin + static_cast<std::int64_t>(i) - (row.prefixed ? 1 : 0), ids[i], checkpoint.name,
                    config.vocab_size);
    const std::int64_t before = at.scored - at.begin; // inputs that are context alone
    const at::Tensor all = at::from_blob(ids.data(), {static_cast<std::int64_t>(ids.size())}, at::kLong);
    const at::Tensor states =
        models::hidden(model, all.slice(0, 0, -1).unsqueeze(0),
                       step_biases(config, options.biases, options.seed, static_cast<std::uint64_t>(k)));
    const at::Tensor losses =
        models::head_token_losses(states[0].slice(0, before), model.head, all.slice(0, before + 1), model.precision);
    const float* values = losses.const_data_ptr<float>();
    return Scored{{values, values + losses.numel()}, {ids.begin() + before + 1, ids.end()}};
  };

  std::vector<std::int64_t> text_bytes;
  for (std::uint32_t id = 0; id < tokens.tokenizer().vocab_size(); ++id)
    text_bytes.push_back(tokens.tokenizer().text_bytes(id));

  LossSums sums(data.targets, data.first(), tokens.documents());
  Progress progress(reporter, checkpoint.name, data.targets);
  const std::int64_t windows = window_count(data.targets, row.window, row.stride);
  // In rounds, so that memory does not grow with the data; long ones, so that threads seldom wait for a round's last.
  constexpr std::int64_t kRound = 512;
  std::vector<Scored> round;
  for (std::int64_t begin = 0; begin < windows; begin += kRound) {
    round.assign(static_cast<std::size_t>(std::min(kRound, windows - begin)), {});
    parallel_for(static_cast<std::int64_t>(round.size()), options.threads, [&](std::int64_t i) {
      const TensorThread thread;
      Scored& scored = round[static_cast<std::size_t>(i)];
      scored = score(begin + i);
      progress.add(static_cast<std::int64_t>(scored.losses.size()));
    });
    for (const Scored& scored : round)
      for (std::size_t i = 0; i < scored.losses.size(); ++i)
        sums.add(scored.losses[i], text_bytes[static_cast<std::size_t>(scored.ids[i])]);
  }
  sums.finish();
  if (!std::isfinite(sums.loss()))
    throw Error("{}: its loss on {} is not finite: {}", checkpoint.name, tokens.name(), sums.loss());

  row.seconds = progress.seconds();
  row.tokens = sums.tokens();
  row.bytes = sums.bytes();
  row.loss = sums.loss();
  row.standard_error = sums.standard_error();
  row.units = sums.units();
  row.over_documents = sums.over_documents();
  row.perplexity = std::exp(row.loss);
  row.bits_per_byte = sums.bits_per_byte();
  row.min_batch_4096 = sums.min_batch_4096();
  return row;
} catch (const c10::Error& error) {
  throw Error("{}: {}", checkpoint.name, error.what_without_backtrace());
}

} // namespace noether::evaluation
