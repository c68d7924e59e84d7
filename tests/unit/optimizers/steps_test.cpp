// Steps against PyTorch's and the ECD authors' numbers, and the properties that every optimizer over an arena must
// have.
#include "optimizers/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

namespace noether::optimizers {
namespace {

// The analytic problem of tests/golden/optimizers.tsv.
template <class Real> double problem(const std::vector<Real>& t, std::vector<Real>& grad) {
  double f = 1;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double a = 1 + static_cast<double>(i) / 10, x = static_cast<double>(t[i]);
    f += a * x * x / 2 + 0.0125 * x * x * x * x;
    grad[i] = static_cast<Real>(a * x + 0.05 * x * x * x);
  }
  return f;
}
const std::vector<Segment> kTensors = {{0, 30, true, 6, 5}, {30, 7, true}, {37, 12, true, 4, 3}};

StepResult step(const Optimizer& o, const Arena<float>& a, const Hyperparameters& h, const StepContext& c) {
  return o.step(a, h, c);
}
StepResult step(const Optimizer& o, const Arena<double>& a, const Hyperparameters& h, const StepContext& c) {
  return o.step64(a, h, c);
}

struct Golden {
  std::string optimizer;
  Hyperparameters h;
  std::vector<double> loss;
  std::map<int, std::vector<double>> theta;
};

std::map<std::string, Golden> read_golden() {
  std::ifstream file(NOETHER_TEST_DATA "/optimizers.tsv");
  std::map<std::string, Golden> all;
  std::string line, name, what, field;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    std::getline(fields, name, '\t');
    std::getline(fields, what, '\t');
    Golden& golden = all[name];
    golden.optimizer = name.substr(0, name.find('_'));
    Hyperparameters& h = golden.h;
    h.per_tensor = name.find("per_tensor") != std::string::npos;
    const std::map<std::string, double*> options = {{"lr", &h.lr},
                                                    {"weight_decay", &h.weight_decay},
                                                    {"beta1", &h.beta1},
                                                    {"beta2", &h.beta2},
                                                    {"eps", &h.epsilon},
                                                    {"momentum", &h.momentum},
                                                    {"eta", &h.eta},
                                                    {"F0", &h.f0},
                                                    {"nu", &h.nu},
                                                    {"s", &h.s},
                                                    {"deltaEn", &h.delta_energy}};
    const std::map<std::string, std::int64_t*> counts = {{"precondition_frequency", &h.precondition_every},
                                                         {"max_precond_dim", &h.precondition_limit}};
    std::vector<double> values;
    while (std::getline(fields, field, '\t')) {
      const std::size_t equals = field.find('=');
      if (equals == std::string::npos)
        values.push_back(std::stod(field));
      else if (field.substr(0, equals) == "nesterov")
        h.nesterov = std::stod(field.substr(equals + 1)) != 0;
      else if (const auto count = counts.find(field.substr(0, equals)); count != counts.end())
        *count->second = std::stoll(field.substr(equals + 1));
      else
        *options.at(field.substr(0, equals)) = std::stod(field.substr(equals + 1));
    }
    if (what == "loss") golden.loss = values;
    if (what.starts_with("theta ")) golden.theta[std::stoi(what.substr(6))] = values;
  }
  return all;
}

/// The golden problem's tensors and SOAP's state of them.
template <class Real> struct Small {
  std::vector<Real> theta, grad, momentum, second_moment;
  std::vector<std::vector<Real>> sides;
  Arena<Real> arena;

  explicit Small(const Hyperparameters& h) : theta(49), grad(49), momentum(49), second_moment(49) {
    for (std::size_t i = 0; i < 49; ++i) theta[i] = static_cast<Real>(std::sin(static_cast<double>(i + 1)));
    arena = {theta.data(), grad.data(), {momentum.data(), second_moment.data()}, kTensors};
    for (const Segment& segment : kTensors) {
      arena.sides.emplace_back();
      const auto lengths = soap_sides(segment, h);
      for (const std::size_t s : {0U, 1U})
        if (lengths[s] > 0)
          arena.sides.back()[s] = sides.emplace_back(static_cast<std::size_t>(lengths[s] * (lengths[s] + 1))).data();
    }
  }
  double loss_after(const Hyperparameters& h, std::uint64_t steps) {
    for (std::uint64_t k = 0; k < steps; ++k) {
      problem(theta, grad);
      step(optimizer_of("soap"), arena, h, {.taken = k, .step = k});
    }
    return problem(theta, grad);
  }
};

