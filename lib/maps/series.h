// What a series of losses or errors did.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace noether::maps {

enum class Course { monotone, catapult, periodic, chaotic, divergent, undecided };
std::string_view name_of(Course course);

struct SeriesOptions {
  double tolerance = 1e-6;   ///< relative to the largest value of the series, or for cycles of their own range
  double limit = 1e3;        ///< times the first value: further up it has diverged
  std::int64_t longest = 64; ///< period that is looked for
};

struct Series {
  Course course = Course::undecided;
  std::int64_t period = 0;
  std::int64_t rises = 0,
               first_rise = 0; ///< steps up beyond the tolerance; the index of the first (from 1), 0 for none
  double first = 0, last = 0, largest = 0;
  double chaos =
      0; ///< of the 0-1 test: near 1 for chaos and for noise, near 0 for what repeats; nan where it was not made
};

/// By these rules, the first that fits. Divergent: a value is not finite, or exceeds the limit. Monotone: it never
/// rises beyond the tolerance. Periodic: its last third closes, within the tolerance of its range, after the shortest
/// period from 2 up. Catapult: it rises, but no more in its last third, and ends below where it began. Chaotic: the 0-1
/// test of the last third gives more than 0.5 (noise looks the same to it). Else undecided. Source of the test:
/// Gottwald and Melbourne, SIAM Journal on Applied Dynamical Systems 8 (2009), 129. Throws Error for fewer than 8
/// values.
Series classify_series(std::span<const double> values, const SeriesOptions& options);

/// The 0-1 test's K, the median over 100 frequencies, fixed, of the correlation of the mean square displacement with
/// time. At least 50 values, or nan.
double chaos_test(std::span<const double> values);

} // namespace noether::maps
