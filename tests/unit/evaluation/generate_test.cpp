#include "evaluation/generate.h"

#include "base/error.h"
#include "evaluation/fixtures.h"
#include "text/bpe.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace noether::evaluation {
namespace {

/// All texts for these prompts, and what was shown of them in order.
struct Made {
  std::vector<Generation> texts;
  std::string shown;
};
Made make(architecture::Checkpoint& checkpoint, const std::vector<std::string>& prompts,
          const GenerateOptions& options) {
  Made made;
  std::size_t next = 0;
  generate(checkpoint, [&] { return next < prompts.size() ? std::optional(prompts[next++]) : std::nullopt; }, options,
           {[&](std::string_view text) { made.shown += text; },
            [&](const Generation& g) {
              made.shown += '\n';
              made.texts.push_back(g);
            }});
  return made;
}

/// Of the token after `ids`, by a forward pass of all of them without a cache.
std::vector<float> logits_after(const models::Model& model, const std::vector<std::uint32_t>& ids) {
  const at::NoGradGuard guard;
  std::vector<std::int64_t> wide(ids.begin(), ids.end());
  const at::Tensor logits = models::logits(model, models::hidden(model, at::tensor(wide).unsqueeze(0),
                                                                 models::mean_biases(model.config)))[0][-1]
                                .contiguous();
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
}

class GoldenGreedy : public testing::TestWithParam<const char*> {};

TEST_P(GoldenGreedy, IsTransformersContinuation) {
  const std::string path = std::string(NOETHER_TEST_DATA) + "/models/" + GetParam();
  store::InputStream stream(path + "-expected.h5");
  const auto ids = stream.next()->read<std::int64_t>("/greedy_ids");
  architecture::Checkpoint checkpoint =
      architecture::read_checkpoint(store::open_one(path + ".h5", store::kCheckpointFile), false);
  GenerateOptions options;
  options.temperature = 0;
  options.tokens = 20;
  options.stop = false;
  Generation g;
  g.prompt_ids.assign(ids.begin(), ids.begin() + 5);
  continue_prompt(models::bind(checkpoint.config, checkpoint.parameters), tokenizer(512), options, g, [](auto) {});
  EXPECT_EQ(g.ids, std::vector<std::uint32_t>(ids.begin() + 5, ids.end()));
  EXPECT_EQ(g.finish, "length");
}
INSTANTIATE_TEST_SUITE_P(Models, GoldenGreedy, testing::Values("gpt2-tiny", "llama-tiny-gqa"));

TEST(Generate, GreedyIsTheLargestLogitOfAPassWithoutCache) {
  for (const architecture::Position position : {architecture::Position::learned, architecture::Position::rope}) {
    architecture::Config config = small_config(300);
    config.position = position;
    config.kv_heads = 1;
    config.symmetry_break = architecture::Break::qv;
    architecture::Checkpoint checkpoint = small_checkpoint(config);
    GenerateOptions options;
    options.temperature = 0;
    options.tokens = 20;
    options.stop = false;
    const Generation g = make(checkpoint, {"abc"}, options).texts.at(0);
    EXPECT_EQ(g.prompt_ids, (std::vector<std::uint32_t>{'a', 'b', 'c'}));
    const models::Model model = models::bind(config, checkpoint.parameters);
    std::vector<std::uint32_t> ids = g.prompt_ids;
    double sum = 0;
    ASSERT_EQ(g.ids.size(), 20U);
    for (const std::uint32_t id : g.ids) {
      const std::vector<float> logits = logits_after(model, ids);
      // The cached pass rounds otherwise: another token would have to be as likely to six digits.
      EXPECT_NEAR(logits[id], *std::max_element(logits.begin(), logits.end()), 1e-4);
      double total = 0;
      for (const float logit : logits) total += std::exp(static_cast<double>(logit));
      sum += logits[id] - std::log(total);
      ids.push_back(id);
    }
    EXPECT_NEAR(g.log_probability, sum, 1e-3);
    EXPECT_EQ(g.restarts, 0);
  }
}

// A context of 24, restarted with 12: after "abc" and 21 tokens it is full, and then after every 12 more.
TEST(Generate, GoesOnFromTheLatterHalfOfAFullContext) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  GenerateOptions options;
  options.temperature = 0;
  options.tokens = 40;
  options.stop = false;
  const Generation g = make(checkpoint, {"abc"}, options).texts.at(0);
  EXPECT_EQ(g.restarts, 2); // when the 22nd and the 34th new token are read
  const models::Model model = models::bind(checkpoint.config, checkpoint.parameters);
  // After the restart the model has seen the last 12 of "abc" and 22 tokens.
  const std::vector<float> logits = logits_after(model, {g.ids.begin() + 10, g.ids.begin() + 22});
  EXPECT_NEAR(logits[g.ids[22]], *std::max_element(logits.begin(), logits.end()), 1e-4);

