// Words for people, on stderr: messages and progress. The library reports through one of these that the program hands
// to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace noether {

enum class Verbosity { quiet, normal, verbose };
/// automatic: a redrawn line on a terminal, a plain line now and then elsewhere. Apart from verbosity: -q does not
/// silence a progress line that was asked for.
enum class ProgressMode { automatic, yes, no };

class Reporter {
public:
  /// program: "train"; every line begins with it, as the logs of a pipeline's programs mix.
  Reporter(std::string program, Verbosity verbosity = Verbosity::normal, ProgressMode mode = ProgressMode::automatic);
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  /// Ends a progress line that is still open.
  ~Reporter();

  void message(std::string_view text); ///< unless quiet
  void detail(std::string_view text);  ///< when verbose

  /// True when a progress line would be shown now: at most six times a second on a terminal; elsewhere first after five
  /// seconds, and then every half minute. Ask before composing the text.
  bool progress_due();
  void progress(std::string_view text); ///< shows it, due or not
  /// Work done so far and its end, if that is known: "encode: 12.0 MB of 20.0 MB  60%  1.2 s left", when due.
  void progress_bytes(double done, double total);
  /// Shows a last line, and ends it.
  void finish_progress(std::string_view text);

private:
  using Clock = std::chrono::steady_clock;
  std::string program_;
  Verbosity verbosity_;
  bool shows_progress_, redraws_, open_ = false;
  Clock::time_point start_, next_;
  std::size_t width_ = 0; ///< of the line that stands on the terminal
};

} // namespace noether
