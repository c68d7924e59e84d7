#include "evaluation/choices.h"

#include "evaluation/fixtures.h"
#include "evaluation/last_word.h"
#include "store/scratch.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace noether::evaluation {
namespace {

using store::message;
using store::Scratch;
using store::spill;

template <class Items> Items read(Items (*reader)(const std::string&), const std::string& text) {
  const Scratch scratch;
  spill(scratch / "x.jsonl", text);
  Items items = reader(scratch / "x.jsonl");
  items.name = "x.jsonl";
  return items;
}

template <class Items> std::string complaint(Items (*reader)(const std::string&), const std::string& text) {
  const std::string said = message([&] { read(reader, text); });
  return said.substr(said.find("x.jsonl"));
}

Reporter& quiet() {
  static Reporter reporter("test", Verbosity::quiet, ProgressMode::no);
  return reporter;
}

TEST(Choices, NamesTheLineThatIsWrong) {
  const std::string good = "{\"context\": \"x\", \"endings\": [\"y\", \"z\"], \"label\": 1}\n";
  EXPECT_EQ(read(read_choices, "\n" + good).items[0].line, 2);
  EXPECT_EQ(complaint(read_choices, good + "{\"context\": \"x\", \"ending\": [\"y\", \"z\"], \"label\": 1}\n"),
            "x.jsonl:2: no field endings (found: context, ending, label) (did you mean ending?)");
  for (const char* label : {"2", "-1", "0.5", "\"A\"", "null", "true"})
    EXPECT_EQ(complaint(read_choices,
                        fmt::format("{{\"context\": \"x\", \"endings\": [\"y\", \"z\"], \"label\": {}}}", label)),
              fmt::format("x.jsonl:1: expected a whole number from 0 to 1 in field label, found {}", label));
  for (const char* endings : {"\"y\"", "[]", "[\"y\"]"})
    EXPECT_EQ(complaint(read_choices, fmt::format("{{\"context\": \"x\", \"endings\": {}, \"label\": 0}}", endings)),
              "x.jsonl:1: expected a list of two or more strings in field endings");
  EXPECT_EQ(complaint(read_choices, "{\"context\": \"x\", \"endings\": [\"y\", \"\"], \"label\": 0}"),
            "x.jsonl:1: expected strings in field endings, none of them empty");
  EXPECT_EQ(complaint(read_choices, " \n"), "x.jsonl: it holds no items");
}

// Each token is as likely wherever it stands. A long ending costs more than a short one, and less a byte.
TEST(Choices, GuessesByTheLossAndByTheLossAByte) {
  architecture::Checkpoint checkpoint = unigram_checkpoint(tokenizer(300), {{'a', 6}, {'b', 4}, {' ', 1}});
  const double total = 297 + std::exp(6.0) + std::exp(4.0) + std::exp(1.0);
  const auto loss = [&](double logit) { return std::log(total) - logit; };
  const Choices choices =
      read(read_choices, "{\"context\": \"x\", \"endings\": [\"b\", \"aaaaaaaa\"], \"label\": \"1\"}\n"
                         "{\"context\": \"x \", \"endings\": [\"b\", \"aaaaaaaa\"], \"label\": 0}\n"
                         "{\"context\": \"x\", \"endings\": [\" b\", \"a\"], \"label\": 1}\n"
                         "{\"context\": \"\", \"endings\": [\"c\", \"d\"], \"label\": 1}\n");
  const std::vector<ChoiceScore> scores = score_choices(checkpoint, choices, {}, quiet());
  ASSERT_EQ(scores.size(), 4U);
  // With the blank that joins them, which the context may bring; it is no part of the length.
  for (const std::size_t i : {0U, 1U}) {
    ASSERT_EQ(scores[i].losses.size(), 2U);
    EXPECT_NEAR(scores[i].losses[0], loss(1) + loss(4), 1e-4);
    EXPECT_NEAR(scores[i].losses[1], loss(1) + 8 * loss(6), 1e-4);
    EXPECT_EQ(scores[i].guess, 0U);
    EXPECT_EQ(scores[i].guess_norm, 1U);
  }
  EXPECT_NEAR(scores[2].losses[0], loss(1) + loss(4), 1e-4);
  EXPECT_NEAR(scores[2].losses[1], loss(1) + loss(6), 1e-4);
  EXPECT_EQ(scores[2].guess, 1U);
  EXPECT_EQ(scores[2].guess_norm, 0U);             // its blank stands in the file: half of 7.8 is less than 5.8
  EXPECT_NEAR(scores[3].losses[0], loss(0), 1e-4); // after end-of-text, without a blank
  EXPECT_EQ(scores[3].guess, 0U);                  // of equals the first
  const ChoiceSummary found = summary(choices, scores);
  EXPECT_EQ(found.items, 4);
  EXPECT_EQ(found.truncated, 0);
  EXPECT_EQ(found.acc.value, 0.5); // the second and the third
  EXPECT_NEAR(*found.acc.standard_error, std::sqrt(0.25 / 3), 1e-14);
  EXPECT_EQ(found.acc_norm.value, 0.25); // the first
  EXPECT_NEAR(*found.acc_norm.standard_error, std::sqrt(0.1875 / 3), 1e-14);
}

/// The loss of ids[asked..] from one forward pass, in double from the logits on.
double by_hand(architecture::Checkpoint& checkpoint, const std::string& text, std::size_t asked) {
  const at::NoGradGuard guard;
  const models::Model model = models::bind(checkpoint.config, checkpoint.parameters);
  const std::vector<std::int64_t> ids(text.begin(), text.end()); // a token a byte
  const at::Tensor logits =
      models::logits(model, models::hidden(model, at::tensor(ids).unsqueeze(0), models::mean_biases(model.config)))[0];
  double sum = 0;
  for (std::size_t i = asked; i < ids.size(); ++i)
    sum -= logits[static_cast<std::int64_t>(i) - 1].to(at::kDouble).log_softmax(0)[ids[i]].item<double>();
  return sum;
}

TEST(Choices, LossesAreThoseOfForwardPassesOverEachEnding) {
  architecture::Config config = small_config(300);
  config.symmetry_break = architecture::Break::qv;
  architecture::Checkpoint checkpoint = small_checkpoint(config);
  const Choices choices =
      read(read_choices, "{\"context\": \"The ship\", \"endings\": [\"sails.\", \"sinks\", \"is\"], \"label\": 1}\n"
                         "{\"context\": \"It rains in\", \"endings\": [\"Rome\", \"May or so\"], \"label\": 0}\n");
  for (const int threads : {1, 3}) {
    const std::vector<ChoiceScore> scores =
        score_choices(checkpoint, choices, ScoringOptions{.threads = threads}, quiet());
    for (std::size_t i = 0; i < 2; ++i) {
      const Choice& choice = choices.items[i];
      for (std::size_t k = 0; k < choice.endings.size(); ++k)
        EXPECT_NEAR(scores[i].losses[k],
                    by_hand(checkpoint, choice.context + " " + choice.endings[k], choice.context.size()), 1e-3);
    }
  }
}

TEST(LastWord, NamesTheLineThatIsWrong) {
  const LastWords words = read(read_last_words, "{\"text\": \"He gave the dog a\\nbone. \\n\"}\n");
  EXPECT_EQ(words.items[0].before, "He gave the dog a");
  EXPECT_EQ(words.items[0].word, "\nbone.");
  for (const char* text : {"", " ", "bone", " bone", "\\nbone\\n"})
    EXPECT_EQ(complaint(read_last_words, fmt::format("\n{{\"text\": \"{}\"}}", text)),
              "x.jsonl:2: expected two or more words in field text");
  EXPECT_EQ(complaint(read_last_words, "{\"texts\": \"a b\"}"),
            "x.jsonl:1: no field text (found: texts) (did you mean texts?)");
}

// The blank before a word is of its first token.
TEST(LastWord, IsRightWhereEachOfItsTokensIsTheLikeliest) {
  const text::Tokenizer tokens = merging_tokenizer({{" ", "a"}});
  architecture::Checkpoint checkpoint = unigram_checkpoint(tokens, {{256, 5}, {' ', 4}, {'b', 3}});
  const double total = 255 + std::exp(5.0) + std::exp(4.0) + std::exp(3.0);
  const auto loss = [&](double logit) { return std::log(total) - logit; };
  const LastWords words = read(read_last_words, "{\"text\": \"x a\"}\n{\"text\": \"x b\"}\n{\"text\": \"x x a\"}\n");
  const std::vector<LastWordScore> scores = score_last_words(checkpoint, words, {}, quiet());
  EXPECT_TRUE(scores[0].right);
  EXPECT_FALSE(scores[1].right);
  EXPECT_TRUE(scores[2].right);
  EXPECT_EQ(scores[0].tokens, 1);
  EXPECT_EQ(scores[1].tokens, 2);
  EXPECT_NEAR(scores[0].loss, loss(5), 1e-5);
  EXPECT_NEAR(scores[1].loss, loss(4) + loss(3), 1e-5);
  const LastWordSummary found = summary(scores);
  EXPECT_EQ(found.items, 3);
  EXPECT_DOUBLE_EQ(found.acc.value, 2 / 3.0);
  EXPECT_NEAR(*found.acc.standard_error, std::sqrt(2 / 9.0 / 2), 1e-14);
  const double mean = (2 * loss(5) + loss(4) + loss(3)) / 3;
  EXPECT_NEAR(found.loss.value, mean, 1e-5);
  EXPECT_NEAR(found.perplexity.value, std::exp(mean), 1e-4 * std::exp(mean));
  EXPECT_DOUBLE_EQ(*found.perplexity.standard_error, *found.loss.standard_error * found.perplexity.value);
  // Not right where only one of a word's tokens is the likeliest.
  architecture::Checkpoint other = unigram_checkpoint(tokens, {{' ', 5}, {'b', 3}});
  EXPECT_FALSE(score_last_words(other, words, {}, quiet())[1].right);
}

} // namespace
} // namespace noether::evaluation
