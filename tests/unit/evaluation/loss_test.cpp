#include "evaluation/loss.h"

#include "base/error.h"
#include "evaluation/fixtures.h"
#include "models/model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace noether::evaluation {
namespace {

Loss evaluate(architecture::Checkpoint& checkpoint, const text::TokenFile& tokens, const LossOptions& options = {}) {
  Reporter quiet("test", Verbosity::quiet, ProgressMode::no);
  return evaluate_loss(checkpoint, tokens, options, quiet);
}

/// What the error of this says.
template <class Work> std::string complaint(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class GoldenLoss : public testing::TestWithParam<const char*> {};

// Losses that other programs computed in float64. The error of float32 is some 1e-6; the project's bound is 1e-4 in
// logits.
TEST_P(GoldenLoss, IsThatOfTheProgramThatMadeIt) {
  const std::string path = std::string(NOETHER_TEST_DATA) + "/models/" + GetParam();
  store::InputStream expected_stream(path + "-expected.h5");
  const store::FileReader expected = *expected_stream.next();
  const auto ids = expected.read<std::int64_t>("/input_ids");
  const auto losses = expected.read<double>("/losses");
  architecture::Checkpoint checkpoint =
      architecture::read_checkpoint(store::open_one(path + ".h5", store::kCheckpointFile), false);
  const std::size_t length = expected.info("/input_ids").shape[1];
  LossOptions options;
  options.prefix = Prefix::none;
  for (std::size_t row = 0; row < ids.size() / length; ++row) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(row * length);
    const auto tokens = token_file(tokenizer(512), {{begin, begin + static_cast<std::ptrdiff_t>(length)}});
    const Loss found = evaluate(checkpoint, tokens, options);
    const auto first = losses.begin() + static_cast<std::ptrdiff_t>(row * (length - 1));
    const auto count = static_cast<std::ptrdiff_t>(length - 1);
    EXPECT_EQ(found.tokens, count);
    EXPECT_NEAR(found.loss, std::accumulate(first, first + count, 0.0) / static_cast<double>(count), 1e-5);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, GoldenLoss,
                         testing::Values("gpt2-tiny", "llama-tiny-gqa", "symmetry-symmetric", "symmetry-bqbv"));

// All logits are equal: each token costs ln of the vocabulary, and nothing varies. float32 keeps seven digits.
TEST(Loss, IsTheLogarithmOfTheVocabularyForAModelOfZeros) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  std::fill(checkpoint.parameters.span().begin(), checkpoint.parameters.span().end(), 0.0F);
  const auto documents = random_documents(1, 40, 300);
  const auto tokens = token_file(tokenizer(300), documents);
  const Loss row = evaluate(checkpoint, tokens);
  EXPECT_NEAR(row.loss, std::log(300.0), 1e-6);
  EXPECT_NEAR(*row.standard_error, 0, 1e-6);
  EXPECT_NEAR(row.perplexity, 300, 3e-4);
  EXPECT_EQ(row.tokens, static_cast<std::int64_t>(tokens.size())); // end-of-text stands before the first
  EXPECT_EQ(row.bytes, static_cast<std::int64_t>(tokens.text_bytes()));
  EXPECT_TRUE(row.over_documents);
  EXPECT_NEAR(*row.bits_per_byte,
              row.loss / std::log(2.0) * static_cast<double>(row.tokens) / static_cast<double>(row.bytes), 1e-12);
}

/// Every target's loss from a forward pass of its own over what stands before it: [max(0, i + 1 - reach), i].
double by_hand(architecture::Checkpoint& checkpoint, const std::vector<std::int64_t>& inputs,
               const std::vector<std::int64_t>& targets, std::int64_t window, std::int64_t stride) {
  const models::Model model = models::bind(checkpoint.config, checkpoint.parameters);
  double sum = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(targets.size()); ++i) {
    const std::int64_t begin = i < window ? 0 : ((i - window) / stride + 1) * stride;
    const at::Tensor context =
        at::tensor(at::ArrayRef<std::int64_t>(inputs.data() + begin, static_cast<std::size_t>(i + 1 - begin)))
            .unsqueeze(0);
    const at::NoGradGuard guard;
    const at::Tensor logits = models::logits(model, models::hidden(model, context, models::mean_biases(model.config)));
    sum -= logits[0][-1].to(at::kDouble).log_softmax(0)[targets[static_cast<std::size_t>(i)]].item<double>();
  }
  return sum / static_cast<double>(targets.size());
}

TEST(Loss, EqualsEachTokensOwnForwardPass) {
  architecture::Config config = small_config(300);
  config.symmetry_break = architecture::Break::qv;
  architecture::Checkpoint checkpoint = small_checkpoint(config);
  const auto tokens = token_file(tokenizer(300), random_documents(2, 4, 300));
  std::vector<std::int64_t> ids(tokens.size());
  tokens.read(0, tokens.size(), ids.data());
  std::vector<std::int64_t> inputs{299};
  inputs.insert(inputs.end(), ids.begin(), ids.end() - 1);
  for (const auto& [window, stride] :
       {std::pair<std::int64_t, std::int64_t>{24, 24}, {24, 5}, {7, 7}, {10, 9}, {1, 1}}) {
    LossOptions options;
    options.window = window;
    options.stride = stride;
    EXPECT_NEAR(evaluate(checkpoint, tokens, options).loss, by_hand(checkpoint, inputs, ids, window, stride), 1e-5)
        << "window " << window << ", stride " << stride;
  }
  LossOptions bare;
  bare.prefix = Prefix::none;
  const Loss row = evaluate(checkpoint, tokens, bare);
  EXPECT_EQ(row.tokens, static_cast<std::int64_t>(ids.size()) - 1);
  EXPECT_NEAR(row.loss, by_hand(checkpoint, ids, {ids.begin() + 1, ids.end()}, 24, 24), 1e-5);
}