/// Largest difference from the golden run, relative to 1, in its first steps.
template <class Real> double difference(const Golden& golden, int steps = 60) {
  const Optimizer& optimizer = optimizer_of(golden.optimizer);
  std::vector<Real> theta(49), grad(49);
  std::vector<std::vector<Real>> state(optimizer.state.size(), std::vector<Real>(49));
  for (std::size_t i = 0; i < 49; ++i) theta[i] = static_cast<Real>(std::sin(static_cast<double>(i + 1)));
  Arena<Real> arena{theta.data(), grad.data(), {}, kTensors};
  for (auto& array : state) arena.state.push_back(array.data());
  Small<Real> soap(golden.h);
  if (optimizer.sides) arena.sides = soap.arena.sides;

  double worst = 0;
  std::size_t compared = 0;
  double start_distance = 0;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(steps); ++k) {
    const double loss = problem(theta, grad);
    worst = std::max(worst, std::abs(loss - golden.loss.at(k)));
    const StepResult result =
        step(optimizer, arena, golden.h, {.taken = k, .step = k, .loss = loss, .start_distance = start_distance});
    if (k == 0) start_distance = result.distance;
    const auto expected = golden.theta.find(static_cast<int>(k) + 1);
    if (expected == golden.theta.end()) continue;
    for (std::size_t i = 0; i < 49; ++i, ++compared)
      worst = std::max(worst, std::abs(static_cast<double>(theta[i]) - expected->second.at(i)));
  }
  EXPECT_EQ(compared, (steps == 60 ? 8 : 3) * 49u);
  return worst;
}

TEST(Steps, AgreeWithTheOtherPrograms) {
  const auto all = read_golden();
  ASSERT_EQ(all.size(), 8u);
  for (const auto& [name, golden] : all) {
    if (name == "soap") {
      // The published program rounds factors to float32 before it decomposes them, and from the first renewal on, at
      // the tenth step, keeps bases in float32. Where a factor is singular, as the first ones are, the last digits of
      // those decide the basis of its kernel, and they depend on the processor: on the kind where theirs ran, all of
      // the run agrees to 1e-6, on others to some 1e-5. In a float32 run, what a basis should have made zero is noise,
      // and Adam makes noise large: only the loss is comparable, and LearnsAsFastInFloat32 compares it.
      EXPECT_LT(difference<double>(golden, 10), 5e-5) << name;
      EXPECT_LT(difference<double>(golden), 2e-4) << name;
      continue;
    }
    EXPECT_LT(difference<double>(golden), 1e-9) << name;
    // float32 rounds each of 60 steps at about 6e-8 of numbers up to 1, and the loss adds 49 of them.
    EXPECT_LT(difference<float>(golden), 2e-4) << name;
  }
}

TEST(Steps, GoldenComparisonCanFail) {
  auto all = read_golden();
  for (auto& [name, golden] : all) {
    golden.h.lr *= 1.001;
    EXPECT_GT(difference<double>(golden, 10), name == "soap" ? 5e-5 : 1e-6) << name;
    EXPECT_GT(difference<double>(golden), name == "soap" ? 2e-4 : 1e-6) << name;
  }
}

TEST(Soap, LearnsAsFastInFloat32) {
  const Golden golden = read_golden().at("soap");
  const double loss = Small<float>(golden.h).loss_after(golden.h, 59);
  EXPECT_NEAR(loss, golden.loss.back(), 0.1 * golden.loss.back()); // from 43.9
}

TEST(Soap, MovesInItsFirstStepWhenItIsTold) {
  Hyperparameters h = read_golden().at("soap").h;
  Small<double> skips(h);
  const std::vector<double> before = skips.theta;
  skips.loss_after(h, 1);
  EXPECT_TRUE(skips.theta == before);
  EXPECT_NE(skips.sides[0][0], 0);
  h.apply_first_step = true;
  Small<double> moves(h);
  moves.loss_after(h, 1);
  // Bias corrected, the first direction of what is not turned is the gradient's sign: lr, and the decay.
  for (std::size_t i = 30; i < 37; ++i)
    EXPECT_NEAR(moves.theta[i], (before[i] - h.lr * (before[i] > 0 ? 1 : -1)) * (1 - h.lr * h.weight_decay), 1e-8);
  EXPECT_TRUE(moves.sides == skips.sides); // the factors are the same
}

