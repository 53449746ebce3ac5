// The handlers of SIGINT, SIGTERM and SIGHUP.
#include "runtime/support/StopSignal.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/Temporaries.h"

namespace hydra::support {

namespace {

volatile std::sig_atomic_t receivedSignal = 0;

void note(int number) {
  receivedSignal = number;
  if (number != SIGHUP)
    std::signal(number, endBySignal);
}

} // namespace

StopSignal::StopSignal() {
  receivedSignal = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART; // a write to a terminal must not fail
  ::sigaction(SIGINT, &action, &before[0]);
  ::sigaction(SIGTERM, &action, &before[1]);
  // Nobody asked twice when a terminal that closes sends it twice (the kernel, then the shell). Who
  // started the program with nohup wants it to be ignored.
  ::sigaction(SIGHUP, nullptr, &before[2]);
  if (before[2].sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
}

StopSignal::~StopSignal() {
  ::sigaction(SIGINT, &before[0], nullptr);
  ::sigaction(SIGTERM, &before[1], nullptr);
  ::sigaction(SIGHUP, &before[2], nullptr);
}

int StopSignal::received() { return receivedSignal; }

void StopSignal::check(const std::filesystem::path &output) {
  if (received() != 0)
    fail("ended by a signal; {} is not written", shownPath(output));
}

int StopSignal::statusOfError() {
  constexpr int signalled = 128; // and its number
  return received() != 0 ? signalled + received() : 1;
}

} // namespace hydra::support
