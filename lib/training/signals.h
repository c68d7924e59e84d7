// Signals that ask a run to stop: noted, and looked at between two steps.
#pragma once

#include <string_view>

namespace noether::training {

/// While it lives, SIGINT (Ctrl-C), SIGTERM and SIGUSR1 are noted in place of ending the program; a second Ctrl-C ends
/// it at once. At most one lives at a time.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// "SIGTERM", or empty while none has come.
  static std::string_view received();
};

} // namespace noether::training
