// A handler that notes the time.
#include "runtime/ranks/HeldSignal.h"

#include "runtime/support/Temporaries.h"

#include <atomic>

using namespace hydra::runtime;
using Clock = std::chrono::steady_clock;

namespace {

std::atomic<Clock::rep> came = 0; // 0: nothing
static_assert(std::atomic<Clock::rep>::is_always_lock_free);

void hold(int number) {
  came = Clock::now().time_since_epoch().count();
  std::signal(number, hydra::support::endBySignal);
}

} // namespace

HeldSignal::HeldSignal() {
  struct sigaction action{};
  action.sa_handler = hold;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &before);
}

HeldSignal::~HeldSignal() { ::sigaction(SIGTERM, &before, nullptr); }

std::optional<Clock::time_point> HeldSignal::since() {
  const Clock::rep time = came;
  return time == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(time)));
}

void HeldSignal::pass() { hydra::support::endBySignal(SIGTERM); }
