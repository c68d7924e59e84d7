// The model family against other programs' float64 logits, and its gradients against finite differences.
#include "models/model.h"

#include "architecture/presets.h"
#include "base/error.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <functional>

using namespace noether;
using namespace noether::architecture;
using namespace noether::models;

namespace {

std::string golden(const std::string& file) { return std::string(NOETHER_TEST_DATA) + "/models/" + file; }

double largest(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

template <class T> at::Tensor array(const store::FileReader& file, const std::string& path) {
  const std::vector<T> values = file.read<T>(path);
  const store::Shape shape = file.info(path).shape;
  const auto type = std::is_same_v<T, double> ? at::kDouble : at::kLong;
  return at::from_blob(const_cast<T*>(values.data()), std::vector<std::int64_t>(shape.begin(), shape.end()), type)
      .clone();
}

struct Golden {
  Checkpoint checkpoint;
  at::Tensor tokens, logits;

  explicit Golden(const std::string& name)
      : checkpoint(read_checkpoint(store::open_one(golden(name + ".h5"), store::kCheckpointFile), false)) {
    store::InputStream input(golden(name + "-expected.h5"));
    const store::FileReader expected = *input.next();
    tokens = array<std::int64_t>(expected, "/input_ids");
    logits = array<double>(expected, "/logits");
  }
};

/// A small model with every part that `name` and `change` ask for, and large enough weights that nothing is nearly
/// linear.
struct Small {
  Checkpoint checkpoint;
  Arena gradients;
  Model model;
  at::Tensor tokens, targets;

  explicit Small(
      const std::string& name, const std::function<void(Config&)>& change = [](Config&) {}) {
    Config config =
        describe(name, {.layers = 2, .heads = 4, .width = 32, .hidden = 48, .context = 16, .vocab_size = 50});
    change(config);
    validate(config);
    checkpoint = initialise(config, 5, 1);
    for (const Parameter& parameter : checkpoint.layout)
      if (parameter.is_matrix())
        for (float& x : checkpoint.parameters.span().subspan(static_cast<std::size_t>(parameter.offset),
                                                             static_cast<std::size_t>(parameter.count)))
          x *= 5;
    gradients = Arena(checkpoint.parameters.size());
    model = bind(config, checkpoint.parameters, &gradients);
    at::manual_seed(3);
    tokens = at::randint(50, {3, 16}, at::kLong);
    targets = at::randint(50, {3, 16}, at::kLong);
  }
};

const std::vector<std::pair<std::string, std::function<void(Config&)>>>& variants() {
  static const std::vector<std::pair<std::string, std::function<void(Config&)>>> list{
      {"gpt2", [](Config&) {}},
      {"gpt2",
       [](Config& c) {
         c.activation = Activation::prelu, c.symmetry_break = Break::qv, c.position = Position::rope,
         c.rope_fraction = 0.5;
       }},
      {"gpt2", [](Config& c) { c.activation = Activation::relu, c.tied_head = false, c.symmetry_break = Break::v; }},
      {"llama", [](Config& c) { c.kv_heads = 2, c.qk_norm = true; }},
      {"llama",
       [](Config& c) {
         c.kv_heads = 2, c.symmetry_break = Break::qkv, c.bias_per = architecture::BiasPer::head, c.learned_bias = true;
       }},
      // All experts for each token: which of them are taken is not differentiable.
      {"gpt2", [](Config& c) { c.activation = Activation::prelu, c.experts = c.experts_per_token = 3; }},
      {"llama", [](Config& c) { c.biases = true, c.experts = c.experts_per_token = 2, c.balance_loss = 0.5; }},
      {"llama",
       [](Config& c) {
         c.kv_heads = 1, c.biases = true, c.tied_head = true, c.activation = Activation::gelu, c.head_width = 6;
       }},
  };
  return list;
}

} // namespace

TEST(Golden, LogitsAreThoseOfOtherPrograms) {
  // Float32 against float64 through three layers: 1e-4 on logits of order 1.
  for (const char* name : {"gpt2-tiny", "llama-tiny-gqa", "symmetry-symmetric", "symmetry-bqbv"}) {
    Golden golden_model(name);
    const Model model = bind(golden_model.checkpoint.config, golden_model.checkpoint.parameters);
    const at::NoGradGuard guard;
    const at::Tensor tokens = golden_model.tokens.dim() == 1 ? golden_model.tokens.unsqueeze(0) : golden_model.tokens;
    const at::Tensor got = logits(model, hidden(model, tokens, mean_biases(model.config)));
    EXPECT_LT(largest(got.reshape(golden_model.logits.sizes()) - golden_model.logits), 1e-4) << name;
  }
}

TEST(Golden, BiasesMatterToTheirModel) {
  Golden broken("symmetry-bqbv");
  const Model model = bind(broken.checkpoint.config, broken.checkpoint.parameters);
  const at::NoGradGuard guard;
  const at::Tensor without =
      logits(model, hidden(model, broken.tokens.reshape({-1, broken.tokens.size(-1)}), no_biases(model.config)));
  EXPECT_GT(largest(without.reshape(broken.logits.sizes()) - broken.logits), 1e-2);
}

// Along the gradient the loss rises at the gradient's norm. The central difference errs by h^2 and by the loss'
// rounding over h, both below 1e-3 of it here.
TEST(Loss, GradientIsTheDerivative) {
  for (const auto& [name, change] : variants()) {
    Small small(name, change);
    const StepBiases biases = sampled_biases(small.model.config, 1, 2);
    loss(small.model, small.tokens, small.targets, biases, 1.0 / 48).backward();
    double norm = 0;
    for (const float g : small.gradients.span()) norm += static_cast<double>(g) * g;
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0.1);
    const auto at_distance = [&](double distance) {
      Arena moved(small.checkpoint.parameters.size());
      for (std::int64_t i = 0; i < moved.size(); ++i)
        moved.data()[i] =
            static_cast<float>(small.checkpoint.parameters.data()[i] + distance * small.gradients.data()[i] / norm);
      const Model model = bind(small.model.config, moved);
      return loss(model, small.tokens, small.targets, biases, 1.0 / 48).item<double>();
    };
    const double h = 2e-3;
    EXPECT_NEAR((at_distance(h) - at_distance(-h)) / (2 * h), norm, 1e-2 * norm)
        << name; // relu and prelu have kinks, of which some lie between the two points
  }
}

