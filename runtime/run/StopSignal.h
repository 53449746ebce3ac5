// A polite end: the first SIGINT, SIGTERM or SIGHUP asks; a second SIGINT or SIGTERM ends the
// process at once.
#pragma once

#include <array>
#include <csignal>

namespace hydra::runtime {

/// While alive, notes the first signal instead of dying of it. One at a time.
class StopSignal {
public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal &) = delete;
  StopSignal &operator=(const StopSignal &) = delete;

  /// The number of the signal that came, or 0.
  static int received();

private:
  std::array<struct sigaction, 3> before{}; // of SIGINT, SIGTERM, SIGHUP
};

} // namespace hydra::runtime
