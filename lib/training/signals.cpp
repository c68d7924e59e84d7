#include "training/signals.h"

#include <array>
#include <csignal>
#include <cstddef>

namespace noether::training {
namespace {

struct Caught {
  int number;
  std::string_view name;
};
constexpr std::array kCaught{Caught{SIGINT, "SIGINT"}, Caught{SIGTERM, "SIGTERM"}, Caught{SIGUSR1, "SIGUSR1"}};

volatile std::sig_atomic_t received_number = 0;
std::array<struct sigaction, kCaught.size()> before;

// Only what POSIX allows in a handler.
void note(int number) {
  if (number == SIGINT && received_number == SIGINT) {
    std::signal(SIGINT, SIG_DFL); // whoever presses Ctrl-C twice does not want to wait for the step
    std::raise(SIGINT);
  }
  received_number = number;
}

} // namespace

StopSignals::StopSignals() {
  received_number = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART; // writes and reads of the step go on
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kCaught.size(); ++i) sigaction(kCaught[i].number, &action, &before[i]);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kCaught.size(); ++i) sigaction(kCaught[i].number, &before[i], nullptr);
}

std::string_view StopSignals::received() {
  for (const Caught& caught : kCaught)
    if (caught.number == received_number) return caught.name;
  return {};
}

} // namespace noether::training
