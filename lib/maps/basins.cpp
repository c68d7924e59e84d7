#include "maps/basins.h"

#include "base/error.h"
#include "base/threads.h"
#include "maps/basins_kernel.h"
#include "maps/two_factor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

namespace noether::maps {
namespace {

/// Points are looked at so often: what is done in between is taken back and found out step by step.
constexpr std::int64_t kStride = 16;
/// Cells that a thread takes at a time: neighbours, whose fates come after about as many steps.
constexpr std::int64_t kPiece = 4096;

struct Start {
  double mu;
  Point point;
};

Start start_of(const BasinOptions& options, std::int64_t index) {
  const std::int64_t row = index / options.x.count;
  const double x = options.x.at(index % options.x.count), y = options.y.at(row % options.y.count);
  if (!options.over_mu) return {mu_of(options, row / options.y.count), {x, y}};
  // ab = mu + offset, a - b = w0
  const double sum = std::sqrt(y * y + 4 * std::max(0.0, x + options.offset));
  return {x, {(sum + y) / 2, (sum - y) / 2}};
}

/// A zero-error point attracts where a^2 + b^2 < 2; the others only look like it.
bool converged(double mu, Point p, double tolerance) {
  return std::abs(error_of(mu, p)) <= tolerance && p.a * p.a + p.b * p.b < 2;
}

/// The shortest period, from 2 to `longest`, within which the orbit closes on a cycle that attracts at a rate of at
/// least sqrt(tolerance) a turn, so that the cycle is as near as that; 0 for none. What converges ever more slowly, as
/// beside a minimum that just loses its stability, closes too, but does not attract so.
std::int64_t period_of(double mu, Point p, const BasinOptions& options) {
  const Point begin = p;
  std::array<double, 4> turn{1, 0, 0, 1}; // the derivative of the steps so far, by rows
  for (std::int64_t n = 1; n <= options.longest; ++n) {
    const double off = -(2 * error_of(mu, p) + mu), first = 1 - p.b * p.b, second = 1 - p.a * p.a;
    turn = {first * turn[0] + off * turn[2], first * turn[1] + off * turn[3], off * turn[0] + second * turn[2],
            off * turn[1] + second * turn[3]};
    step(p.a, p.b, mu);
    if (n < 2 || !(std::abs(p.a - begin.a) <= options.tolerance && std::abs(p.b - begin.b) <= options.tolerance))
      continue;
    const double half = (turn[0] + turn[3]) / 2, determinant = turn[0] * turn[3] - turn[1] * turn[2],
                 under = half * half - determinant;
    const double radius = under >= 0 ? std::abs(half) + std::sqrt(under) : std::sqrt(determinant);
    return radius < 1 - std::sqrt(options.tolerance) ? n : 0;
  }
  return 0;
}

/// One piece of the grid: lanes are filled again as soon as their points are done.
class Piece {
public:
  Piece(const BasinOptions& options, Basins& out, std::int64_t begin, std::int64_t end)
      : options_(options), out_(out), next_(begin), end_(end) {}

  std::int64_t run() {
    for (int lane = 0; lane < kLanes; ++lane) fill(lane);
    std::int64_t computed = 0;
    while (busy_ > 0) {
      const Lanes before = lanes_;
      std::uint32_t done = advance(lanes_, kStride, options_.tolerance);
      computed += kStride * busy_;
      for (int lane = 0; lane < kLanes; ++lane) {
        if (index_[lane] < 0) continue;
        const bool told = (done >> lane & 1) != 0;
        if ((told && settle(before, lane)) || (taken_[lane] += kStride) >= options_.steps) finish(lane);
      }
    }
    return computed;
  }

private:
  void fill(int lane) {
    lanes_.mu[lane] = lanes_.a[lane] = lanes_.b[lane] = 0;
    index_[lane] = -1;
    settled_[lane] = false;
    if (next_ >= end_) return;
    const Start start = start_of(options_, next_);
    lanes_.mu[lane] = start.mu;
    lanes_.a[lane] = start.point.a;
    lanes_.b[lane] = start.point.b;
    index_[lane] = next_++;
    taken_[lane] = 0;
    ++busy_;
  }

  /// The step, since the lanes were looked at last, at which the point escaped or converged; false when it did not.
  bool settle(const Lanes& before, int lane) {
    Point p{before.a[lane], before.b[lane]};
    const double mu = before.mu[lane];
    for (std::int64_t n = 0; n <= kStride; ++n) {
      const bool gone = escaped(p);
      if (gone || converged(mu, p, options_.tolerance)) {
        const std::int64_t at = taken_[lane] + n;
        if (at > options_.steps) return false;
        put(lane, gone ? Fate::diverged : Fate::converged, at, 0);
        settled_[lane] = true;
        return true;
      }
      step(p.a, p.b, mu);
    }
    return false;
  }

