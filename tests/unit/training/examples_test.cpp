#include "training/examples.h"

#include "base/error.h"
#include "models/model.h"
#include "small.h"
#include "training/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <fstream>

namespace noether::training {
namespace {

Examples read(const std::string& text) {
  const Folder folder;
  std::ofstream(folder / "x.jsonl") << text;
  Examples examples = read_examples(folder / "x.jsonl");
  examples.name = "x.jsonl";
  return examples;
}

/// Bytes, and end-of-text as 256.
text::Tokenizer ending_tokenizer() {
  text::Tokenizer tokenizer = bytes_tokenizer();
  tokenizer.tokens.emplace_back("<|endoftext|>");
  tokenizer.special = {{"<|endoftext|>", 256}};
  tokenizer.end_of_text = 256;
  return tokenizer;
}

using Ids = std::vector<std::int64_t>;

TEST(Examples, EndWhereTheTokenizerCanSayIt) {
  const std::string text = "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n\n{\"prompt\": \"\", \"completion\": \"e\"}\n"
                           "{\"prompt\": \"ab \", \"completion\": \"c\"}\n";
  Examples examples = read(text);
  encode(examples, ending_tokenizer(), 12);
  ASSERT_EQ(examples.examples.size(), 3U);
  EXPECT_EQ(examples.examples[0].ids, (Ids{'a', 'b', 'c', 'd', 256}));
  EXPECT_EQ(examples.examples[0].asked, 2);
  EXPECT_EQ(examples.examples[1].ids, (Ids{256, 'e', 256}));
  EXPECT_EQ(examples.examples[1].asked, 1);
  EXPECT_EQ(examples.examples[1].line, 3);
  EXPECT_EQ(examples.examples[2].asked, 2); // the blank is the completion's
  EXPECT_EQ(examples.inputs(), 4 + 2 + 4);
  EXPECT_EQ(examples.targets(), 3 + 2 + 3);
  EXPECT_EQ(examples.truncated, 0);
  EXPECT_EQ(read(text).digest, examples.digest);
  EXPECT_NE(read(text + "\n").digest, examples.digest);

  Examples endless = read("{\"prompt\": \"ab\", \"completion\": \"cd\"}");
  encode(endless, bytes_tokenizer(), 12);
  EXPECT_EQ(endless.examples[0].ids, (Ids{'a', 'b', 'c', 'd'}));
}

TEST(Examples, LoseTheBeginningOfWhatIsTooLong) {
  Examples examples = read("{\"prompt\": \"ab\", \"completion\": \"cd\"}\n"
                           "{\"prompt\": \"0123456\", \"completion\": \"xy\"}\n"
                           "{\"prompt\": \"01234567\", \"completion\": \"xyz\"}\n");
  encode(examples, ending_tokenizer(), 8);
  EXPECT_EQ(examples.truncated, 2);
  EXPECT_EQ(examples.first_truncated, 2);
  EXPECT_EQ(examples.examples[1].ids, (Ids{'1', '2', '3', '4', '5', '6', 'x', 'y', 256}));
  EXPECT_EQ(examples.examples[1].asked, 6);
  EXPECT_EQ(examples.examples[2].ids.size(), 9U);
  EXPECT_EQ(examples.examples[2].asked, 5);
  // Eight targets fit, nine do not.
  Examples full = read("{\"prompt\": \"abc\", \"completion\": \"0123456\"}");
  encode(full, ending_tokenizer(), 8);
  EXPECT_EQ(full.examples[0].ids, (Ids{'c', '0', '1', '2', '3', '4', '5', '6', 256}));
  EXPECT_EQ(message_of([&] {
              Examples more = read("\n{\"prompt\": \"abc\", \"completion\": \"01234567\"}");
              encode(more, ending_tokenizer(), 8);
            }),
            "x.jsonl:2: a completion of 9 tokens is longer than the context of 8");
}

TEST(Examples, NameTheLineThatIsWrong) {
  const auto complaint = [](const std::string& text) {
    const std::string said = message_of([&] { read(text); });
    return said.substr(said.find("x.jsonl"));
  };
  EXPECT_EQ(complaint("{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"a\", \"completions\": \"b\"}\n"),
            "x.jsonl:2: no field completion (found: completions, prompt) (did you mean completions?)");
  EXPECT_EQ(complaint("{\"prompt\": \"a\", \"completion\": \"\"}"), "x.jsonl:1: the field completion is empty");
  EXPECT_EQ(complaint("\n"), "x.jsonl: it holds no examples");
  EXPECT_EQ(message_of([&] {
              Examples examples = read("{\"prompt\": \"\", \"completion\": \"b\"}");
              encode(examples, bytes_tokenizer(), 8);
            }),
            "x.jsonl:1: nothing stands before the completion, and the tokenizer has no end-of-text token");
}

TEST(Examples, ABatchIsAsLongAsItsLongestAndCountsCompletions) {
  std::vector<Examples> files{read("{\"prompt\": \"ab\", \"completion\": \"cd\"}\n"
                                   "{\"prompt\": \"x\", \"completion\": \"y\"}\n")};
  for (Examples& file : files) encode(file, bytes_tokenizer(), 12);
  const Data data(files, settings_of(settings_json({{"order", "shuffle"}, {"loss-on", "completion"}}), ""));
  EXPECT_EQ(data.windows().count(), 2U);
  EXPECT_DOUBLE_EQ(data.targets_a_window(), 1.5);
  for (std::uint64_t pass = 0; pass < 4; ++pass) { // each comes once in a pass
    const Batch batch = data.batch(2 * pass, 2);
    EXPECT_EQ(batch.rows, 2);
    EXPECT_EQ(batch.context, 3);
    EXPECT_EQ(batch.counted, 3);
    const std::size_t longer = batch.tokens[0] == 'a' ? 0 : 3;
    const auto row = [&](const Ids& all, std::size_t at) { return Ids(all.begin() + at, all.begin() + at + 3); };
    EXPECT_EQ(row(batch.tokens, longer), (Ids{'a', 'b', 'c'}));
    EXPECT_EQ(row(batch.targets, longer), (Ids{-1, 'c', 'd'}));
    EXPECT_EQ(row(batch.tokens, 3 - longer)[0], 'x');
    EXPECT_EQ(row(batch.targets, 3 - longer), (Ids{'y', -1, -1}));
  }
  EXPECT_EQ(validation_batch(files[0], 100).rows, 2);
  EXPECT_EQ(validation_batch(files[0], 1).rows, 1);
}

// A step's loss is the mean over the tokens of completions, each after all that stand before it in its own example.
TEST(Examples, LossIsThatOfForwardPassesOverEach) {
  architecture::Config config = small_config();
  config.symmetry_break = architecture::Break::none;
  architecture::Checkpoint checkpoint = architecture::initialise(config, 3, 1);
  for (float& value : checkpoint.parameters.span()) value *= 10;
  std::vector<Examples> files{read("{\"prompt\": \"ab\", \"completion\": \"cde\"}\n"
                                   "{\"prompt\": \"wxyz\", \"completion\": \"q\"}\n")};
  encode(files[0], bytes_tokenizer(), 12);
  double sum = 0;
  {
    const at::NoGradGuard guard;
    const models::Model model = models::bind(config, checkpoint.parameters);
    for (const Example& example : files[0].examples) {
      const at::Tensor ids = at::tensor(example.ids);
      const at::Tensor logits =
          models::logits(model, models::hidden(model, ids.unsqueeze(0), models::mean_biases(config)))[0];
      for (std::int64_t i = example.asked; i < ids.numel(); ++i)
        sum -= logits[i - 1].to(at::kDouble).log_softmax(0)[example.ids[static_cast<std::size_t>(i)]].item<double>();
    }
  }
  const Settings settings = settings_of(
      settings_json({{"order", "shuffle"}, {"loss-on", "completion"}, {"batch", 2}, {"accumulate", 2}}), "");
  const Data data(files, settings);
  const Batch batch = data.batch(0, 2);
  ASSERT_EQ(batch.counted, 4);
  Trainer trainer(checkpoint, settings, 1);
  EXPECT_NEAR(trainer.validate(batch), sum / 4, 1e-4);
  State state;
  EXPECT_NEAR(trainer.step(state, batch).loss, sum / 4, 1e-4);
  EXPECT_EQ(state.tokens, 4U);
}

TEST(Examples, WhatTheLossIsOnIsSaidEachTime) {
  const Json completion = settings_json({{"loss-on", "completion"}});
  EXPECT_EQ(completion.at("loss-on"), "completion");
  EXPECT_FALSE(settings_json({}, completion).contains("loss-on"));
  EXPECT_FALSE(settings_json({{"loss-on", "all"}}).contains("loss-on")); // as in runs before there was a choice
}

} // namespace
} // namespace noether::training
