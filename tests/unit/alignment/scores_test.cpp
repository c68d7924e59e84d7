// Keys and their cosines against plain loops in double, and what shares of attention must add up to.
#include "alignment/scores.h"

#include "alignment/directions.h"
#include "base/error.h"
#include "base/random.h"
#include "small.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace noether::alignment {
namespace {

using architecture::Config;

at::Tensor some_directions(const Config& config) {
  const at::Tensor directions = at::empty({config.layers, config.heads, config.head_width}, at::kFloat);
  Random(3, Purpose::kNull)
      .fill_normal(directions.data_ptr<float>(), 0, static_cast<std::uint64_t>(directions.numel()), 0.2, 1);
  return directions;
}

TEST(TokenScores, AreCosinesOfWKTimesTheEmbedding) {
  for (const char* name : {"gpt2", "llama"}) {
    const Small small(name, [&](Config& c) { c.kv_heads = 2; }); // two query heads share a key head
    const Config& c = small.checkpoint.config;
    const at::Tensor directions = some_directions(c);
    const Scores scores = token_scores(small.model, directions, Embedding::raw);
    for (const std::int64_t token : {0, 17, 299})
      for (std::int64_t layer = 0; layer < c.layers; ++layer)
        for (std::int64_t head = 0; head < c.heads; ++head) {
          double dot = 0, key2 = 0, direction2 = 0;
          for (std::int64_t i = 0; i < c.head_width; ++i) {
            double key = 0;
            for (std::int64_t j = 0; j < c.width; ++j)
              key += small.at(fmt::format("layers/{}/attention/W_K", layer),
                              ((head / 2) * c.head_width + i) * c.width + j) *
                     small.at("embedding/tokens", token * c.width + j);
            const double direction = directions[layer][head][i].item<double>();
            dot += key * direction;
            key2 += key * key;
            direction2 += direction * direction;
          }
          const auto id = static_cast<std::size_t>(token);
          EXPECT_NEAR(scores.alignment.at(layer, head)[id], dot / std::sqrt(key2 * direction2), 1e-5) << name;
          EXPECT_NEAR(scores.exponent.at(layer, head)[id], dot / std::sqrt(static_cast<double>(c.head_width)),
                      1e-5 * (1 + std::abs(dot)))
              << name;
        }
  }
}

TEST(TokenScores, NormalisedKeysAreThoseOfTheForwardPass) {
  // The first layer sees the embedding alone, as there are no learned positions: its keys before the rotation are ours.
  const Small small("llama", [](Config& c) { c.qk_norm = true; });
  const at::Tensor ids = at::arange(40, 52).unsqueeze(0);
  at::Tensor seen;
  const models::AttentionObserver observe = [&](std::int64_t layer, const models::AttentionInputs& inputs) {
    if (layer == 0) seen = inputs.k[0].clone();
  };
  models::hidden(small.model, ids, models::mean_biases(small.checkpoint.config), nullptr, nullptr, &observe);
  const at::Tensor ours = keys_of(small.model, 0, small.model.tokens.slice(0, 40, 52), Embedding::normalised);
  EXPECT_LT((seen - ours).abs().max().item<double>(), 1e-5);
}

TEST(PositionScores, TurnTheMeanKeyWhereThereIsRope) {
  const Small small("llama");
  const Config& c = small.checkpoint.config;
  const at::Tensor directions = some_directions(c);
  const Scores scores = position_scores(small.model, directions, Embedding::raw);
  const at::Tensor mean = keys_of(small.model, 1, small.model.tokens, Embedding::raw).mean(0); // [heads, head_width]
  for (std::int64_t position = 0; position < c.context; ++position) {
    double dot = 0, norms = mean[2].norm().item<double>() * directions[1][2].norm().item<double>();
    for (std::int64_t i = 0; i < c.head_width / 2; ++i) { // pairs (i, i + half) turn by position / base^(2 i / d)
      const double angle = static_cast<double>(position) *
                           std::pow(c.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_width));
      const double a = mean[2][i].item<double>(), b = mean[2][i + c.head_width / 2].item<double>();
      dot += (a * std::cos(angle) - b * std::sin(angle)) * directions[1][2][i].item<double>();
      dot += (b * std::cos(angle) + a * std::sin(angle)) * directions[1][2][i + c.head_width / 2].item<double>();
    }
    EXPECT_NEAR(scores.alignment.at(1, 2)[static_cast<std::size_t>(position)], dot / norms, 2e-5);
  }
}

