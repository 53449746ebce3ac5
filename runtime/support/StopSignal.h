// A polite end: the first SIGINT, SIGTERM or SIGHUP asks; a second SIGINT or SIGTERM ends the
// process at once.
#pragma once

#include <array>
#include <csignal>
#include <filesystem>

namespace hydra::support {

/// While alive, notes the first signal instead of dying of it. One at a time.
class StopSignal {
public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal &) = delete;
  StopSignal &operator=(const StopSignal &) = delete;

  /// The number of the signal that came, or 0.
  static int received();
  /// Throws Error if one came: the file or folder is not written then.
  static void check(const std::filesystem::path &output);
  /// The status that a program ends with behind an Error: what shells make of the signal, or 1.
  static int statusOfError();

private:
  std::array<struct sigaction, 3> before{}; // of SIGINT, SIGTERM, SIGHUP
};

} // namespace hydra::support
