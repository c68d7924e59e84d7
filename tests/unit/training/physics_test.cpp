// The physics that breaking symmetries is about, in training runs of a small model on one batch.
#include "models/conserved.h"
#include "small.h"
#include "training/trainer.h"

#include <ATen/TensorOperators.h>

#include <cmath>

namespace noether::training {
namespace {

struct Experiment {
  architecture::Checkpoint checkpoint;
  State state;
  Settings settings;
  Batch batch;
  std::unique_ptr<Trainer> trainer;

  /// kick: a momentum of random direction, or none: the first step then goes down the gradient.
  Experiment(architecture::Break symmetry_break, const Json& given, bool kick) {
    const Folder folder;
    architecture::Config config = small_config();
    config.symmetry_break = symmetry_break;
    checkpoint = architecture::initialise(config, 1, 1);
    for (float& x : checkpoint.parameters.span()) x *= 4;
    settings = settings_of(settings_json(given), "");
    std::vector<text::TokenFile> files;
    files.push_back(token_file(folder / "tokens.h5", 500, 30));
    batch = Data(files, settings).batch(0, 8);
    trainer = std::make_unique<Trainer>(checkpoint, settings, 1);
    if (!kick) return;
    state.optimizer_steps = 1;
    architecture::Arena& momentum = checkpoint.training.optimizer.at("momentum");
    Random(11, Purpose::kSample).fill_normal(momentum.data(), 0, static_cast<std::uint64_t>(momentum.size()), 0, 1);
  }
  double step() { return trainer->step(state, batch).loss; }
  models::HeadMatrices L() {
    return models::angular_momentum(checkpoint.config, checkpoint.parameters,
                                    checkpoint.training.optimizer.at("momentum"));
  }
  models::HeadMatrices balance() { return models::balance(checkpoint.config, checkpoint.parameters); }
};

constexpr double kEta = 20, kF0 = 1;

Json ecd(double dt) { // dt = lr / sqrt(eta)
  return {{"optimizer", "ecd"}, {"lr", dt * std::sqrt(kEta)}, {"eta", kEta}, {"f0", kF0}};
}

/// ECD's P is the canonical momentum divided by its length, which energy conservation ties to the loss: its length is
/// (F - F0)^(-eta N / (2 (N - 1))) up to a constant. So under symmetric dynamics L (F - F0)^-(...) is constant.
struct Canonical {
  double log_length; ///< of L_QK of all heads, less that of the law
  at::Tensor direction;
};
Canonical canonical(Experiment& run, double loss) {
  const at::Tensor L = run.L().qk;
  const double N = static_cast<double>(run.checkpoint.parameters.size()), length = L.norm().item<double>();
  return {std::log(length) - kEta / 2 * N / (N - 1) * std::log(loss - kF0), L / length};
}

/// How far the canonical momentum is from where it was after time 0.4, from a kick.
std::pair<double, double> drift(double dt) {
  Experiment run(architecture::Break::none, ecd(dt), true);
  double loss = run.step();
  // The loss that a step reports is the one before it; the momentum after it has met that gradient.
  const Canonical first = canonical(run, loss);
  const int steps = static_cast<int>(std::lround(0.4 / dt));
  for (int i = 0; i < steps; ++i) loss = run.step();
  const Canonical last = canonical(run, loss);
  return {std::abs(last.log_length - first.log_length), (last.direction - first.direction).norm().item<double>()};
}

TEST(SymmetricEcd, KeepsAngularMomentumToTheOrderOfTheIntegrator) {
  const auto [coarse, coarse_turn] = drift(0.008);
  const auto [fine, fine_turn] = drift(0.004);
  EXPECT_GT(coarse, 1e-4); // or there would be nothing to compare
  EXPECT_LT(coarse, 0.2);
  EXPECT_NEAR(coarse / fine, 2, 0.5); // first order
  // Kicks and drifts turn all weights of a head alike, so that the direction of L is exact, but for rounding.
  EXPECT_LT(coarse_turn, 1e-3);
  EXPECT_LT(fine_turn, 1e-3);
}

TEST(SymmetricEcd, BeginsAndStaysWithoutAngularMomentumUntilBiasesTurnIt) {
  double symmetric = 0, broken = 0;
  for (const architecture::Break mode : {architecture::Break::none, architecture::Break::qv}) {
    Experiment run(mode, ecd(0.02), false);
    for (int i = 0; i < 30; ++i) run.step();
    const models::HeadMatrices L = run.L();
    (mode == architecture::Break::none ? symmetric : broken) =
        std::min(models::norms(L.qk).max().item<double>(), models::norms(L.vo).max().item<double>());
  }
  EXPECT_LT(symmetric, 1e-5); // rounding, of weights of order 0.1
  EXPECT_GT(broken, 100 * symmetric);
}

/// How far the balance has moved after time 1 of gradient descent.
double balance_drift(double lr, architecture::Break mode) {
  Experiment run(mode, {{"optimizer", "sgdm"}, {"momentum", 0}, {"nesterov", false}, {"lr", lr}}, false);
  const models::HeadMatrices start = run.balance();
  for (int i = 0; i < static_cast<int>(std::lround(1 / lr)); ++i) run.step();
  const models::HeadMatrices end = run.balance();
  return std::sqrt((end.qk - start.qk).square().sum().item<double>() +
                   (end.vo - start.vo).square().sum().item<double>());
}

TEST(GradientFlow, KeepsTheBalanceOfWeightsToTheOrderOfTheStep) {
  using architecture::Break;
  const double coarse = balance_drift(0.005, Break::none), fine = balance_drift(0.0025, Break::none);
  EXPECT_NEAR(coarse / fine, 2, 0.2);
  EXPECT_GT(balance_drift(0.0025, Break::qv), 3 * fine);
}

} // namespace
} // namespace noether::training
