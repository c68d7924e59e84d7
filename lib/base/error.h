// What went wrong, in words for the person at the shell; and the exit status that it leads to.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace noether {

/// Exit statuses of every program. The last two are train's alone.
enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,
  kMisuse = 2,
  kDiverged = 3,   ///< a non-finite loss, or a loss below ECD's floor; the last good checkpoint is kept
  kResumable = 75, ///< a signal stopped it, the state is saved, the same line goes on (EX_TEMPFAIL of sysexits.h)
};

/// One line, lower case, no full stop. It names the file, what was expected and what was found; run_tool() alone adds
/// the program's name and prints it.
struct Error : std::runtime_error {
  template <class... Values>
  explicit Error(fmt::format_string<Values...> text, Values&&... values)
      : std::runtime_error(fmt::format(text, std::forward<Values>(values)...)) {}
  /// The exit status that a program ends with when this reaches run_tool().
  virtual ExitStatus status() const { return kFailed; }
};
/// The command line is wrong, not the data.
struct UsageError : Error {
  using Error::Error;
  ExitStatus status() const override { return kMisuse; }
};
/// Training cannot go on from here: a loss that is not finite or has nothing left to descend.
struct DivergedError : Error {
  using Error::Error;
  ExitStatus status() const override { return kDiverged; }
};
/// A signal stopped the work at a point from which it can go on.
struct InterruptedError : Error {
  using Error::Error;
  ExitStatus status() const override { return kResumable; }
};

/// The candidates (the nearest, two at most) that are close enough to `word` to be what a slip of the finger meant.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// " (did you mean a or b?)", or nothing when no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// What the C library says about `number` (an errno value), in its own words and lower case: "no space left on device".
std::string system_reason(int number);

} // namespace noether