// Each tensor by itself, so that one that gets no gradient, or a wrong share of one, is found.
TEST(Loss, EveryParameterHasItsGradient) {
  for (const auto& [name, change] : variants()) {
    Small small(name, change);
    const StepBiases biases = mean_biases(small.model.config);
    loss(small.model, small.tokens, small.targets, biases, 1.0 / 48).backward();
    for (const Parameter& parameter : small.checkpoint.layout) {
      double norm = 0;
      for (std::int64_t i = 0; i < parameter.count; ++i)
        norm += std::pow(small.gradients.data()[parameter.offset + i], 2);
      norm = std::sqrt(norm);
      if (parameter.name.ends_with("_K") && !parameter.is_matrix()) {
        // Softmax does not see a key bias, unless RoPE turns it.
        if (small.model.config.rotated() == 0 || parameter.name.ends_with("break_K")) {
          EXPECT_LT(norm, 1e-5) << parameter.name;
        }
        continue;
      }
      ASSERT_GT(norm, 1e-4) << name << " " << parameter.name;
      const auto at_distance = [&](double distance) {
        Arena moved(small.checkpoint.parameters.size());
        std::copy(small.checkpoint.parameters.span().begin(), small.checkpoint.parameters.span().end(), moved.data());
        for (std::int64_t i = parameter.offset; i < parameter.offset + parameter.count; ++i)
          moved.data()[i] = static_cast<float>(moved.data()[i] + distance * small.gradients.data()[i] / norm);
        const Model model = bind(small.model.config, moved);
        return loss(model, small.tokens, small.targets, biases, 1.0 / 48).item<double>();
      };
      const double h = 5e-3;
      // The loss, near 5, is rounded to some 2e-7, divided by 2 h.
      EXPECT_NEAR((at_distance(h) - at_distance(-h)) / (2 * h), norm, 2e-2 * norm + 1e-4)
          << name << " " << parameter.name;
    }
  }
}

