#include "maps/diagram.h"

#include "base/error.h"
#include "base/threads.h"
#include "maps/phases.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace noether::maps {
namespace {

/// Orbits that are stepped together: independent ones, so that the compiler takes vectors and no step waits for
/// another.
constexpr std::int64_t kTogether = 16;
using Lanes = std::array<double, kTogether>;

struct Orbit {
  const Polynomial* map;
  double start;
  std::int64_t place; ///< of its row in the diagram
};

/// Orbits from number `first` on, `count` of them up to kTogether.
void run(const DiagramOptions& options, const std::vector<Orbit>& orbits, std::int64_t first, std::int64_t count,
         Diagram& out) {
  std::size_t terms = 1;
  for (std::int64_t i = 0; i < count; ++i)
    terms = std::max(terms, orbits[static_cast<std::size_t>(first + i)].map->c.size());
  std::vector<Lanes> c(terms);
  Lanes bound{};
  std::array<bool, kTogether> gone{};
  Lanes at{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Orbit& orbit = orbits[static_cast<std::size_t>(first) + i];
    for (std::size_t k = 0; k < orbit.map->c.size(); ++k) c[k][i] = orbit.map->c[k];
    bound[i] = orbit.map->escape;
    at[i] = orbit.start;
  }
  const std::int64_t steps = options.transient + options.keep;
  for (std::int64_t n = 1; n <= steps; ++n) {
    Lanes next = c[terms - 1];
    for (std::size_t k = terms - 1; k-- > 0;)
      for (std::size_t i = 0; i < kTogether; ++i) next[i] = next[i] * at[i] + c[k][i];
    at = next;
    int inside = 0;
    for (std::size_t i = 0; i < kTogether; ++i) inside += std::abs(at[i]) <= bound[i] ? 1 : 0;
    if (inside < kTogether)
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        if (!(std::abs(at[i]) <= bound[i])) {
          gone[i] = true;
          out.escaped[static_cast<std::size_t>(orbits[static_cast<std::size_t>(first) + i].place)] = n;
          at[i] = 0; // and stays there
          for (Lanes& row : c) row[i] = 0;
        }
    if (n <= options.transient) continue;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      out.e[static_cast<std::size_t>(orbits[static_cast<std::size_t>(first) + i].place * options.keep + n -
                                     options.transient - 1)] =
          gone[i] ? std::numeric_limits<double>::quiet_NaN() : at[i];
  }
}

/// Numbers the attractors of one mu.
void tell_apart(const DiagramOptions& options, std::int64_t first, std::int64_t last, Diagram& out) {
  const auto keep = static_cast<std::size_t>(options.keep);
  const auto points = [&](std::int64_t orbit) {
    return std::span<const double>(out.e).subspan(static_cast<std::size_t>(orbit) * keep, keep);
  };
  std::vector<std::int64_t> known; // the first orbit of each branch
  for (std::int64_t orbit = first; orbit < last; ++orbit) {
    if (std::isnan(out.e[static_cast<std::size_t>((orbit + 1) * options.keep - 1)])) continue;
    std::size_t i = 0;
    while (i < known.size() && !one_attractor(points(known[i]), points(orbit))) ++i;
    if (i == known.size()) known.push_back(orbit);
    out.branch[static_cast<std::size_t>(orbit)] = static_cast<std::int64_t>(i) + 1;
  }
}

} // namespace

std::int64_t orbits_of(const DiagramOptions& options) {
  if (!options.starts.empty()) return static_cast<std::int64_t>(options.starts.size());
  std::size_t most = 1;
  for (const double mu : options.mu) most = std::max(most, critical_starts(options.map.at(mu)).size());
  return static_cast<std::int64_t>(most);
}

Diagram diagram(const DiagramOptions& options) {
  Diagram out;
  out.orbits = options.orbits > 0 ? options.orbits : orbits_of(options);
  const auto values = static_cast<std::int64_t>(options.mu.size());
  // Before the work: memory that is promised but not there would end the program in the middle of it.
  const double needed = 8.0 * static_cast<double>(values) * static_cast<double>(out.orbits) *
                        static_cast<double>(options.keep),
               there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > there)
    throw Error("{} orbits of {} points need {:.0f} bytes of memory, and there are {:.0f}", values * out.orbits,
                options.keep, needed, there);
  std::vector<Polynomial> maps;
  maps.reserve(options.mu.size()); // orbits point to them
  std::vector<Orbit> orbits;
  std::vector<std::size_t> first;
  for (const double mu : options.mu) {
    maps.push_back(options.map.at(mu));
    first.push_back(orbits.size());
    std::int64_t place = static_cast<std::int64_t>(maps.size() - 1) * out.orbits;
    for (const double start : options.starts.empty() ? critical_starts(maps.back()) : options.starts)
      orbits.push_back({&maps.back(), start, place++});
  }
  first.push_back(orbits.size());
  out.e.assign(static_cast<std::size_t>(values * out.orbits * options.keep), std::numeric_limits<double>::quiet_NaN());
  out.escaped.resize(static_cast<std::size_t>(values * out.orbits));
  out.branch.resize(static_cast<std::size_t>(values * out.orbits));
  const auto pieces = [&](std::size_t begin, std::size_t end, int threads) {
    const auto count = static_cast<std::int64_t>(end - begin);
    parallel_for((count + kTogether - 1) / kTogether, threads, [&](std::int64_t piece) {
      run(options, orbits, static_cast<std::int64_t>(begin) + piece * kTogether,
          std::min(kTogether, count - piece * kTogether), out);
    });
  };
  if (options.follow) {
    for (std::size_t i = 0; i < maps.size(); ++i) {
      for (std::size_t j = first[i]; i > 0 && j < first[i + 1]; ++j) {
        const double before = out.e[static_cast<std::size_t>((orbits[j].place - out.orbits + 1) * options.keep - 1)];
        if (!std::isnan(before)) orbits[j].start = before;
      }
      pieces(first[i], first[i + 1], 1);
    }
  } else {
    pieces(0, orbits.size(), options.threads);
  }
  parallel_for(values, options.threads,
               [&](std::int64_t i) { tell_apart(options, i * out.orbits, (i + 1) * out.orbits, out); });
  return out;
}

} // namespace noether::maps
