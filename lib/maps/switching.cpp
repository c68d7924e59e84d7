#include "maps/switching.h"

#include "base/choice.h"
#include "base/random.h"
#include "base/threads.h"
#include "maps/two_factor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace noether::maps {
namespace {

constexpr std::array kDraws{"gaussian", "two-point"};
constexpr std::int64_t kPiece = 64; ///< orbits that a thread takes at a time

/// The mean of a batch's samples, each of mean 0 and deviation 1. `index` tells the draws of a step apart.
double batch_mean(const SwitchingOptions& options, const Random& random, std::uint64_t index) {
  const auto size = static_cast<double>(options.batch);
  if (options.draw == Draw::gaussian) return random.normal(index) / std::sqrt(size);
  std::int64_t up = 0; // samples at +1; the others are at -1
  for (std::int64_t done = 0; done < options.batch; done += 64) {
    // A word of random bits for every 64 samples; words of one draw lie apart from those of the next.
    std::uint64_t bits = random.bits(index + 2 * static_cast<std::uint64_t>(done / 64));
    if (options.batch - done < 64) bits &= (std::uint64_t{1} << (options.batch - done)) - 1;
    up += __builtin_popcountll(bits);
  }
  return (2 * static_cast<double>(up) - size) / size;
}

struct Orbit {
  std::int64_t escaped = 0; ///< the step, or 0
  double across = 0;
  bool balanced_escaped = false;
};

Orbit run(const SwitchingOptions& options, std::int64_t number) {
  Orbit orbit;
  Point p{options.a, options.b};
  const double middle = (options.a + options.b) / 2;
  Point line{middle, middle};
  const std::int64_t transient = options.steps / 10;
  std::int64_t counted = 0;
  for (std::int64_t n = 1; n <= options.steps; ++n) {
    if (orbit.escaped > 0 && orbit.balanced_escaped) break;
    const Random random(options.seed, Purpose::kSwitching, static_cast<std::uint64_t>(n),
                        static_cast<std::uint32_t>(number));
    const double nu = options.mu + options.nu_deviation * batch_mean(options, random, 0);
    const double kappa =
        options.kappa_deviation == 0 ? 1 : 1 + options.kappa_deviation * batch_mean(options, random, 1);
    const auto move = [&](Point& q) {
      const double e = kappa * q.a * q.b - nu;
      q = {q.a - e * q.b, q.b - e * q.a};
      return e;
    };
    if (orbit.escaped == 0) {
      move(p);
      if (escaped(p)) orbit.escaped = n;
    }
    if (!orbit.balanced_escaped) {
      const double e = move(line); // a = b stays; a small imbalance is multiplied by 1 + e
      if (n > transient) {
        orbit.across += std::log(std::abs(1 + e));
        ++counted;
      }
      orbit.balanced_escaped = escaped(line);
    }
  }
  if (counted > 0) orbit.across /= static_cast<double>(counted);
  return orbit;
}

} // namespace

Draw draw_of(std::string_view name) { return choice_of<Draw>(name, kDraws, "distribution"); }

Share share_of(std::int64_t count, std::int64_t all) {
  const double z = 1.959963984540054;
  const auto n = static_cast<double>(all);
  const double p = static_cast<double>(count) / n, centre = (p + z * z / (2 * n)) / (1 + z * z / n),
               half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {p, count == 0 ? 0 : centre - half, count == all ? 1 : centre + half}; // exact where rounding is not
}

Switching switching(const SwitchingOptions& options) {
  std::vector<Orbit> orbits(static_cast<std::size_t>(options.orbits));
  parallel_for((options.orbits + kPiece - 1) / kPiece, options.threads, [&](std::int64_t piece) {
    for (std::int64_t i = piece * kPiece; i < std::min(options.orbits, (piece + 1) * kPiece); ++i)
      orbits[static_cast<std::size_t>(i)] = run(options, i);
  });
  Switching found;
  found.first_escape.resize(static_cast<std::size_t>(options.steps + 1));
  double steps = 0, sum = 0, squares = 0;
  std::int64_t kept = 0;
  for (const Orbit& orbit : orbits) {
    if (orbit.escaped > 0) {
      ++found.escaped;
      ++found.first_escape[static_cast<std::size_t>(orbit.escaped)];
      steps += static_cast<double>(orbit.escaped);
    }
    if (orbit.balanced_escaped) {
      ++found.balanced_escaped;
      continue;
    }
    if (std::isinf(orbit.across)) {
      ++found.superstable;
      continue;
    }
    ++kept;
    sum += orbit.across;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  found.probability = share_of(found.escaped, options.orbits);
  found.mean_first_escape = found.escaped > 0 ? steps / static_cast<double>(found.escaped) : nan;
  found.across = kept > 0                ? sum / static_cast<double>(kept)
                 : found.superstable > 0 ? -std::numeric_limits<double>::infinity()
                                         : nan;
  for (const Orbit& orbit : orbits)
    if (!orbit.balanced_escaped && !std::isinf(orbit.across))
      squares += (orbit.across - found.across) * (orbit.across - found.across);
  found.across_stderr = kept > 1 ? std::sqrt(squares / static_cast<double>(kept - 1) / static_cast<double>(kept)) : nan;
  return found;
}

} // namespace noether::maps