TEST(Loss, AccumulatesOverMicroBatchesToTheLargeBatch) {
  Small small("gpt2");
  const StepBiases biases = no_biases(small.model.config);
  loss(small.model, small.tokens, small.targets, biases, 1.0 / 48).backward();
  std::vector<float> whole(small.gradients.span().begin(), small.gradients.span().end());
  std::fill(small.gradients.span().begin(), small.gradients.span().end(), 0.0F);
  for (std::int64_t row = 0; row < 3; ++row)
    loss(small.model, small.tokens.slice(0, row, row + 1), small.targets.slice(0, row, row + 1), biases, 1.0 / 48)
        .backward();
  for (std::size_t i = 0; i < whole.size(); ++i)
    ASSERT_NEAR(small.gradients.data()[i], whole[i], 1e-6 + 1e-4 * std::abs(whole[i]));
}

TEST(Loss, ATargetOfMinusOneDoesNotCount) {
  Small small("llama");
  const StepBiases biases = no_biases(small.model.config);
  const at::Tensor each = token_losses(small.model, small.tokens, small.targets, biases);
  small.targets.select(1, 4).fill_(-1);
  const double expected = each.sum().item<double>() - each.select(1, 4).sum().item<double>();
  EXPECT_NEAR(loss(small.model, small.tokens, small.targets, biases, 1).item<double>(), expected, 1e-4 * expected);
  EXPECT_EQ(largest(token_losses(small.model, small.tokens, small.targets, biases).select(1, 4)), 0);
}

TEST(Cache, GoesOnWhereItStopped) {
  for (const auto& [name, change] : variants()) {
    Small small(name, change);
    const StepBiases biases = mean_biases(small.model.config);
    const at::NoGradGuard guard;
    const at::Tensor whole = hidden(small.model, small.tokens, biases);
    for (const std::vector<std::int64_t>& pieces : {std::vector<std::int64_t>{16}, {10, 1, 1, 4}, {1, 15}}) {
      Cache cache = make_cache(small.model.config, 3);
      std::int64_t begin = 0;
      for (const std::int64_t count : pieces) {
        const at::Tensor part = hidden(small.model, small.tokens.slice(1, begin, begin + count), biases, &cache);
        EXPECT_LT(largest(part - whole.slice(1, begin, begin + count)), 1e-5) << name;
        begin += count;
      }
      EXPECT_EQ(cache.length, 16);
    }
  }
}

TEST(Hidden, DoesNotLookAhead) {
  for (const auto& [name, change] : variants()) {
    Small small(name, change);
    const StepBiases biases = no_biases(small.model.config);
    const at::NoGradGuard guard;
    const at::Tensor before = hidden(small.model, small.tokens, biases);
    small.tokens.select(1, 9).fill_(7);
    const at::Tensor after = hidden(small.model, small.tokens, biases);
    EXPECT_LT(largest((after - before).slice(1, 0, 9)), 1e-6)
        << name; // blocks of another size may sum in another order
    EXPECT_GT(largest((after - before).slice(1, 9)), 1e-3) << name;
  }
}

TEST(Hidden, RefusesMoreThanItsContext) {
  Small small("gpt2");
  EXPECT_THROW(hidden(small.model, at::zeros({1, 17}, at::kLong), no_biases(small.model.config)), Error);
}

