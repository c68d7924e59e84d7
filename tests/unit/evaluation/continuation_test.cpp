#include "evaluation/continuation.h"

#include "base/error.h"
#include "evaluation/fixtures.h"
#include "store/scratch.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace noether::evaluation {
namespace {

using store::message;

Reporter& quiet() {
  static Reporter reporter("test", Verbosity::quiet, ProgressMode::no);
  return reporter;
}

std::vector<std::vector<TokenScore>> score(const ContinuationScorer& scorer, const std::vector<Continuation>& group) {
  std::vector<std::vector<TokenScore>> found;
  scorer.for_each_item(1, quiet(), [&](std::int64_t i) { found = scorer.score(group, i); });
  return found;
}

class GoldenContinuation : public testing::TestWithParam<const char*> {};

// Losses in float64 and logits that other programs computed, as in loss_test.cpp.
TEST_P(GoldenContinuation, HasTheLossesAndRanksOfTheProgramThatMadeIt) {
  const std::string path = std::string(NOETHER_TEST_DATA) + "/models/" + GetParam();
  store::InputStream expected_stream(path + "-expected.h5");
  const store::FileReader expected = *expected_stream.next();
  const auto ids = expected.read<std::int64_t>("/input_ids");
  const auto losses = expected.read<double>("/losses");
  const auto logits = expected.read<float>("/logits");
  const std::size_t length = expected.info("/input_ids").shape[1], vocab_size = expected.info("/logits").shape[2];
  architecture::Checkpoint checkpoint =
      architecture::read_checkpoint(store::open_one(path + ".h5", store::kCheckpointFile), false);
  checkpoint.tokenizer = tokenizer(512);
  const ContinuationScorer scorer(checkpoint, {});
  for (std::size_t row = 0; row < 2; ++row) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(row * length);
    const Continuation whole{{begin, begin + static_cast<std::ptrdiff_t>(length)}, 1, false};
    // The last five again, after a pass over what they share with another ending.
    Continuation end{whole.ids, static_cast<std::int64_t>(length) - 5, false}, other = end;
    other.ids.back() = (other.ids.back() + 1) % 512;
    other.ids[length - 4] = (other.ids[length - 4] + 1) % 512;
    const auto alone = score(scorer, {whole}), shared = score(scorer, {other, end});
    ASSERT_EQ(alone[0].size(), length - 1);
    ASSERT_EQ(shared[1].size(), 5U);
    for (std::size_t i = 0; i + 1 < length; ++i) {
      const float* at = logits.data() + (row * length + i) * vocab_size;
      const float target = at[ids[row * length + i + 1]];
      std::int64_t surely = 0, perhaps = 0; // before the target, whatever float32 rounds to
      for (std::size_t id = 0; id < vocab_size; ++id) {
        surely += at[id] > target + 1e-4F ? 1 : 0;
        perhaps += at[id] > target - 1e-4F ? 1 : 0;
      }
      for (const TokenScore& found : {alone[0][i], i + 6 < length ? alone[0][i] : shared[1][i + 6 - length]}) {
        EXPECT_NEAR(found.loss, losses[row * (length - 1) + i], 1e-4);
        EXPECT_GE(found.rank, 1 + surely);
        EXPECT_LE(found.rank, perhaps);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Models, GoldenContinuation,
                         testing::Values("gpt2-tiny", "llama-tiny-gqa", "symmetry-symmetric", "symmetry-bqbv"));

/// What a scorer with this tokenizer and prefix makes of a context and a text.
struct Split {
  architecture::Checkpoint checkpoint;
  ContinuationScorer scorer;
  explicit Split(const text::Tokenizer& tokenizer, Prefix prefix = Prefix::none)
      : checkpoint(unigram_checkpoint(tokenizer, {})), scorer(checkpoint, ScoringOptions{.prefix = prefix}) {}
  Continuation operator()(const std::string& context, const std::string& text) {
    return scorer.continuation(context, text, "x.jsonl:3");
  }
};
using Ids = std::vector<std::int64_t>;

TEST(Continuation, AsksForTheTokensThatHoldSomeOfTheText) {
  const text::Tokenizer tokenizer = merging_tokenizer({{"a", "b"}, {" ", "c"}}); // 256, 257; end-of-text is 258
  const auto expect = [](const Continuation& found, const Ids& ids, std::int64_t asked) {
    EXPECT_EQ(found.ids, ids);
    EXPECT_EQ(found.asked, asked);
    EXPECT_FALSE(found.truncated);
  };
  Split plain(tokenizer), prefixed(tokenizer, Prefix::end_of_text);
  expect(plain("xy", "z"), {'x', 'y', 'z'}, 2);
  expect(plain("xa", "bz"), {'x', 256, 'z'}, 1); // a token of both
  expect(plain("x ", "c"), {'x', 257}, 1);       // the blank is the text's
  expect(plain("x", " c"), {'x', 257}, 1);
  expect(plain("", "ab"), {258, 256}, 1); // a document begins
  expect(plain(" ", "c"), {258, 257}, 1);
  expect(plain("a", "b"), {258, 256}, 1);
  expect(prefixed("xy", "z"), {258, 'x', 'y', 'z'}, 3);
  expect(prefixed("", "z"), {258, 'z'}, 1);
  expect(plain.scorer.sentence("xab", "w"), {'x', 256}, 1);
  expect(prefixed.scorer.sentence("xab", "w"), {258, 'x', 256}, 1);
  Split automatic(tokenizer, Prefix::automatic);
  expect(automatic("x", "z"), {258, 'x', 'z'}, 2);
}

// lm-eval encodes the context, without the blanks at its end, and the whole, and takes what the whole has more. That
// is right where the context's end is one of a token in the whole; elsewhere it loses or repeats bytes.
TEST(Continuation, IsLmEvalsWhereThatIsRight) {
  const text::Tokenizer tokenizer =
      merging_tokenizer({{"a", "b"}, {" ", "a"}, {"b", "c"}, {" a", "b"}, {"ab", "c"}, {"b", "b"}, {" ", " "}});
  Split split(tokenizer);
  text::Encoder encoder(tokenizer);
  int compared = 0;
  for (std::uint64_t number = 0; number < 3000; ++number) {
    const Random random(23, Purpose::kSample, number);
    std::string context, text;
    for (std::uint64_t i = 1; i <= 1 + random.below(0, 8); ++i) context += "abc a b "[random.below(i, 8)];
    for (std::uint64_t i = 20; i <= 20 + random.below(19, 8); ++i) text += "abc a b "[random.below(i, 8)];
    const std::string kept = context.substr(0, context.find_last_not_of(' ') + 1);
    const std::vector<std::uint32_t> before = encoder.encode(kept), whole = encoder.encode(context + text);
    if (kept.empty() || before.size() > whole.size() || text::decode(tokenizer, whole.data(), before.size()) != kept)
      continue;
    ++compared;
    const Continuation found = split(context, text);
    EXPECT_EQ(found.ids, Ids(whole.begin(), whole.end()));
    EXPECT_EQ(found.asked, static_cast<std::int64_t>(before.size())) << "'" << context << "' '" << text << "'";
  }
  EXPECT_GT(compared, 500);
}

// A context of 24.
TEST(Continuation, LeavesOutTheBeginningOfWhatIsTooLong) {
  Split split(tokenizer(300), Prefix::end_of_text);
  const std::string before = "0123456789abcdefghijklmnopqrstuvwxyz";
  const Continuation fits = split(before.substr(0, 21), "XYZ");
  EXPECT_FALSE(fits.truncated);
  EXPECT_EQ(fits.ids.size(), 25U);
  EXPECT_EQ(fits.ids.front(), 299);
  const Continuation cut = split(before, "XYZ");
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.ids.size(), 25U);
  EXPECT_EQ(cut.ids.front(), 'e'); // 22 of the 36
  EXPECT_EQ(cut.asked, 22);
  const Continuation sentence = split.scorer.sentence(before, "");
  EXPECT_TRUE(sentence.truncated);
  EXPECT_EQ(sentence.ids, Ids(before.end() - 25, before.end()));
  EXPECT_EQ(sentence.asked, 1);
  EXPECT_EQ(split("a", before.substr(0, 24)).asked, 1);
  EXPECT_EQ(message([&] { split("a", before.substr(0, 25)); }),
            "x.jsonl:3: 25 tokens to predict are more than the context of unigram.h5, which is 24");
}

TEST(Continuation, SaysWhyItCannotAsk) {
  Split split(tokenizer(300)), mute(tokenizer(300, false));
  EXPECT_EQ(message([&] { split("a", ""); }), "x.jsonl:3: what is to be predicted is empty");
  EXPECT_EQ(message([&] { split.scorer.sentence("a", "x.jsonl:4"); }), "x.jsonl:4: \"a\" is too short to be scored");
  EXPECT_EQ(message([&] { mute("", "a"); }), "x.jsonl:3: nothing stands before what is to be predicted, and the "
                                             "tokenizer of unigram.h5 has no end-of-text token");
  EXPECT_EQ(message([&] { Split(tokenizer(300, false), Prefix::end_of_text); }),
            "unigram.h5: its tokenizer has no end-of-text token to begin with");
  architecture::Checkpoint without = small_checkpoint(small_config(300), false);
  EXPECT_EQ(message([&] { ContinuationScorer(without, {}); }), "small.h5: it has no tokenizer to read with");
  architecture::Checkpoint broken = unigram_checkpoint(tokenizer(300), {{'b', std::nanf("")}});
  ContinuationScorer scorer(broken, {});
  EXPECT_EQ(message([&] { score(scorer, {scorer.continuation("a", "c", "")}); }),
            "unigram.h5: the loss of a token is not finite");
}

// All logits are equal: each token costs ln of the vocabulary, padding included, and the lowest ids come first.
TEST(Continuation, RanksEqualsByTheirIdsAndLeavesPaddingOut) {
  architecture::Config config = small_config(320);
  architecture::Checkpoint checkpoint = small_checkpoint(config, false);
  std::fill(checkpoint.parameters.span().begin(), checkpoint.parameters.span().end(), 0.0F);
  checkpoint.tokenizer = tokenizer(300);
  ContinuationScorer scorer(checkpoint, {});
  const std::vector<TokenScore> found = score(scorer, {scorer.continuation("a", "bc", "")})[0];
  EXPECT_NEAR(found[0].loss, std::log(320.0), 1e-6);
  EXPECT_EQ(found[0].rank, 'b' + 1);
  EXPECT_EQ(found[1].rank, 'c' + 1);
  // The head is the embedding: padding gets the largest logit, and counts in the loss alone.
  for (const architecture::Parameter& parameter : checkpoint.layout)
    if (parameter.name == "head/norm_bias") checkpoint.parameters.data()[parameter.offset] = 1;
  checkpoint.parameters.data()[310 * 16] = 5;
  checkpoint.parameters.data()['b' * 16] = 3;
  const TokenScore likeliest = score(scorer, {scorer.continuation("a", "b", "")})[0][0];
  EXPECT_EQ(likeliest.rank, 1);
  EXPECT_NEAR(likeliest.loss, std::log(318 + std::exp(5.0) + std::exp(3.0)) - 3, 1e-5);
}

// float32 rounds a pass over a cache otherwise; logits here are some nats apart.
TEST(Continuation, SharingTheBeginningChangesNothing) {
  for (const bool rope : {false, true}) {
    architecture::Config config = small_config(300);
    config.position = rope ? architecture::Position::rope : architecture::Position::learned;
    config.kv_heads = rope ? 1 : 2;
    config.symmetry_break = architecture::Break::qv;
    architecture::Checkpoint checkpoint = small_checkpoint(config);
    for (const Biases biases : {Biases::mean, Biases::sampled}) {
      ContinuationScorer scorer(checkpoint, ScoringOptions{.biases = biases, .seed = 3});
      std::vector<Continuation> group;
      for (const char* text : {"river", "r", "lake and sea", "ri"})
        group.push_back(scorer.continuation("The ship is", text, ""));
      group.push_back(scorer.continuation("The shop is", "shut", ""));
      const auto together = score(scorer, group);
      for (std::size_t i = 0; i < group.size(); ++i) {
        const auto alone = score(scorer, {group[i]})[0];
        ASSERT_EQ(alone.size(), together[i].size());
        for (std::size_t t = 0; t < alone.size(); ++t) EXPECT_NEAR(alone[t].loss, together[i][t].loss, 1e-4);
      }
    }
  }
}

TEST(MeanOf, IsTheSampleMeanAndItsError) {
  const Mean mean = mean_of(std::vector<double>{1, 0, 0, 1, 1});
  EXPECT_DOUBLE_EQ(mean.value, 0.6);
  EXPECT_NEAR(*mean.standard_error, std::sqrt(0.6 * 0.4 / 4), 1e-14); // sqrt(p (1 - p) / (n - 1)), as lm-eval's
  EXPECT_FALSE(mean_of(std::vector<double>{2}).standard_error);
}

} // namespace
} // namespace noether::evaluation
