#include "base/reporter.h"

#include "base/number.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace noether {

Reporter::Reporter(std::string program, Verbosity verbosity, ProgressMode mode)
    : program_(std::move(program)), verbosity_(verbosity), start_(Clock::now()) {
  redraws_ = isatty(STDERR_FILENO) != 0;
  shows_progress_ = mode == ProgressMode::yes || (mode == ProgressMode::automatic && verbosity != Verbosity::quiet);
  // What ends at once need not be reported on.
  next_ = start_ + (redraws_ ? std::chrono::milliseconds(300) : std::chrono::seconds(5));
}

Reporter::~Reporter() {
  if (open_) std::fputc('\n', stderr);
}

void Reporter::message(std::string_view text) {
  if (verbosity_ == Verbosity::quiet) return;
  if (std::exchange(open_, false)) std::fputc('\n', stderr);
  std::fputs(fmt::format("{}: {}\n", program_, text).c_str(), stderr);
}

void Reporter::detail(std::string_view text) {
  if (verbosity_ == Verbosity::verbose) message(text);
}

bool Reporter::progress_due() { return shows_progress_ && Clock::now() >= next_; }

void Reporter::progress(std::string_view text) {
  if (!shows_progress_) return;
  std::string line = fmt::format("{}: {}", program_, text);
  if (redraws_) {
    const std::size_t width = line.size();
    if (width < width_) line.append(width_ - width, ' '); // covers what stood there
    width_ = width;
    std::fputs(fmt::format("\r{}", line).c_str(), stderr);
    std::fflush(stderr);
    open_ = true;
    next_ = Clock::now() + std::chrono::milliseconds(167);
  } else {
    std::fputs(fmt::format("{}\n", line).c_str(), stderr);
    next_ = Clock::now() + std::chrono::seconds(30);
  }
}

void Reporter::progress_bytes(double done, double total) {
  if (!progress_due()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (total > 0 && done > 0)
    progress(fmt::format("{} of {}  {:.0f}%  {} left", human_bytes(done), human_bytes(total), 100 * done / total,
                         human_duration(seconds * (total - done) / done)));
  else
    progress(fmt::format("{}  {}/s", human_bytes(done), human_bytes(done / seconds)));
}

void Reporter::finish_progress(std::string_view text) {
  progress(text);
  if (std::exchange(open_, false)) std::fputc('\n', stderr);
  width_ = 0;
}

} // namespace noether
