// A table that a handler of signals may read at any time.
#include "runtime/support/Temporaries.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

namespace hydra::support {

namespace {

struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<const char *> path = nullptr;
};

std::array<Slot, Temporary::kMost> slots;
std::atomic<bool> ending = false;
std::atomic<pid_t> owner = 0; // a process that was forked has the table, and not the files
static_assert(std::atomic<const char *>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

/// Where nobody else has asked for a signal.
void handleSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{};
    ::sigaction(number, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL)
      continue;
    action.sa_handler = endBySignal;
    action.sa_flags = 0;
    ::sigaction(number, &action, nullptr);
  }
}

} // namespace

Temporary::Temporary(const char *path) : slot(0) {
  owner = ::getpid();
  handleSignals();
  while (slot < kMost && slots[slot].taken.exchange(true))
    ++slot;
  if (slot < kMost)
    slots[slot].path = path;
}

Temporary::~Temporary() {
  if (slot == kMost)
    return;
  slots[slot].path = nullptr;
  // A handler on another thread may have the name in its hands: the process ends in a moment.
  while (ending)
    ::pause();
  slots[slot].taken = false;
}

void endBySignal(int number) {
  ending = true;
  if (owner == ::getpid())
    for (const Slot &one : slots)
      if (const char *const path = one.path)
        ::unlink(path);
  std::signal(number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  ::raise(number);
  constexpr int signalled = 128;
  ::_exit(signalled + number); // the first process of a container takes no default actions
}

} // namespace hydra::support
