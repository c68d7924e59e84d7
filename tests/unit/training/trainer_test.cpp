// Steps of a whole model: that parts make a batch, that a stop leaves no trace, and that a failure changes nothing.
#include "training/trainer.h"

#include "base/error.h"
#include "small.h"

#include <cmath>
#include <cstring>

namespace noether::training {
namespace {

struct Workbench {
  Folder folder;
  std::vector<text::TokenFile> files;
  Workbench() { files.push_back(token_file(folder / "tokens.h5", 500, 30)); }

  /// Takes steps until `until`; the checkpoint's training state is brought up to date.
  StepReport steps(architecture::Checkpoint& checkpoint, State& state, const Json& given, std::uint64_t until) const {
    const Settings settings = settings_of(settings_json(given), "");
    const Data data(files, settings);
    Trainer trainer(checkpoint, settings, 1);
    StepReport report;
    while (state.step < until) report = trainer.step(state, data.batch(state.windows, settings.batch));
    return report;
  }
};

bool same_bits(const architecture::Arena& a, const architecture::Arena& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
}

TEST(Trainer, AccumulatingIsTheLargeBatch) {
  const Workbench setup;
  // Shuffled, so that one window has targets that do not count: each token weighs the same, whichever part it is in.
  // The model has biases drawn at each step, which must be the same in every part.
  for (const char* optimizer : {"sgdm", "ecd"}) {
    std::vector<double> losses;
    std::vector<architecture::Checkpoint> checkpoints;
    for (const int parts : {1, 2, 5}) {
      checkpoints.push_back(architecture::initialise(small_config(), 1, 1));
      State state;
      const StepReport report =
          setup.steps(checkpoints.back(), state,
                      {{"optimizer", optimizer}, {"batch", 42}, {"accumulate", parts}, {"order", "shuffle"}}, 2);
      losses.push_back(report.loss);
      EXPECT_EQ(state.tokens, 499u * 2); // 42 windows are the whole file
      double worst = 0;
      for (std::int64_t i = 0; i < checkpoints[0].parameters.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(checkpoints[0].parameters.data()[i]) -
                                         checkpoints.back().parameters.data()[i]));
      EXPECT_LT(worst, 2e-6) << optimizer << parts; // float32 sums in another order, of numbers below 1
      EXPECT_NEAR(losses.back(), losses[0], 1e-5);
    }
  }
}

TEST(Trainer, AStopLeavesNoTrace) {
  const Workbench setup;
  for (const Json& given : {Json{{"optimizer", "adamw"}}, Json{{"optimizer", "sgdm"}, {"order", "shuffle"}},
                            Json{{"optimizer", "ecd"}, {"nu", 0.1}, {"schedule", "cosine"}, {"warmup", 3}},
                            Json{{"optimizer", "ecdsep"}, {"delta-energy", 0.1}, {"nu", 0.1}},
                            Json{{"optimizer", "soap"}, {"precondition-every", 2}},
                            Json{{"optimizer", "ecd"}, {"f0", "auto"}, {"f0-fraction", 0.1}, {"lr", 3.0}},
                            Json{{"optimizer", "ecd"},
                                 {"group",
                                  {{{"parameters", "embedding/*"}, {"optimizer", "adamw"}},
                                   {{"parameters", "*W_up"}, {"optimizer", "soap"}}}}}}) {
    architecture::Checkpoint whole = architecture::initialise(small_config(), 1, 1);
    State state;
    setup.steps(whole, state, given, 6);

    architecture::Checkpoint half = architecture::initialise(small_config(), 1, 1);
    State stopped;
    setup.steps(half, stopped, given, 3);
    stopped.phases = {{0, settings_json(given)}};
    half.training.state = to_json(stopped);
    const std::string path = setup.folder / "half.h5";
    {
      store::OutputStream output(path);
      output.write(architecture::to_file(half, true), {});
      output.close();
    }
    architecture::Checkpoint rest = architecture::read_checkpoint(store::open_one(path, store::kCheckpointFile), true);
    State resumed = state_from_json(rest.training.state, path);
    setup.steps(rest, resumed, given, 6);

    EXPECT_TRUE(same_bits(rest.parameters, whole.parameters)) << given;
    ASSERT_EQ(rest.training.optimizer.size(), whole.training.optimizer.size());
    for (const auto& [name, arena] : whole.training.optimizer)
      EXPECT_TRUE(same_bits(rest.training.optimizer.at(name), arena)) << given << name;
    EXPECT_EQ(rest.training.sides.size(), whole.training.sides.size());
    for (const auto& [name, side] : whole.training.sides)
      EXPECT_TRUE(same_bits(rest.training.sides.at(name), side)) << given << name;
    EXPECT_EQ(resumed.smoothed_loss, state.smoothed_loss);
    EXPECT_FALSE(same_bits(half.parameters, whole.parameters)); // or the comparison above says nothing
  }
}

TEST(Trainer, GroupsAreMovedByTheirOwnOptimizers) {
  const Workbench setup;
  // At the first step all have the same gradients: each part moves as it would in a run of its optimizer alone.
  std::map<std::string, architecture::Checkpoint> moved;
  for (const auto& [name, given] : {std::pair<std::string, Json>{"adamw", {{"lr", 0.01}}},
                                    {"sgdm", {{"optimizer", "sgdm"}, {"lr", 0.5}}},
                                    {"both",
                                     {{"lr", 0.01},
                                      {"group",
                                       {{{"parameters", "layers/*/mlp/*"}, {"optimizer", "sgdm"}, {"lr", 0.5}},
                                        {{"parameters", "layers/1/*"}, {"lr", 0.0625}}}}}}}) {
    architecture::Checkpoint checkpoint = architecture::initialise(small_config(), 1, 1);
    State state;
    setup.steps(checkpoint, state, given, 1);
    moved.emplace(name, std::move(checkpoint));
  }
  const architecture::Checkpoint& both = moved.at("both");
  for (const architecture::Parameter& parameter : both.layout) {
    const bool mlp = parameter.name.find("/mlp/") != std::string::npos;
    const bool same = std::equal(both.parameters.data() + parameter.offset,
                                 both.parameters.data() + parameter.offset + parameter.count,
                                 moved.at(mlp ? "sgdm" : "adamw").parameters.data() + parameter.offset);
    EXPECT_EQ(same, mlp || !parameter.name.starts_with("layers/1/")) << parameter.name;
  }
  // AdamW's second moment is kept for what it moves alone.
  const auto& holders = both.training.holders.at("second_moment");
  for (std::size_t i = 0; i < holders.size(); ++i)
    EXPECT_EQ(holders[i], both.layout[i].name.find("/mlp/") == std::string::npos);
  const auto refused = [&](const Json& groups) -> std::string {
    try {
      architecture::Checkpoint checkpoint = architecture::initialise(small_config(), 1, 1);
      State state;
      setup.steps(checkpoint, state, {{"group", groups}}, 1);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({{{"parameters", "layers/0/mlp/W_u"}, {"lr", 0.5}}}),
            "--group layers/0/mlp/W_u: no parameter's name matches, or an earlier group has them all (did you mean "
            "layers/0/mlp/W_up?)");
}

TEST(Trainer, AFloorThatFollowsTheLossIsARunOfFixedFloors) {
  const Workbench setup;
  Json given{{"optimizer", "ecd"}, {"f0", "auto"}, {"f0-fraction", 0.1}, {"lr", 3.0}};
  architecture::Checkpoint moving = architecture::initialise(small_config(), 1, 1);
  State state;
  while (state.floors.size() < 2 && state.step < 100) setup.steps(moving, state, given, state.step + 1);
  ASSERT_EQ(state.floors.size(), 2u);
  ASSERT_GT(state.step, 1u);
  EXPECT_LT(state.floors[1].second, state.floors[0].second);
  EXPECT_NEAR(state.floors[0].second, 0.9 * std::log(256.0), 0.05); // of a fresh model's loss
  EXPECT_EQ(state.floors[1].first, state.step - 1);

  architecture::Checkpoint fixed = architecture::initialise(small_config(), 1, 1);
  State again;
  for (const auto& [until, floor] :
       {std::pair{state.step - 1, state.floors[0].second}, std::pair{state.step, state.floors[1].second}})
    setup.steps(fixed, again, {{"optimizer", "ecd"}, {"f0", floor}, {"lr", 3.0}}, until);
  EXPECT_TRUE(same_bits(fixed.parameters, moving.parameters));
}

TEST(Trainer, LearnsAndValidates) {
  const Workbench setup;
  architecture::Checkpoint checkpoint = architecture::initialise(small_config(), 1, 1);
  const Settings settings = settings_of(settings_json({{"lr", 0.01}}), "");
  const Data data(setup.files, settings);
  Trainer trainer(checkpoint, settings, 1);
  const Batch batch = validation_batch(setup.files[0], 12, 1000);
  EXPECT_NEAR(trainer.validate(batch), std::log(256.0), 0.05); // a fresh model is nearly indifferent
  State state;
  for (int i = 0; i < 100; ++i) trainer.step(state, data.batch(state.windows, settings.batch));
  // The tokens are drawn uniformly from 30: their entropy is what can be learned. A little less is learned by heart.
  EXPECT_NEAR(trainer.validate(batch), std::log(30.0), 0.15);
}

TEST(Trainer, NamesTheTensorThatIsNotFinite) {
  const Workbench setup;
  architecture::Checkpoint checkpoint = architecture::initialise(small_config(), 1, 1);
  std::int64_t offset = 0;
  for (const auto& parameter : checkpoint.layout)
    if (parameter.name == "layers/1/mlp/W_up") offset = parameter.offset;
  checkpoint.parameters.data()[offset + 5] = std::nanf("");
  State state;
  state.step = 7;
  try {
    setup.steps(checkpoint, state, Json::object(), 8);
    FAIL() << "no error";
  } catch (const DivergedError& error) {
    EXPECT_STREQ(error.what(), "step 8: the loss is nan; the first tensor that is not finite: layers/1/mlp/W_up");
  }
  EXPECT_EQ(state.step, 7u);
  EXPECT_EQ(checkpoint.training.optimizer.at("momentum").data()[0], 0);
}

TEST(Trainer, DecaysMatricesButNotBiases) {
  const Workbench setup;
  const Json given{{"optimizer", "sgdm"}, {"weight-decay", 1.0}};
  Json matrices = given;
  matrices["decay"] = "matrices";
  architecture::Checkpoint a = architecture::initialise(small_config(), 1, 1),
                           b = architecture::initialise(small_config(), 1, 1);
  for (architecture::Checkpoint* checkpoint : {&a, &b})
    for (std::int64_t i = 0; i < checkpoint->parameters.size(); ++i) checkpoint->parameters.data()[i] += 0.1F;
  State one, two;
  setup.steps(a, one, given, 1);
  setup.steps(b, two, matrices, 1);
  for (const auto& parameter : a.layout) {
    const bool same =
        std::equal(a.parameters.data() + parameter.offset, a.parameters.data() + parameter.offset + parameter.count,
                   b.parameters.data() + parameter.offset);
    const bool matrix = parameter.name.find("W_") != std::string::npos || parameter.name.starts_with("embedding/");
    EXPECT_EQ(same, matrix) << parameter.name;
  }
}

} // namespace
} // namespace noether::training