TEST(Soap, TurnsTheSidesThatItShould) {
  const Hyperparameters h = optimizer_of("soap").defaults;
  Hyperparameters vocabulary = h;
  vocabulary.precondition_vocabulary = true;
  using Sides = std::array<std::int64_t, 2>;
  EXPECT_EQ(soap_sides({0, 32 * 8, true, 32, 8, true}, h), (Sides{0, 8}));
  EXPECT_EQ(soap_sides({0, 32 * 8, true, 32, 8, true}, vocabulary), (Sides{32, 8}));
  EXPECT_EQ(soap_sides({0, 80'000, true, 10'001, 8, true}, vocabulary), (Sides{0, 8}));
  EXPECT_EQ(soap_sides({0, 80'000, true, 10'000, 8}, h), (Sides{10'000, 8}));
  EXPECT_EQ(soap_sides({0, 8}, h), (Sides{0, 0}));
}

TEST(Soap, RefusesGradientsThatItCannotSumUp) {
  const Hyperparameters h = optimizer_of("soap").defaults;
  Small<float> small(h);
  small.grad.assign(49, 1e19F); // finite; the sum of the squares is not
  const auto sides = small.sides;
  EXPECT_THROW(step(optimizer_of("soap"), small.arena, h, {}), DivergedError);
  EXPECT_TRUE(small.sides == sides);
  // What came in by a file is looked at before it is factorised.
  small.loss_after(h, 1);
  small.sides[0][1] = std::nanf("");
  EXPECT_THROW(small.loss_after(h, 12), DivergedError);
}

/// A problem large enough for many blocks and several threads, with segments of awkward sizes and a gap.
struct Large {
  std::vector<Segment> segments = {
      {0, 300'001, true}, {300'001, 7, false}, {300'010, 700'000, true}, {1'000'010, 1, false}};
  std::vector<float> theta, grad;
  std::vector<std::vector<float>> state;
  Arena<float> arena;

  explicit Large(const Optimizer& optimizer, unsigned seed = 5) : theta(1'000'011), grad(theta.size()) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : theta) x = normal(random);
    for (float& x : grad) x = normal(random);
    state.assign(optimizer.state.size(), std::vector<float>(theta.size()));
    arena = {theta.data(), grad.data(), {}, segments};
    for (auto& array : state) arena.state.push_back(array.data());
  }
};

TEST(Steps, DoNotDependOnTheNumberOfThreads) {
  for (const Optimizer& optimizer : all_optimizers()) {
    Hyperparameters h = optimizer.defaults;
    h.weight_decay = 0.1;
    h.clip = 1;
    h.nu = 0.5;
    h.apply_first_step = true;
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 7}) {
      Large large(optimizer);
      for (std::uint64_t k = 0; k < 2; ++k)
        step(optimizer, large.arena, h,
             {.taken = k, .step = k, .seed = 3, .loss = 5, .start_distance = 3, .threads = threads});
      large.theta.insert(large.theta.end(), large.state[0].begin(), large.state[0].end());
      results.push_back(large.theta);
    }
    for (std::size_t i = 1; i < results.size(); ++i) EXPECT_TRUE(results[i] == results[0]) << optimizer.name;
  }
}