TEST(Loss, IsTheSameToTheBitOnAnyNumberOfThreads) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  const auto tokens = token_file(tokenizer(300), random_documents(3, 400, 300));
  LossOptions options;
  options.stride = 16;
  at::set_num_threads(2);
  const Loss one = evaluate(checkpoint, tokens, options);
  EXPECT_EQ(at::get_num_threads(), 1);
  for (const int threads : {2, 3, 8}) {
    options.threads = threads;
    const Loss many = evaluate(checkpoint, tokens, options);
    EXPECT_EQ(one.loss, many.loss);
    EXPECT_EQ(*one.standard_error, *many.standard_error);
    EXPECT_EQ(*one.min_batch_4096, *many.min_batch_4096);
  }
}

// What comes later in the data changes nothing: a window's losses are its own.
TEST(Loss, OfTheFirstTokensDoesNotDependOnTheRest) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  auto documents = random_documents(4, 50, 300);
  LossOptions options;
  options.limit = 240; // ten windows
  const Loss many = evaluate(checkpoint, token_file(tokenizer(300), documents), options);
  documents.resize(20);
  const Loss fewer = evaluate(checkpoint, token_file(tokenizer(300), documents), options);
  EXPECT_EQ(many.tokens, 240);
  EXPECT_EQ(many.loss, fewer.loss);
  EXPECT_FALSE(many.min_batch_4096);
}

TEST(Loss, TakesTheBiasesThatItIsTold) {
  architecture::Config config = small_config(300);
  config.symmetry_break = architecture::Break::qv;
  config.q_bias = {{2}, {1}};
  config.v_bias = {{2}, {1}};
  architecture::Checkpoint broken = small_checkpoint(config);
  const auto tokens = token_file(tokenizer(300), random_documents(5, 20, 300));
  LossOptions options;
  const Loss mean = evaluate(broken, tokens, options);
  options.biases = Biases::none;
  const Loss none = evaluate(broken, tokens, options);
  options.biases = Biases::sampled;
  const Loss sampled = evaluate(broken, tokens, options), again = evaluate(broken, tokens, options);
  options.seed = 1;
  const Loss other = evaluate(broken, tokens, options);
  EXPECT_NE(mean.loss, none.loss);
  EXPECT_NE(mean.loss, sampled.loss);
  EXPECT_NE(sampled.loss, other.loss);
  EXPECT_EQ(sampled.loss, again.loss);
  EXPECT_EQ(mean.biases, "mean");

  // Without deviation a draw is the mean; without biases the model is the symmetric one.
  broken.config.q_bias = {{2}, {0}};
  broken.config.v_bias = {{2}, {0}};
  EXPECT_EQ(evaluate(broken, tokens, options).loss, mean.loss);
  broken.config.symmetry_break = architecture::Break::none;
  const Loss symmetric = evaluate(broken, tokens, options);
  EXPECT_EQ(symmetric.loss, none.loss);
  EXPECT_EQ(symmetric.biases, "none");
}

TEST(Loss, RefusesWhatDoesNotFit) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(300));
  const auto tokens = token_file(tokenizer(300), {{1, 2, 3}});
  LossOptions options;
  const auto said = [&](const text::TokenFile& given) {
    return complaint([&] { evaluate(checkpoint, given, options); });
  };
  EXPECT_NE(said(token_file(tokenizer(300, false), {{1, 2}})).find("tokens of another tokenizer than that of small.h5"),
            std::string::npos);
  options.window = 25;
  EXPECT_EQ(said(tokens), "small.h5: a window of 25 is longer than its context of 24");
  options.window = 8;
  options.stride = 9;
  EXPECT_EQ(said(tokens), "small.h5: a stride of 9 skips tokens of a window of 8");
  options = {};
  EXPECT_NE(said(token_file(tokenizer(300), {})).find("no token to score: it holds 0"), std::string::npos);
  options.prefix = Prefix::none;
  EXPECT_NE(said(token_file(tokenizer(300), {{7}})).find("no token to score: it holds 1, and nothing stands before"),
            std::string::npos);
  options = {};

  // A checkpoint without a tokenizer takes any tokens whose ids it knows.
  checkpoint.tokenizer.reset();
  EXPECT_EQ(evaluate(checkpoint, tokens).tokens, 3);
  EXPECT_NE(said(token_file(tokenizer(400), {{1, 2, 350}})).find("beyond the vocabulary of small.h5, which has 300"),
            std::string::npos);
  options.prefix = Prefix::end_of_text;
  EXPECT_NE(said(token_file(tokenizer(300, false), {{1, 2}})).find("no end-of-text token"), std::string::npos);
  options = {};
  checkpoint.parameters.data()[0] = std::nanf("");
  EXPECT_NE(said(token_file(tokenizer(300), {{0, 0}})).find("is not finite"), std::string::npos);
}

} // namespace
} // namespace noether::evaluation