TEST(Biases, AreDrawnByStepAndLayer) {
  Config config = describe("gpt2", {.layers = 2, .width = 64});
  config.symmetry_break = Break::qv;
  const StepBiases one = sampled_biases(config, 1, 5), again = sampled_biases(config, 1, 5),
                   next = sampled_biases(config, 1, 6);
  EXPECT_TRUE(one.q[0].equal(again.q[0]));
  EXPECT_FALSE(one.q[0].equal(next.q[0]));
  EXPECT_FALSE(one.q[0].equal(one.q[1]));
  // The same draws whether or not the other kind is there.
  config.symmetry_break = Break::v;
  EXPECT_TRUE(sampled_biases(config, 1, 5).v[1].equal(one.v[1]));
  EXPECT_FALSE(sampled_biases(config, 1, 5).q[1].defined());

  // One vector a head, and keys, which come after the others.
  config.symmetry_break = Break::qkv;
  EXPECT_TRUE(sampled_biases(config, 1, 5).v[1].equal(one.v[1]));
  config.bias_per = architecture::BiasPer::head;
  config.heads = config.kv_heads = 2;
  config.head_width = 32;
  const at::Tensor heads = sampled_biases(config, 1, 5).k[0];
  EXPECT_EQ(heads.sizes(), (std::vector<std::int64_t>{config.kv_heads, config.head_width}));
  EXPECT_FALSE(heads[0].equal(heads[1]));
  config = describe("gpt2", {.layers = 2, .width = 64});
  config.symmetry_break = Break::v;

  // Mean 0.5 and a deviation of 0.05, over 4000 steps: within five standard errors.
  at::Tensor sum = at::zeros({1, 64}, at::kDouble), squares = at::zeros({1, 64}, at::kDouble);
  for (std::uint64_t step = 0; step < 4000; ++step) {
    const at::Tensor draw = sampled_biases(config, 9, step).v[0].to(at::kDouble) - 0.5;
    sum += draw;
    squares += draw * draw;
  }
  EXPECT_LT(largest(sum / 4000), 5 * 0.05 / std::sqrt(4000.0));
  EXPECT_LT(largest((squares / 4000).sqrt() - 0.05), 5 * 0.05 / std::sqrt(8000.0));
}

TEST(Biases, OfFixedDirectionsAreOneOfThem) {
  Config config = describe("gpt2", {.layers = 2, .width = 64});
  config.symmetry_break = Break::qv;
  config.bias_directions = 3;
  std::vector<at::Tensor> seen;
  std::vector<int> times;
  for (std::uint64_t step = 0; step < 300; ++step) {
    const at::Tensor q = sampled_biases(config, 7, step).q[1];
    const auto same = std::find_if(seen.begin(), seen.end(), [&](const at::Tensor& other) { return other.equal(q); });
    if (same == seen.end()) {
      seen.push_back(q);
      times.push_back(1);
    } else {
      ++times[static_cast<std::size_t>(same - seen.begin())];
    }
  }
  ASSERT_EQ(seen.size(), 3U);
  for (const int count : times) EXPECT_NEAR(count, 100, 41); // five standard deviations of 300 draws
  EXPECT_LT(largest(mean_biases(config).q[1] - (seen[0] + seen[1] + seen[2]) / 3), 1e-6); // float32 sums
  config.bias_seed = 1;
  EXPECT_FALSE(mean_biases(config).q[1].equal(seen[0]));
  EXPECT_GT(largest(mean_biases(config).q[1] - (seen[0] + seen[1] + seen[2]) / 3), 1e-2);
}

// A key bias adds the same to all scores of a query, which softmax takes away again: arXiv 2601.22257, section 2.
// Only rounding is left, of float32 scores that are larger by |q| |b|.
TEST(Biases, OfKeysChangeNothing) {
  for (const char* family : {"gpt2", "llama"}) {
    Small plain(family, [](Config&) {}), broken(family, [](Config&c) {
      c.symmetry_break = Break::k;
      c.k_bias = {{1.5}, {0.5}};
    });
    const at::NoGradGuard guard;
    const at::Tensor without = logits(plain.model, hidden(plain.model, plain.tokens, no_biases(plain.model.config)));
    const at::Tensor with =
        logits(broken.model, hidden(broken.model, plain.tokens, sampled_biases(broken.model.config, 1, 1)));
    EXPECT_LT(largest(with - without), 1e-5 * largest(without)) << family;
    EXPECT_GT(largest(with - without), 0) << family;
    // The same bias on queries is another model.
    const StepBiases keys = sampled_biases(broken.model.config, 1, 1);
    StepBiases queries = no_biases(broken.model.config);
    queries.q = keys.k;
    EXPECT_GT(largest(logits(plain.model, hidden(plain.model, plain.tokens, queries)) - without),
              1e-3 * largest(without));
  }
}

