// SIGTERM, held back while a line is due that says why the run has ended.
#pragma once

#include <chrono>
#include <optional>

#include <csignal>

namespace hydra::runtime {

/// When one rank has died, mpirun and torchrun send SIGTERM to the others, which then know of the
/// death but have not told it yet. While such an object lives, the channel's thread decides: it
/// passes the signal on, to the default action, or says the line first. A second SIGTERM is not
/// held.
class HeldSignal {
public:
  HeldSignal();
  ~HeldSignal();
  HeldSignal(const HeldSignal &) = delete;
  HeldSignal &operator=(const HeldSignal &) = delete;

  /// When a signal came that is held; nothing: none did.
  static std::optional<std::chrono::steady_clock::time_point> since();
  /// Ends the process by it.
  static void pass();

private:
  struct sigaction before{};
};

} // namespace hydra::runtime