  void finish(int lane) {
    if (!settled_[lane]) {
      const Point p{lanes_.a[lane], lanes_.b[lane]};
      const std::int64_t period = period_of(lanes_.mu[lane], p, options_);
      put(lane, period > 0 ? Fate::periodic : Fate::undecided, options_.steps, period);
    }
    --busy_;
    fill(lane);
  }

  void put(int lane, Fate fate, std::int64_t steps, std::int64_t period) {
    const auto at = static_cast<std::size_t>(index_[lane]);
    out_.fate[at] = fate;
    out_.steps[at] = static_cast<std::uint32_t>(steps);
    out_.period[at] = static_cast<std::uint8_t>(period);
  }

  const BasinOptions& options_;
  Basins& out_;
  std::int64_t next_, end_;
  int busy_ = 0;
  Lanes lanes_{};
  std::array<std::int64_t, kLanes> index_{}, taken_{};
  std::array<bool, kLanes> settled_{};
};

} // namespace

std::string name_of(Fate fate) {
  constexpr std::array kNames{"undecided", "converged", "periodic", "diverged"};
  return kNames[static_cast<std::size_t>(fate)];
}

std::int64_t layers_of(const BasinOptions& options) {
  return options.stack.empty() ? 1 : static_cast<std::int64_t>(options.stack.size());
}

double mu_of(const BasinOptions& options, std::int64_t layer) {
  return options.stack.empty() ? options.mu : options.stack[static_cast<std::size_t>(layer)];
}

Basins basins(const BasinOptions& options, Reporter& reporter) {
  const std::int64_t cells = layers_of(options) * options.x.count * options.y.count;
  // Before the work: memory that is promised but not there would end the program in the middle of it.
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)),
               needed = 6.0 * static_cast<double>(layers_of(options)) * static_cast<double>(options.x.count) *
                        static_cast<double>(options.y.count);
  if (needed > there)
    throw Error("a grid of {}{} x {} needs {:.0f} bytes of memory, and there are {:.0f}",
                layers_of(options) > 1 ? fmt::format("{} x ", layers_of(options)) : "", options.x.count,
                options.y.count, needed, there);
  Basins out;
  out.fate.resize(static_cast<std::size_t>(cells));
  out.steps.resize(static_cast<std::size_t>(cells));
  out.period.resize(static_cast<std::size_t>(cells));
  std::mutex guard;
  std::int64_t done = 0;
  parallel_for((cells + kPiece - 1) / kPiece, options.threads, [&](std::int64_t i) {
    const std::int64_t begin = i * kPiece, end = std::min(cells, begin + kPiece);
    const std::int64_t computed = Piece(options, out, begin, end).run();
    const std::lock_guard<std::mutex> lock(guard);
    out.point_steps += computed;
    done += end - begin;
    if (done < cells && reporter.progress_due())
      reporter.progress(fmt::format("{} of {} points  {}%", done, cells, 100 * done / cells));
  });
  return out;
}

std::vector<Area> areas(const Basins& basins, const BasinOptions& options, std::int64_t layer) {
  std::array<Area, 4> found{};
  const std::int64_t width = options.x.count, height = options.y.count;
  const double cell =
      (options.x.high - options.x.low) * (options.y.high - options.y.low) / static_cast<double>(width * height);
  const Fate* fates = basins.fate.data() + layer * width * height;
  for (std::int64_t i = 0; i < width * height; ++i) {
    const Fate fate = fates[i];
    Area& area = found[static_cast<std::size_t>(fate)];
    ++area.cells;
    const auto differs = [&](bool exists, std::int64_t other) { return exists && fates[other] != fate; };
    if (differs(i % width > 0, i - 1) || differs(i % width + 1 < width, i + 1) || differs(i >= width, i - width) ||
        differs(i + width < width * height, i + width))
      area.error += cell / 2;
  }
  std::vector<Area> list;
  for (std::size_t fate = 0; fate < found.size(); ++fate) {
    found[fate].fate = static_cast<Fate>(fate);
    found[fate].fraction = static_cast<double>(found[fate].cells) / static_cast<double>(width * height);
    found[fate].area = static_cast<double>(found[fate].cells) * cell;
    list.push_back(found[fate]);
  }
  return list;
}

} // namespace noether::maps