class TextFile : public ::testing::Test {
protected:
  std::string path = std::filesystem::temp_directory_path() / fmt::format("noether-alignment-{}", getpid());
  void TearDown() override { std::filesystem::remove(path); }
  text::TokenFile tokens(std::size_t count) const {
    std::vector<std::string> words;
    for (int i = 0; i < 43; ++i) words.push_back(fmt::format("word{}", i));
    const text::Tokenizer tokenizer = words_tokenizer(words);
    text::TokenSink sink(tokenizer);
    std::vector<std::uint32_t> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<std::uint32_t>(i * i % 7));
    sink.add_document(ids);
    store::OutputStream output(path);
    output.write(sink.finish(), {});
    output.close();
    return text::TokenFile(store::open_one(path, store::kTokensFile));
  }
};

TEST_F(TextFile, SharesOfAttentionAddUpToOne) {
  const Small small("gpt2");
  const Config& c = small.checkpoint.config;
  Reporter quiet("test", Verbosity::quiet);
  const TextScores found = text_scores(small.model, some_directions(c), tokens(30), 29, quiet);
  double even = 0;
  std::int64_t count = 0;
  for (std::size_t id = 0; id < found.even.size(); ++id) {
    even += found.even[id];
    count += found.counts[id];
  }
  EXPECT_NEAR(even, 1, 1e-12);
  EXPECT_EQ(count, 29); // two windows of 12 and one of 5
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    for (std::int64_t head = 0; head < c.heads; ++head) {
      double sum = 0;
      for (const float share : found.attention.at(layer, head)) sum += share;
      EXPECT_NEAR(sum, 1, 1e-5);
    }
}

TEST_F(TextFile, EvenIsWhatHeadsWithoutPreferencesGive) {
  // Queries and keys of zero: every query attends evenly, and the measured share is the even one.
  Small small("gpt2", [](Config& c) { c.symmetry_break = architecture::Break::none; });
  for (const architecture::Parameter& parameter : small.checkpoint.layout)
    if (parameter.name.ends_with("W_K") || parameter.name.ends_with("b_K"))
      std::fill_n(small.checkpoint.parameters.data() + parameter.offset, parameter.count, 0.0F);
  Reporter quiet("test", Verbosity::quiet);
  const TextScores found = text_scores(small.model, some_directions(small.checkpoint.config), tokens(30), 0, quiet);
  for (std::size_t id = 0; id < 7; ++id) EXPECT_NEAR(found.attention.at(1, 3)[id], found.even[id], 1e-6) << id;
}

TEST_F(TextFile, MeanQueriesAreTheMeanOfWhatIsObserved) {
  const Small small("llama");
  const text::TokenFile file = tokens(12);
  const at::Tensor found = mean_queries(small.model, file, 0);
  std::vector<std::int64_t> ids(12);
  file.read(0, 12, ids.data());
  const at::Tensor x =
      models::attention_norm(small.model, 0, small.model.tokens.index_select(0, at::tensor(ids, at::kLong)));
  const Config& c = small.checkpoint.config;
  const at::Tensor q = at::linear(x, small.model.layers[0].W_QKV.slice(0, 0, c.heads * c.head_width)).mean(0);
  EXPECT_LT((found[0].flatten() - q).abs().max().item<double>(), 1e-5);
}

TEST(Directions, OfBiasesAreTheirMeans) {
  const Small small("gpt2", [](Config& c) { c.q_bias.means = {0, 0.7}; });
  const at::Tensor found = bias_directions(small.checkpoint, small.model);
  EXPECT_EQ(found.sizes(), (std::vector<std::int64_t>{2, 4, 8}));
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_NEAR(found[1][3][i].item<double>(), 0.1 * static_cast<double>(i), 1e-7);
  const Small symmetric("gpt2", [](Config& c) { c.symmetry_break = architecture::Break::none; });
  EXPECT_THROW(bias_directions(symmetric.checkpoint, symmetric.model), Error);
  EXPECT_THROW(check_directions(at::zeros_like(found), "x.h5"), Error);
}

TEST(Directions, OfAFileAreForAllHeadsOrEach) {
  const Small small;
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("noether-directions-{}", getpid());
  const auto read = [&](std::int64_t count) {
    std::ofstream file(path);
    for (std::int64_t i = 0; i < count; ++i) file << i << '\n';
    file.close();
    return read_directions(path, small.checkpoint.config);
  };
  EXPECT_EQ(read(8)[1][2][5].item<double>(), 5);
  EXPECT_EQ(read(32)[1][2][5].item<double>(), 2 * 8 + 5);
  EXPECT_EQ(read(64)[1][2][5].item<double>(), 32 + 2 * 8 + 5);
  EXPECT_THROW(read(7), Error);
  std::filesystem::remove(path);
}

} // namespace
} // namespace noether::alignment
