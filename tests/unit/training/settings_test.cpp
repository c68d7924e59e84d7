#include "training/settings.h"

#include "base/error.h"
#include "small.h"
#include "training/state.h"

namespace noether::training {
namespace {

template <class F> std::string usage_error(F&& f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}
std::string refused(const Json& given) {
  return usage_error([&] { settings_json(given); });
}
const Setting& setting(std::string_view name) {
  for (const Setting& row : all_settings())
    if (row.name == name) return row;
  throw std::out_of_range(std::string(name));
}

TEST(Settings, AreThePublishedRunsWhereNothingIsSaid) {
  const Settings ecd = settings_of(settings_json({{"optimizer", "ecd"}}), "");
  EXPECT_EQ(ecd.hyperparameters, (optimizers::Hyperparameters{.lr = 1, .eta = 100, .f0 = 2, .nu = 0}));
  const Settings adamw = settings_of(settings_json(Json::object()), "");
  EXPECT_EQ(adamw.hyperparameters,
            (optimizers::Hyperparameters{.lr = 1e-4, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.95}));
  EXPECT_EQ(settings_of(settings_json({{"optimizer", "sgdm"}}), "").hyperparameters,
            (optimizers::Hyperparameters{.lr = 0.03, .momentum = 0.95, .nesterov = true}));
}

TEST(Settings, WithoutEffectAreRefused) {
  EXPECT_EQ(refused({{"eta", 3.0}}), "--eta has no effect with --optimizer adamw");
  EXPECT_EQ(refused({{"optimizer", "ecd"}, {"beta1", 0.5}}), "--beta1 has no effect with --optimizer ecd");
  EXPECT_EQ(refused({{"optimizer", "ecd"}, {"decay", "all"}}), "--decay has no effect without weight decay");
  EXPECT_EQ(refused({{"final-fraction", 0.5}}), "--final-fraction has no effect with --schedule constant");
  EXPECT_EQ(refused({{"schedule", "cosine"}, {"decay-steps", 5}}),
            "--decay-steps has no effect without --schedule wsd");
  EXPECT_EQ(refused({{"weights", {1.0}}}), "--weights has no effect with one token file");
  EXPECT_EQ(refused({{"batch", 2}, {"accumulate", 3}}),
            "--accumulate 3: a batch of 2 has no more parts than sequences");
  EXPECT_EQ(refused({{"context", 13}}), "--context 13: the model's is 12");
}

TEST(Settings, AreTakenOverFromTheRunBefore) {
  const Json first = settings_json({{"lr", 0.5}, {"batch", 3}, {"schedule", "wsd"}, {"warmup", 7}});
  EXPECT_EQ(settings_json(Json::object(), first), first);
  const Json second = settings_json({{"lr", 0.25}}, first);
  EXPECT_EQ(differences(first, second), std::vector<std::string>{"--lr 0.25 (was 0.5)"});
  // A longer run moves the schedule's end, and says it.
  EXPECT_EQ(differences(first, settings_json(Json::object(), first, 300)),
            std::vector<std::string>{"--steps 300 (was 100)"});
  // A constant rate does not depend on the run's length: nothing changes.
  const Json constant = settings_json(Json::object());
  EXPECT_EQ(settings_json(Json::object(), constant, 300), constant);
}

TEST(Settings, OfAnotherOptimizerAreNotTakenOver) {
  const Json first = settings_json({{"lr", 0.5}, {"weight-decay", 0.3}, {"decay", "matrices"}, {"batch", 3}});
  const Json second = settings_json({{"optimizer", "ecd"}}, first);
  EXPECT_EQ(second.at("lr"), 1);
  EXPECT_EQ(second.at("weight-decay"), 0);
  EXPECT_EQ(second.at("batch"), 3);
  EXPECT_FALSE(second.contains("decay") || second.contains("beta1"));
}

TEST(Settings, GoThroughAFileUnchanged) {
  const Json first =
      settings_json({{"lr", 0.1}, {"epsilon", 1e-12}, {"schedule", "cosine"}, {"final-fraction", 1.0 / 3}});
  EXPECT_EQ(Json::parse(first.dump()), first);
  State state{.step = 3,
              .steps = 9,
              .windows = 24,
              .tokens = 240,
              .optimizer_steps = 3,
              .smoothed_loss = 1.0 / 3,
              .origin = "x",
              .phases = {{0, first}}};
  const State again = state_from_json(Json::parse(to_json(state).dump()), "m.h5");
  EXPECT_EQ(to_json(again), to_json(state));
  EXPECT_EQ(again.smoothed_loss, state.smoothed_loss);
}

TEST(Settings, AreCheckedWhenTheyAreRead) {
  EXPECT_EQ(usage_error([] { parse_setting(setting("lr"), "nan"); }),
            "--lr: expected a finite number above 0, found nan");
  EXPECT_EQ(usage_error([] { parse_setting(setting("lr"), "0"); }), "--lr: expected a finite number above 0, found 0");
  EXPECT_EQ(usage_error([] { parse_setting(setting("beta1"), "1.5"); }),
            "--beta1: expected a finite number of at least 0 and at most 1, found 1.5");
  EXPECT_EQ(usage_error([] { parse_setting(setting("batch"), "0"); }),
            "--batch: expected a whole number of at least 1 and at most 1e+09, found 0");
  EXPECT_EQ(usage_error([] { parse_setting(setting("schedule"), "cosin"); }),
            "--schedule: expected constant, cosine, wsd, found cosin (did you mean cosine?)");
  EXPECT_EQ(usage_error([] { parse_setting(setting("weights"), "1,,2"); }),
            "--weights: expected numbers above 0 with commas between them, found 1,,2");
  EXPECT_EQ(parse_setting(setting("weights"), "1,0.5"), Json({1.0, 0.5}));
  EXPECT_EQ(parse_setting(setting("batch"), "4k"), 4000);
}

TEST(Settings, OfAGroupAreItsOwnOrTheRuns) {
  const Json group = parse_setting(setting("group"), "embedding/*:optimizer=sgdm,lr=0.5,nesterov=false");
  const Json other = parse_setting(setting("group"), "*norm*:weight-decay=0");
  const Settings settings =
      settings_of(settings_json({{"lr", 0.25}, {"clip", 3.0}, {"group", Json::array({group, other})}}), "");
  ASSERT_EQ(settings.groups.size(), 2u);
  EXPECT_EQ(settings.groups[0].parameters, "embedding/*");
  EXPECT_EQ(settings.groups[0].optimizer->name, "sgdm");
  EXPECT_EQ(settings.groups[0].hyperparameters,
            (optimizers::Hyperparameters{.lr = 0.5, .clip = 3, .momentum = 0.95, .nesterov = false}));
  EXPECT_EQ(settings.groups[1].hyperparameters.lr, 0.25);
  EXPECT_EQ(settings.groups[1].hyperparameters.weight_decay, 0);
}

TEST(Settings, OfAGroupThatCannotBeAreRefused) {
  const auto parse = [](const std::string& text) {
    return usage_error([&] { parse_setting(setting("group"), text); });
  };
  EXPECT_EQ(parse("lr=1"), "--group: expected PATTERN:NAME=VALUE,..., found lr=1");
  EXPECT_EQ(parse("a*:batch=3"), "--group a*:batch=3: expected NAME=VALUE, found batch=3");
  EXPECT_EQ(parse("a*:momentu=0.3"),
            "--group a*:momentu=0.3: expected NAME=VALUE, found momentu=0.3 (did you mean momentum?)");
  EXPECT_EQ(parse("a*:lr=x"), "--lr: expected a finite number above 0, found x");
  EXPECT_EQ(parse("a*:f0=auto"), "--group a*:f0=auto: f0=auto is for a whole run");
  EXPECT_EQ(refused({{"group", Json::array({Json{{"parameters", "a*"}, {"eta", 3.0}}})}}),
            "--group a*: eta has no effect with optimizer=adamw");
  EXPECT_EQ(refused({{"optimizer", "ecd"}, {"group", Json::array({Json{{"parameters", "a*"}, {"lr", 3.0}}})}}),
            "--group a*: ecd moves all its parameters together; name another optimizer for one of its groups");
  EXPECT_EQ(refused({{"optimizer", "ecdsep"}, {"f0", "auto"}}),
            "--f0 auto has no effect with --optimizer ecdsep: its energy is counted from one F0");
  EXPECT_EQ(refused({{"optimizer", "ecd"}, {"f0-fraction", 0.3}}), "--f0-fraction has no effect without --f0 auto");
}

TEST(State, KnowsWhatALineComesThrough) {
  const Json a = settings_json(Json::object()), b = settings_json({{"lr", 0.5}});
  const State start{.steps = 100, .origin = "x", .phases = {{0, a}}};
  State found = start;
  found.step = found.optimizer_steps = 50;
  EXPECT_TRUE(comes_through(start, found));
  found.steps = 60; // a constant rate: a shorter run passes the same points
  EXPECT_TRUE(comes_through(start, found));
  EXPECT_FALSE(comes_through(found, start));
  State other = found;
  other.origin = std::string("y"); // GCC 12 sees an overflow in the assignment of a literal here
  EXPECT_FALSE(comes_through(start, other));
  other = found;
  other.phases = {{0, b}};
  EXPECT_FALSE(comes_through(start, other));
  other = found;
  other.step = other.optimizer_steps = 101;
  EXPECT_FALSE(comes_through(start, other));
  other = found;
  other.optimizer_steps = 10; // its optimizer began anew on the way
  EXPECT_FALSE(comes_through(start, other));
}

} // namespace
} // namespace noether::training