  // A prompt of 30 is more than the context: its last 12 are read.
  options.tokens = 1;
  const Generation late = make(checkpoint, {"0123456789012345678901234567ab"}, options).texts.at(0);
  EXPECT_EQ(late.restarts, 1);
  const std::vector<float> after = logits_after(model, {'8', '9', '0', '1', '2', '3', '4', '5', '6', '7', 'a', 'b'});
  EXPECT_NEAR(after[late.ids[0]], *std::max_element(after.begin(), after.end()), 1e-4);
}

TEST(Generate, TextsAreTheSameWhateverIsMadeBesideThem) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  GenerateOptions options;
  options.tokens = 30;
  options.samples = 3;
  options.seed = 9;
  const std::vector<std::string> prompts{"one", "", "three", "four", "five"};
  const Made one = make(checkpoint, prompts, options);
  ASSERT_EQ(one.texts.size(), 15U);
  options.threads = 3;
  const Made three = make(checkpoint, prompts, options);
  EXPECT_EQ(one.shown, three.shown);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(one.texts[i].ids, three.texts[i].ids);
    EXPECT_EQ(one.texts[i].log_probability, three.texts[i].log_probability);
    EXPECT_EQ(three.texts[i].prompt_number, static_cast<std::int64_t>(i / 3));
    EXPECT_EQ(three.texts[i].sample, static_cast<std::int64_t>(i % 3));
  }
  options.samples = 1;
  const Made first = make(checkpoint, {"one"}, options);
  EXPECT_EQ(first.texts[0].ids, one.texts[0].ids);
  EXPECT_NE(one.texts[0].ids, one.texts[1].ids); // another sample
  options.seed = 10;
  EXPECT_NE(make(checkpoint, {"one"}, options).texts[0].ids, first.texts[0].ids);
}

TEST(Generate, StopsAtEndOfText) {
  // Nothing but end-of-text is likely: only its embedding is along the last norm's bias.
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  std::fill(checkpoint.parameters.span().begin(), checkpoint.parameters.span().end(), 0.0F);
  for (const architecture::Parameter& parameter : checkpoint.layout)
    if (parameter.name == "head/norm_bias") checkpoint.parameters.data()[parameter.offset] = 1;
  checkpoint.parameters.data()[299 * 16] = 100;
  GenerateOptions options;
  options.tokens = 5;
  const Made stopped = make(checkpoint, {"Hi"}, options);
  EXPECT_EQ(stopped.texts[0].finish, "end-of-text");
  EXPECT_EQ(stopped.texts[0].ids, std::vector<std::uint32_t>{299});
  EXPECT_EQ(stopped.shown, "Hi\n");
  options.stop = false;
  EXPECT_EQ(make(checkpoint, {"Hi"}, options).texts[0].text,
            "<|endoftext|><|endoftext|><|endoftext|><|endoftext|><|endoftext|>");
}

TEST(Generate, ShowsValidUtf8AndLeavesPaddingOut) {
  architecture::Config config = small_config(320); // its tokenizer has 300
  architecture::Checkpoint checkpoint = small_checkpoint(config, false);
  checkpoint.tokenizer = tokenizer(300);
  GenerateOptions options;
  options.tokens = 200;
  options.temperature = 1000; // every id alike: bytes that are no characters
  std::vector<std::string> pieces;
  const text::Tokenizer words = tokenizer(300);
  Generation g;
  g.prompt = "\xc3"; // half a character
  g.prompt_ids = {0xc3};
  continue_prompt(models::bind(config, checkpoint.parameters), words, options, g,
                  [&](std::string_view piece) { pieces.emplace_back(piece); });
  for (const std::uint32_t id : g.ids) EXPECT_LT(id, 300U);
  EXPECT_EQ(pieces.front(), "");
  std::string bytes = "\xc3", all;
  for (const std::uint32_t id : g.ids)
    if (id != 299) bytes += words.tokens[id];
  for (const std::string& piece : pieces) {
    all += piece;
    EXPECT_NO_THROW(nlohmann::json(piece).dump()) << "not UTF-8"; // dump() refuses what is not
  }
  text::Utf8Stream whole;
  std::string expected = whole.push(bytes);
  expected += whole.finish();
  EXPECT_EQ(all, expected);
  EXPECT_EQ(g.text, expected);
}