// All experts equal to the one MLP of another model: the mixture's output is that MLP's, as the weights of a row sum to
// 1; and a fourth of it where a row goes to one of four, between which a router of zeros cannot tell.
TEST(Mixture, OfEqualExpertsIsOneOfThem) {
  for (const std::int64_t taken : {3, 1})
    for (const char* family : {"gpt2", "llama"}) {
      Small one(family, [](Config&) {}), many(family, [&](Config&c) { c.experts = 4, c.experts_per_token = taken; });
      std::map<std::string, const Parameter*> by_name;
      for (const Parameter& parameter : one.checkpoint.layout) by_name[parameter.name] = &parameter;
      for (const Parameter& parameter : many.checkpoint.layout) {
        const auto same = by_name.find(parameter.name);
        for (std::int64_t i = 0; i < parameter.count; ++i) {
          float& to = many.checkpoint.parameters.data()[parameter.offset + i];
          if (same != by_name.end())
            to = one.checkpoint.parameters.data()[same->second->offset + i % same->second->count];
          else if (taken == 1)
            to = 0;
        }
      }
      const at::NoGradGuard guard;
      if (taken == 1)
        for (const Layer& layer : one.model.layers) {
          layer.W_down.mul_(0.25);
          if (layer.b_down.defined()) layer.b_down.mul_(0.25);
        }
      const StepBiases biases = no_biases(one.model.config);
      const at::Tensor expected = hidden(one.model, one.tokens, biases), got = hidden(many.model, one.tokens, biases);
      EXPECT_LT(largest(got - expected), 1e-5 * largest(expected)) << family << taken; // float32, other sums
    }
}

// One token in many rows, all to the same k of E experts: f_i = 1 / k for those, so the balance is E / k times their
// probabilities, which is above 1; a router of zeros has equal probabilities, hence 1.
TEST(Mixture, SaysHowUnequallyItsExpertsAreBusy) {
  Small small("gpt2", [](Config& c) { c.layers = 1, c.experts = 4, c.experts_per_token = 2; });
  const at::NoGradGuard guard;
  const StepBiases biases = no_biases(small.model.config);
  at::Tensor balance;
  hidden(small.model, at::zeros({1, 1}, at::kLong), biases, nullptr, &balance);
  EXPECT_GT(balance.item<double>(), 1);
  EXPECT_LE(balance.item<double>(), 2);
  small.model.layers[0].W_router.zero_();
  hidden(small.model, small.tokens, biases, nullptr, &balance);
  EXPECT_NEAR(balance.item<double>(), 1, 1e-6);
}

// However large W_Q and W_K become, the normalised queries and keys stay what they were.
TEST(QkNorm, MakesTheSizeOfQueriesAndKeysIrrelevant) {
  Small small("llama", [](Config& c) { c.qk_norm = true, c.norm_epsilon = 1e-12; });
  const at::NoGradGuard guard;
  const StepBiases biases = no_biases(small.model.config);
  const at::Tensor before = hidden(small.model, small.tokens, biases);
  const std::int64_t queries_and_keys =
      (small.model.config.heads + small.model.config.kv_heads) * small.model.config.head_width;
  for (const Layer& layer : small.model.layers) layer.W_QKV.slice(0, 0, queries_and_keys).mul_(32);
  EXPECT_LT(largest(hidden(small.model, small.tokens, biases) - before), 1e-5 * largest(before));
}

TEST(SmoothLoss, IsTheLoss) {
  for (const auto& [name, change] : variants()) {
    Small small(name, change);
    const StepBiases biases = sampled_biases(small.model.config, 1, 2);
    loss(small.model, small.tokens, small.targets, biases, 1.0 / 48).backward();
    const std::vector<float> gradient(small.gradients.span().begin(), small.gradients.span().end());
    std::fill(small.gradients.span().begin(), small.gradients.span().end(), 0.0F);
    small.model.twice_differentiable = true;
    smooth_loss(small.model, small.tokens, small.targets, biases, 1.0 / 48).backward();
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      difference = std::max(difference, std::abs(static_cast<double>(gradient[i] - small.gradients.span()[i])));
      norm = std::max(norm, std::abs(static_cast<double>(gradient[i])));
    }
    EXPECT_LT(difference, 1e-4 * norm) << name; // other sums in float32
  }
}
