#include "architecture/presets.h"
#include "base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

using namespace noether;
using namespace noether::architecture;

// GPT-2's published counts with 1024 positions and 50257 tokens, the head tied: 124,439,808 and so on (its model card).
TEST(Presets, HaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(parameter_count(describe("gpt2-124m", {})), 124'439'808);
  EXPECT_EQ(parameter_count(describe("gpt2-355m", {})), 354'823'168);
  EXPECT_EQ(parameter_count(describe("gpt2-774m", {})), 774'030'080);
  // By hand: 2 V W + L (4 W W + 3 W H + 2 W) + W with V = 32000, W = 768, L = 12, H = 2048.
  EXPECT_EQ(parameter_count(describe("llama-124m", {})),
            2 * 32000 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 2048 + 2 * 768) + 768);
}

TEST(Parameters, LieEndToEndUnderDifferentNames) {
  Config config = describe("llama", {.layers = 3, .heads = 4, .kv_heads = 2, .width = 32});
  config.biases = true;
  config.activation = Activation::prelu;
  std::set<std::string> names;
  std::int64_t end = 0;
  for (const Parameter& parameter : parameters(config)) {
    EXPECT_EQ(parameter.offset, end);
    end += parameter.count;
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
  }
  EXPECT_EQ(parameter_count(config), end);
}

TEST(Describe, SizesFollowFromEachOther) {
  const Config gpt2 = describe("gpt2", {.layers = 4, .width = 128});
  EXPECT_EQ(gpt2.heads, 2);
  EXPECT_EQ(gpt2.head_width, 64);
  EXPECT_EQ(gpt2.hidden, 512);
  const Config llama = describe("llama", {.heads = 4, .width = 100});
  EXPECT_EQ(llama.hidden, 320); // 8 * 100 / 3 = 266, rounded up to a multiple of 64
  EXPECT_EQ(llama.kv_heads, 4);
  const Config narrow = describe("gpt2", {.heads = 3, .width = 128, .head_width = 16}); // heads need not fill the width
  EXPECT_EQ(narrow.heads * narrow.head_width, 48);
}