TEST(Steps, LeaveAloneWhatBelongsToNoTensorAndDecayOnlyWhatDecays) {
  for (const Optimizer& optimizer : all_optimizers()) {
    Hyperparameters with = optimizer.defaults, without = optimizer.defaults;
    with.weight_decay = 0.1;
    without.weight_decay = 0;
    with.apply_first_step = without.apply_first_step = true;
    if (optimizer.name == "ecd") with.per_tensor = without.per_tensor = true;
    if (optimizer.name == "ecdsep")
      with.delta_energy = without.delta_energy = 0; // else the momentum's length mixes all
    Large a(optimizer), b(optimizer);
    const std::vector<float> before = a.theta;
    // ECD's F holds the decay term: the same F in both leaves G and the dot products as the only difference.
    double squares = 0;
    for (const Segment& s : a.segments)
      for (std::int64_t i = s.offset; s.decay && i < s.offset + s.length; ++i)
        squares += static_cast<double>(before[static_cast<std::size_t>(i)]) *
                   static_cast<double>(before[static_cast<std::size_t>(i)]);
    step(optimizer, a.arena, with, {.loss = 9});
    step(optimizer, b.arena, without, {.loss = 9 + 0.05 * squares});
    for (const std::size_t gap : {300'008u, 300'009u}) {
      EXPECT_EQ(a.theta[gap], before[gap]) << optimizer.name;
      EXPECT_EQ(a.state[0][gap], 0) << optimizer.name;
    }
    for (const std::size_t kept : {300'001u, 300'007u, 1'000'010u})
      EXPECT_EQ(a.theta[kept], b.theta[kept]) << optimizer.name;
    EXPECT_NE(a.theta[0], b.theta[0]) << optimizer.name;
  }
}

// Sums go through float in short runs: that must cost neither digits, nor the range of double.
TEST(Steps, TheGradientsNormIsThatOfDouble) {
  for (const float size : {1e-30F, 1e-21F, 1.0F, 1e21F, 1e30F}) {
    std::vector<float> gradient(100'003);
    std::mt19937 engine(3);
    std::normal_distribution<float> normal;
    double squares = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = size * normal(engine);
      squares += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
    }
    const std::vector<Segment> segments{{.offset = 0, .length = std::ssize(gradient)}};
    Arena<float> arena{};
    arena.grad = gradient.data();
    arena.segments = segments;
    // 16 additions in float round by some 1e-7 each, at random.
    EXPECT_NEAR(gradient_norm(arena, 2) / std::sqrt(squares), 1, 1e-7) << size;
  }
}

TEST(Steps, ClippingIsScalingTheGradient) {
  for (const Optimizer& optimizer : all_optimizers()) {
    Hyperparameters clipped = optimizer.defaults, plain = optimizer.defaults;
    clipped.clip = 10;
    clipped.apply_first_step = plain.apply_first_step = true;
    Large a(optimizer), b(optimizer);
    const StepResult result = step(optimizer, a.arena, clipped, {.loss = 5});
    EXPECT_NEAR(result.gradient_norm, 1000, 3) << optimizer.name; // a million standard normals
    for (float& g : b.grad) g *= static_cast<float>(10 / result.gradient_norm);
    const StepResult scaled = step(optimizer, b.arena, plain, {.loss = 5});
    EXPECT_NEAR(scaled.gradient_norm, 10, 1e-4);
    // One rounding more, in float32, of gradients of about 0.01.
    for (std::size_t i = 0; i < a.theta.size(); i += 997) EXPECT_NEAR(a.theta[i], b.theta[i], 2e-6) << optimizer.name;
  }
}