TEST(Generate, RefusesACheckpointThatCannotWrite) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300), false);
  EXPECT_THROW(make(checkpoint, {"a"}, {}), Error);
  checkpoint.tokenizer = tokenizer(300, false);
  EXPECT_THROW(make(checkpoint, {""}, {}), Error);
  EXPECT_EQ(make(checkpoint, {"a"}, {}).texts.size(), 1U);
  checkpoint.parameters.data()['a' * 16] = std::nanf("");
  EXPECT_THROW(make(checkpoint, {"a"}, {}), Error);
}

TEST(Choose, TakesTheLargestOrTheLowestIdOfEquals) {
  GenerateOptions greedy;
  greedy.temperature = 0;
  EXPECT_EQ(choose(std::vector<float>{1, 3, 2, 3}, greedy, 0.99), 1U);
  GenerateOptions one;
  one.top_k = 1;
  for (const double u : {0.0, 0.5, 0.999999}) EXPECT_EQ(choose(std::vector<float>{1, 3, 2, 3}, one, u), 1U);
  GenerateOptions narrow;
  narrow.top_p = 1e-9; // the likeliest stays
  EXPECT_EQ(choose(std::vector<float>{1, 3, 2, 3}, narrow, 0.5), 1U);
}

TEST(Choose, WalksTheCumulativeShares) {
  const std::vector<float> logits{std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  const auto drawn = [&](double u) { return choose(logits, {}, u); };
  EXPECT_EQ(drawn(0), 0U);
  EXPECT_EQ(drawn(0.124), 0U);
  EXPECT_EQ(drawn(0.126), 1U);
  EXPECT_EQ(drawn(0.374), 1U);
  EXPECT_EQ(drawn(0.376), 2U);
  EXPECT_EQ(drawn(std::nextafter(1.0, 0.0)), 2U);
}

TEST(Choose, WhatLeavesNothingOutChangesNoDraw) {
  const Random random(3, Purpose::kSample);
  std::vector<float> logits(50);
  random.fill_normal(logits.data(), 1000, 50, 0, 2);
  GenerateOptions plain, all;
  all.top_k = 50;
  for (std::uint64_t i = 0; i < 500; ++i)
    EXPECT_EQ(choose(logits, plain, random.uniform(i)), choose(logits, all, random.uniform(i)));
}

/// Chi-square over 20000 draws against `weights`; tokens of no weight must not come. The 1 - 1e-6 quantile for up to 7
/// degrees of freedom is 40.5, and the seed is fixed: this fails for a wrong distribution only.
void expect_distribution(const std::vector<float>& logits, const GenerateOptions& options,
                         const std::vector<double>& weights) {
  constexpr int kDraws = 20000;
  const Random random(17, Purpose::kSample);
  std::vector<int> counts(logits.size());
  for (std::uint64_t i = 0; i < kDraws; ++i) ++counts[choose(logits, options, random.uniform(i))];
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double chi_square = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = kDraws * weights[i] / total;
    if (weights[i] == 0)
      EXPECT_EQ(counts[i], 0) << i;
    else
      chi_square += std::pow(counts[i] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 40.5);
}

TEST(Choose, DrawsFromTheSoftmax) {
  const std::vector<double> weights{8, 1, 4, 2, 16, 1, 3, 5};
  std::vector<float> logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight) - 3));
  GenerateOptions options;
  expect_distribution(logits, options, weights);
  options.top_k = 3;
  expect_distribution(logits, options, {8, 0, 0, 0, 16, 0, 0, 5});
  options.top_k = 0;
  options.top_p = 0.7; // 16 + 8 = 24 of 40 is short of 28, with 5 it is 29
  expect_distribution(logits, options, {8, 0, 0, 0, 16, 0, 0, 5});
  options.top_k = 3;
  options.top_p = 0.8; // of the 29 that are left: 24 reach 23.2
  expect_distribution(logits, options, {8, 0, 0, 0, 16, 0, 0, 0});
  options = {};
  options.temperature = 0.5; // squares
  expect_distribution(logits, options, {64, 1, 16, 4, 256, 1, 9, 25});
}

} // namespace
} // namespace noether::evaluation
