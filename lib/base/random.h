// Random numbers from counters: a draw is a pure function of (seed, purpose, step, layer, index), so that nothing need
// be stored to repeat it, on any number of threads or processes.
#pragma once

#include <array>
#include <cstdint>

namespace noether {

/// What a stream of draws is for. The numbers are part of every result ever made: add at the end, never renumber.
enum class Purpose : std::uint32_t {
  kInitialise = 1, ///< parameters of a fresh checkpoint; layer is the parameter's number in the arena
  kBatch = 2,      ///< which windows a step trains on
  kBias = 3,       ///< symmetry-breaking biases of a step and layer
  kBounce = 4,     ///< ECD's bounces
  kSample = 5,     ///< generation; step is the prompt's number, layer the sample's
  kSplit = 6,      ///< which documents are held out
  kSource = 7,     ///< which of several data files a window comes from
  kDirection = 8,  ///< fixed directions of symmetry-breaking biases; step is the direction's number
  kLanczos = 9,    ///< where the search for eigenvalues starts
  kOrbit = 10,     ///< where orbits of the two-factor map start
  kSwitching = 11, ///< mini-batches of the two-factor map; layer is the orbit's number
  kChaosTest = 12, ///< frequencies of the 0-1 test for chaos
  kNull = 13,      ///< random directions that keys are compared with; step is the direction's number, layer the layer's
  kPermutation = 14, ///< the order of one side of a correlation
  kPrompt = 15,      ///< prompts of in-context regression; step is the prompt's number, layer what is drawn of it
};

/// Philox4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// One stream: draws are addressed by index, in any order.
class Random {
public:
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t step = 0, std::uint32_t layer = 0);

  /// 64 uniform bits.
  std::uint64_t bits(std::uint64_t index) const;
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform(std::uint64_t index) const;
  /// Uniform in 0 .. bound - 1, without bias beyond 2^-64 * bound. bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;
  /// Standard normal, by Box and Muller: indices 2k and 2k + 1 share one call of the generator.
  double normal(std::uint64_t index) const;
  /// out[i] = mean + deviation * normal(begin + i), i < count.
  void fill_normal(float* out, std::uint64_t begin, std::uint64_t count, double mean, double deviation) const;

private:
  /// normal(2 pair) and normal(2 pair + 1).
  std::array<double, 2> normal_pair(std::uint64_t pair) const;
  std::array<std::uint32_t, 2> key_;
  std::uint64_t step_;
};

} // namespace noether
