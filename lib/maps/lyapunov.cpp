#include "maps/lyapunov.h"

#include "base/choice.h"
#include "base/random.h"
#include "base/threads.h"
#include "maps/two_factor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace noether::maps {
namespace {

constexpr std::array kLoci{"balanced", "ellipse"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Block {
  double along = 0, across = 0;
  bool escaped = false;
};

Block run(double mu, const Polynomial& line, const LyapunovOptions& options, std::int64_t index) {
  const double draw = Random(options.seed, Purpose::kOrbit).uniform(static_cast<std::uint64_t>(index));
  const bool on_line = options.locus == Locus::balanced;
  double e = on_line ? (mu > 0 ? -mu + (2 + mu) * draw : 2 * draw - 1) : 2 * std::cos(std::numbers::pi * draw);
  Block block;
  const std::int64_t end = options.transient + options.steps;
  for (std::int64_t i = 0; i < end; ++i) {
    if (i >= options.transient) {
      const double slope = on_line ? cubic_slope(mu, e) : 3 * e * e - 3;
      // Near 0 rounding must not stand for a slope.
      block.along += on_line && std::abs(slope) < 1e-9 ? line.log_slope(e) : std::log(std::abs(slope));
      block.across += std::log(std::abs(on_line ? 1 + e : 1 + mu * e + e * e));
    }
    // Rounding must not carry an orbit out of [-2, 2], beyond which e^3 - 3e escapes.
    e = on_line ? cubic(mu, e) : std::min(2.0, std::max(-2.0, e * (e * e - 3)));
    if (on_line && line.escaped(e)) {
      block.escaped = true;
      return block;
    }
  }
  block.along /= static_cast<double>(options.steps);
  block.across /= static_cast<double>(options.steps);
  return block;
}

Block run(const Polynomial& map, double start, const LyapunovOptions& options, std::int64_t index) {
  const double draw = Random(options.seed, Purpose::kOrbit).uniform(static_cast<std::uint64_t>(index));
  double x = start + 1e-6 * std::max(1.0, std::abs(start)) * (2 * draw - 1);
  Block block{0, std::numeric_limits<double>::quiet_NaN()};
  for (std::int64_t i = -options.transient; i < options.steps; ++i) {
    if (i >= 0) block.along += map.log_slope(x);
    x = map(x);
    if (map.escaped(x)) {
      block.escaped = true;
      return block;
    }
  }
  block.along /= static_cast<double>(options.steps);
  return block;
}

template <class Value> Exponent mean(const std::vector<Block>& blocks, const Value& value) {
  double sum = 0, squares = 0;
  std::int64_t count = 0, infinite = 0;
  for (const Block& block : blocks) {
    if (block.escaped) continue;
    const double x = value(block);
    if (std::isinf(x)) {
      ++infinite;
      continue;
    }
    ++count;
    sum += x;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (count == 0) return {infinite > 0 ? -kInfinity : nan, nan};
  const double average = sum / static_cast<double>(count);
  for (const Block& block : blocks)
    if (!block.escaped && !std::isinf(value(block))) squares += std::pow(value(block) - average, 2);
  const auto n = static_cast<double>(count);
  return {average, count < 2 ? nan : std::sqrt(squares / (n - 1) / n)};
}

template <class Run> Lyapunov over_blocks(const LyapunovOptions& options, const Run& run_block) {
  std::vector<Block> blocks(static_cast<std::size_t>(options.blocks));
  parallel_for(options.blocks, options.threads,
               [&](std::int64_t i) { blocks[static_cast<std::size_t>(i)] = run_block(i); });
  Lyapunov result;
  result.blocks = options.blocks;
  result.along = mean(blocks, [](const Block& block) { return block.along; });
  result.across = mean(blocks, [](const Block& block) { return block.across; });
  for (const Block& block : blocks) {
    result.escaped += block.escaped ? 1 : 0;
    result.superstable += !block.escaped && (std::isinf(block.along) || std::isinf(block.across)) ? 1 : 0;
  }
  return result;
}

} // namespace

Locus locus_of(std::string_view name) { return choice_of<Locus>(name, kLoci, "locus"); }

Lyapunov lyapunov(double mu, const LyapunovOptions& options) {
  const Polynomial line = balanced_line().at(mu);
  return over_blocks(options, [&](std::int64_t i) { return run(mu, line, options, i); });
}

Lyapunov lyapunov(const Polynomial& map, double start, const LyapunovOptions& options) {
  return over_blocks(options, [&](std::int64_t i) { return run(map, start, options, i); });
}

} // namespace noether::maps
