#include "architecture/checkpoint.h"
#include "architecture/presets.h"
#include "base/error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

using namespace noether;
using namespace noether::architecture;

namespace {

Config small() { return describe("gpt2", {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab_size = 32}); }

/// A path that is gone when the test is.
struct Path {
  std::string name =
      (std::filesystem::temp_directory_path() / ("noether-checkpoint-" + std::to_string(getpid()) + ".h5")).string();
  ~Path() { std::filesystem::remove(name); }
};

void save(const Checkpoint& checkpoint, const std::string& path) {
  store::OutputStream output(path);
  output.write(to_file(checkpoint, true), {R"({"tool":"test"})"});
  output.close();
}

bool same(const Arena& a, const Arena& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

} // namespace

TEST(Initialise, IsTheSameOnAnyNumberOfThreads) {
  const Config config = describe("gpt2", {.layers = 2, .width = 128, .vocab_size = 5000});
  const Checkpoint one = initialise(config, 3, 1), three = initialise(config, 3, 3), other = initialise(config, 4, 1);
  EXPECT_TRUE(same(one.parameters, three.parameters));
  EXPECT_FALSE(same(one.parameters, other.parameters));
}

TEST(Initialise, HasTheDeviationsOfTheMethod) {
  Config config = describe("gpt2", {.layers = 8, .width = 256, .vocab_size = 5000});
  config.activation = Activation::prelu;
  const Checkpoint checkpoint = initialise(config, 1, 0);
  for (const Parameter& parameter : checkpoint.layout) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < parameter.count; ++i) {
      const double x = checkpoint.parameters.data()[parameter.offset + i];
      sum += x;
      squares += x * x;
    }
    const auto n = static_cast<double>(parameter.count);
    const double mean = sum / n, deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
    const double expected = parameter.name.ends_with("W_O") || parameter.name.ends_with("W_down")
                                ? 0.02 / std::sqrt(16.0)
                            : parameter.is_matrix()             ? 0.02
                            : parameter.name.ends_with("slope") ? 1.0
                                                                : 0.0;
    const double expected_mean = parameter.name.ends_with("slope")       ? 0.2
                                 : parameter.name.ends_with("norm_gain") ? 1
                                                                         : 0;
    // Five standard errors of a deviation and of a mean.
    EXPECT_NEAR(deviation, expected, 5 * expected / std::sqrt(2 * n) + 1e-12) << parameter.name;
    EXPECT_NEAR(mean, expected_mean, 5 * expected / std::sqrt(n) + 1e-12) << parameter.name;
  }
}

TEST(Checkpoint, ComesBackAsItWas) {
  Checkpoint checkpoint = initialise(small(), 1, 1);
  checkpoint.training.state = {{"step", 7}};
  checkpoint.training.history["loss"] = {3.5, 3.25};
  Arena momentum(checkpoint.parameters.size());
  for (std::int64_t i = 0; i < momentum.size(); ++i) momentum.data()[i] = static_cast<float>(i);
  checkpoint.training.optimizer.emplace("momentum", std::move(momentum));
  // Another optimizer's state, of one parameter alone, and a side of a matrix.
  checkpoint.training.optimizer.emplace("second_moment", Arena(checkpoint.parameters.size()));
  checkpoint.training.holders["second_moment"].resize(checkpoint.layout.size());
  checkpoint.training.holders["second_moment"][1] = true;
  Arena side(16 * 17);
  side.data()[16 * 17 - 1] = 2;
  checkpoint.training.sides.emplace("right/embedding/positions", std::move(side));
  const Path path;
  save(checkpoint, path.name);

  const Checkpoint back = read_checkpoint(store::open_one(path.name, store::kCheckpointFile), true);
  EXPECT_TRUE(same(back.parameters, checkpoint.parameters));
  EXPECT_TRUE(same(back.training.optimizer.at("momentum"), checkpoint.training.optimizer.at("momentum")));
  EXPECT_EQ(back.training.holders.at("momentum"), std::vector<bool>(checkpoint.layout.size(), true));
  EXPECT_EQ(back.training.holders.at("second_moment"), checkpoint.training.holders.at("second_moment"));
  EXPECT_TRUE(same(back.training.sides.at("right/embedding/positions"),
                   checkpoint.training.sides.at("right/embedding/positions")));
  EXPECT_EQ(back.training.state.dump(), checkpoint.training.state.dump());
  EXPECT_EQ(back.training.history, checkpoint.training.history);
  EXPECT_EQ(to_json(back.config).dump(), to_json(checkpoint.config).dump());
  EXPECT_EQ(back.provenance, std::vector<std::string>{R"({"tool":"test"})"});
  EXPECT_EQ(back.digest.size(), 32u);
  EXPECT_TRUE(read_checkpoint(store::open_one(path.name, store::kCheckpointFile), false).training.optimizer.empty());
}