TEST(Describe, SaysWhatCannotBe) {
  const auto message = [](const char* name, const Sizes& sizes) {
    try {
      validate(describe(name, sizes));
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("gpt2", {.heads = 3, .width = 128}),
            "3 heads do not divide a width of 128 (set --heads, or --head-width)");
  EXPECT_EQ(message("gpt2", {.heads = 4, .kv_heads = 3, .width = 128}), "3 key/value heads do not divide 4 heads");
  EXPECT_EQ(message("gpt3", {}), "unknown architecture gpt3 (did you mean gpt2?)");
}

TEST(Configuration, SurvivesJson) {
  Config config = describe("llama", {.layers = 2, .heads = 4, .kv_heads = 2, .width = 64});
  config.rope_fraction = 0.5;
  config.symmetry_break = Break::qkv;
  config.q_bias = {{0.1, 0.2}, {0.3, 0.4}};
  config.k_bias = {{0.25}, {0}};
  config.v_bias.means.assign(32, 0.5); // 2 key/value heads of 16
  config.bias_per = BiasPer::head;
  config.bias_directions = 3;
  config.bias_seed = 5;
  config.norm_epsilon = 1e-6;
  const std::string json = to_json(config).dump();
  EXPECT_EQ(to_json(config_from_json(json, "x")).dump(), json);
}

TEST(Configuration, SpreadsABiasOverHeadsAndComponents) {
  EXPECT_EQ((BiasDistribution{{0.5}, {1}}.mean(7, 8, 3)), 0.5);
  const BiasDistribution range{{0.5}, {0.05, 0.15}};
  EXPECT_DOUBLE_EQ(range.deviation(0, 64), 0.05);
  EXPECT_DOUBLE_EQ(range.deviation(63, 64, 3), 0.15);
  EXPECT_DOUBLE_EQ(range.deviation(1, 3), 0.1);
  const BiasDistribution one_each{{0, 1, 2, 3}, {1}};
  EXPECT_EQ(one_each.mean(2, 4, 1), 2);
  EXPECT_EQ(one_each.mean(1, 2, 1), 3);

  Config config = describe("gpt2", {.layers = 1, .heads = 2, .width = 8, .context = 8, .vocab_size = 16});
  config.symmetry_break = Break::q;
  config.q_bias.means = {1, 2, 3};
  EXPECT_THROW(validate(config), UsageError);
  config.q_bias.means = {1, 2, 3, 4, 5, 6, 7, 8}; // of each head
  EXPECT_THROW(validate(config), UsageError);
  config.bias_per = BiasPer::head;
  EXPECT_NO_THROW(validate(config));
  config.q_bias.deviations = {0.5, -0.5};
  EXPECT_THROW(validate(config), UsageError);
}

TEST(Configuration, NamesTheFieldThatIsWrong) {
  const auto message = [](const std::function<void(nlohmann::ordered_json&)>& change) {
    nlohmann::ordered_json json = to_json(describe("gpt2", {}));
    change(json);
    try {
      config_from_json(json.dump(), "model.h5");
    } catch (const UsageError&) {
      return std::string("a misuse, but it is the file that is wrong");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([](auto& json) { json["layers"] = -1; }),
            "model.h5: configuration: layers: expected a positive integer of at most 16777216, found -1");
  EXPECT_EQ(message([](auto& json) { json["layers"] = 1e15; }),
            "model.h5: configuration: layers: expected a positive integer of at most 16777216, found 1e+15");
  EXPECT_EQ(message([](auto& json) { json.erase("width"); }), "model.h5: configuration: no field width");
  EXPECT_EQ(message([](auto& json) { json["colour"] = "red"; }), "model.h5: configuration: unknown field colour");
  EXPECT_EQ(message([](auto& json) { json["activation"] = "gelu_tanh"; }),
            "model.h5: configuration: activation: expected gelu, gelu-tanh, relu, silu, prelu, found gelu_tanh (did "
            "you mean gelu-tanh?)");
  EXPECT_EQ(message([](auto& json) { json["kv_heads"] = 5; }),
            "model.h5: configuration: 5 key/value heads do not divide 12 heads");
}

// Each matrix is used once a token: two operations a weight. The embedding is looked up, not multiplied, but is the
// head as well here.
TEST(Flops, AreTwoAWeightAndTheScores) {
  const Config config = describe("gpt2-124m", {});
  double weights = 0;
  for (const Parameter& parameter : parameters(config))
    if (parameter.is_matrix() && parameter.name != "embedding/positions")
      weights += static_cast<double>(parameter.count);
  const Flops flops = flops_per_token(config, 512);
  EXPECT_DOUBLE_EQ(flops.forward, 2 * weights + 12 * 2.0 * 768 * 512);
  EXPECT_DOUBLE_EQ(flops.train, 3 * flops.forward);
}

TEST(Parameters, ExpertsAreMatricesOfTheirOwn) {
  Config config =
      describe("llama", {.layers = 1, .heads = 2, .width = 8, .hidden = 12, .context = 8, .vocab_size = 16});
  config.experts = 3;
  for (const Parameter& parameter : parameters(config)) {
    const bool of_expert = parameter.name.starts_with("layers/0/mlp/W_") && !parameter.name.ends_with("W_router");
    EXPECT_EQ(parameter.matrices, of_expert ? 3 : 1) << parameter.name;
    const auto [rows, columns] = parameter.matrix_shape();
    const std::string shape = fmt::format("{} x {}", rows, columns);
    EXPECT_TRUE(!parameter.name.ends_with("W_up") || shape == "12 x 8") << shape;
    EXPECT_TRUE(!parameter.name.ends_with("W_down") || shape == "8 x 12") << shape;
    EXPECT_TRUE(!parameter.name.ends_with("W_router") || shape == "3 x 8") << shape;
    EXPECT_EQ(rows * columns * parameter.matrices, parameter.is_matrix() ? parameter.count : 0);
  }
}