TEST(Steps, ChangeNothingWhenAGradientIsNotFinite) {
  for (const Optimizer& optimizer : all_optimizers())
    for (const float bad : {std::nanf(""), HUGE_VALF}) {
      Large large(optimizer);
      large.grad[700'000] = bad;
      const auto theta = large.theta;
      const auto state = large.state;
      EXPECT_FALSE(std::isfinite(step(optimizer, large.arena, optimizer.defaults, {.loss = 5}).gradient_norm));
      EXPECT_TRUE(large.theta == theta && large.state == state) << optimizer.name;
    }
}

TEST(Ecd, StopsAtItsFloorWithNothingChanged) {
  const Optimizer& ecd = optimizer_of("ecd");
  Large large(ecd);
  const auto theta = large.theta;
  try {
    step(ecd, large.arena, ecd.defaults, {.loss = 2});
    FAIL() << "no error";
  } catch (const FloorError& error) {
    EXPECT_STREQ(error.what(),
                 "the loss, 2, has come down to F0 = 2: nothing is left to descend; go on with a smaller --f0");
  }
  EXPECT_TRUE(large.theta == theta);
  EXPECT_EQ(large.state[0][0], 0);
}

// |Theta' - Theta| = dt |P'| and P' is a unit vector up to the force's second order: small steps move dt far.
TEST(Ecd, MovesByItsStepWhateverTheGradient) {
  const Optimizer& ecd = optimizer_of("ecd");
  for (const float size : {1e-3f, 1.0f, 1e3f}) {
    Large large(ecd);
    for (float& g : large.grad) g *= size;
    const auto before = large.theta;
    Hyperparameters h = ecd.defaults;
    h.lr = 1e-2;
    step(ecd, large.arena, h, {.loss = 5});
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      squares += std::pow(static_cast<double>(large.theta[i]) - before[i], 2);
    // First step: P is along the gradient, so the projected force vanishes and |P'| = 1. Float32 rounds each of a
    // million moves of 1e-6 at 6e-8 of numbers near 1.
    EXPECT_NEAR(std::sqrt(squares), 1e-3, 1e-4);
  }
}

// P'' = P' + (nu/sqrt N) |P'| z: the angle between P' and P'' has tangent nu, for a million numbers to a per mille.
TEST(Ecd, BouncesTurnTheMomentumByNu) {
  const Optimizer& ecd = optimizer_of("ecd");
  for (const bool per_tensor : {false, true}) {
    Hyperparameters h = ecd.defaults;
    h.weight_decay = 1e-6;
    h.per_tensor = per_tensor;
    Large straight(ecd), bent(ecd), other(ecd);
    for (std::uint64_t k = 0; k < 2; ++k) {
      for (Large* large : {&straight, &bent, &other}) {
        h.nu = k == 1 && large != &straight ? 0.25 : 0;
        step(ecd, large->arena, h, {.taken = k, .step = large == &other ? 9u : k, .seed = 1, .loss = 5});
        for (std::size_t i = 0; i < large->grad.size(); ++i)
          large->grad[i] = large->theta[i]; // another gradient for step 2
      }
    }
    EXPECT_TRUE(straight.theta == bent.theta); // parameters move before the bounce
    EXPECT_FALSE(other.state[0] == bent.state[0]);
    double pp = 0, zz = 0, pz = 0;
    for (std::size_t i = 0; i < bent.theta.size(); ++i) {
      const double p = static_cast<double>(straight.state[0][i]), z = static_cast<double>(bent.state[0][i]) - p;
      pp += p * p, zz += z * z, pz += p * z;
    }
    EXPECT_NEAR(std::sqrt(zz / pp), 0.25, 0.001); // 1/sqrt(2e6) = 0.0007 of it is chance
    EXPECT_NEAR(pz / pp, 0, 0.001);
  }
}

// |Theta' - Theta| = 2 lr |P| / (s + |P|^2), where the energy E = V (s + |P|^2) is that of the first step: V0 (s +
// deltaEn).
TEST(EcdSep, ConservesItsEnergy) {
  const Optimizer& ecdsep = optimizer_of("ecdsep");
  Hyperparameters h = ecdsep.defaults;
  h.lr = 1e-6; // so that the force of the step itself is far below the momentum that the energy gives
  h.delta_energy = 0.5;
  Large large(ecdsep);
  step(ecdsep, large.arena, h, {.taken = 0, .loss = 6});
  const std::vector<float> p = large.state[0];
  step(ecdsep, large.arena, h, {.taken = 1, .step = 1, .loss = 4, .start_distance = 4});
  double before = 0, after = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    before += static_cast<double>(p[i]) * p[i];
    after += static_cast<double>(large.state[0][i]) * large.state[0][i];
  }
  // The force moves |P| by lr eta |G| / (F - F0) = 1e-6 * 1.5 * 1000 / 2 at most.
  EXPECT_NEAR(before, 0.5, 2e-3);
  EXPECT_NEAR(std::pow(2, h.eta) * (h.s + after), std::pow(4, h.eta) * (h.s + 0.5), 2e-2);
  // Far above the first loss no momentum has that energy: the length stays, and nothing is lost.
  step(ecdsep, large.arena, h, {.taken = 2, .step = 2, .loss = 20, .start_distance = 4});
  double stays = 0;
  for (const float x : large.state[0]) stays += static_cast<double>(x) * x;
  EXPECT_NEAR(stays, after, 1e-2);
}

TEST(Table, SuggestsANearName) {
  try {
    optimizer_of("adam");
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "no optimizer is called adam (did you mean adamw?); there are adamw, sgdm, ecd, ecdsep, soap");
  }
}

} // namespace
} // namespace noether::optimizers
