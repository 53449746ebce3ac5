// The handlers of SIGINT, SIGTERM and SIGHUP.
#include "runtime/run/StopSignal.h"

#include <csignal>

namespace hydra::runtime {

namespace {

volatile std::sig_atomic_t receivedSignal = 0;

void note(int number) { receivedSignal = number; }

void setHandlers(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  // A second one of the same kind ends the process; a write to a terminal must not fail.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // Nobody asked twice when a terminal that closes sends it twice (the kernel, then the shell). Who
  // started the program with nohup wants it to be ignored.
  struct sigaction hangup = {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  action.sa_flags = SA_RESTART;
  if (hangup.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
}

} // namespace

StopSignal::StopSignal() {
  receivedSignal = 0;
  setHandlers(note);
}

StopSignal::~StopSignal() { setHandlers(SIG_DFL); }

int StopSignal::received() { return receivedSignal; }

} // namespace hydra::runtime