TEST(Checkpoint, RefusesParametersThatDoNotFitItsConfiguration) {
  const Path path;
  const auto message = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint checkpoint = initialise(small(), 1, 1);
    change(checkpoint);
    save(checkpoint, path.name);
    try {
      read_checkpoint(store::open_one(path.name, store::kCheckpointFile), true);
    } catch (const Error& error) {
      return std::string(error.what()).substr(path.name.size());
    }
    return std::string();
  };
  EXPECT_EQ(message([](Checkpoint& c) { c.config.layers = 3; }),
            ": no dataset /parameters/layers/2/attention/norm_gain");
  EXPECT_EQ(message([](Checkpoint& c) { c.config.layers = 1; }),
            ": /parameters/layers/1/attention/W_K: not a parameter of this configuration");
  EXPECT_EQ(message([](Checkpoint& c) { c.config.context = 9; }),
            ": /parameters/embedding/positions: expected shape [9, 16], found [8, 16]");
}

TEST(Checkpoint, RefusesStateThatDoesNotFit) {
  const Path path;
  const auto message = [&](const char* dataset, store::Type type, const store::Shape& shape) {
    const Checkpoint checkpoint = initialise(small(), 1, 1);
    const std::vector<double> numbers(1000);
    store::FileWriter file = to_file(checkpoint, true);
    file.array(dataset, type, shape, numbers.data());
    store::OutputStream output(path.name);
    output.write(std::move(file), {});
    output.close();
    try {
      read_checkpoint(store::open_one(path.name, store::kCheckpointFile), true);
    } catch (const Error& error) {
      return std::string(error.what()).substr(path.name.size());
    }
    return std::string();
  };
  using enum store::Type;
  EXPECT_EQ(message("/optimizer/left/embedding/positions", f32, {9, 8}), "");
  EXPECT_EQ(message("/optimizer/left/embedding/positions", f32, {8, 8}),
            ": /optimizer/left/embedding/positions: expected shape [9, 8], found [8, 8]");
  EXPECT_EQ(message("/optimizer/right/head/norm_gain", f32, {17, 16}),
            ": /optimizer/right/head/norm_gain: not a matrix of this configuration");
  EXPECT_EQ(message("/optimizer/left", f32, {17, 16}), ": /optimizer/left: not a matrix of this configuration");
  EXPECT_EQ(message("/optimizer/momentum/embedding/positions", f32, {16, 8}),
            ": /optimizer/momentum/embedding/positions: expected shape [8, 16], found [16, 8]");
  EXPECT_EQ(message("/optimizer/momentum/other", f32, {16, 8}),
            ": /optimizer/momentum/other: not a parameter of this configuration");
  // State keeps its type: another is refused, and not rounded.
  EXPECT_EQ(message("/optimizer/momentum/embedding/positions", f64, {8, 16}),
            ": /optimizer/momentum/embedding/positions: expected float32, found float64");
  EXPECT_EQ(message("/optimizer/left/embedding/positions", f64, {9, 8}),
            ": /optimizer/left/embedding/positions: expected float32, found float64");
}
