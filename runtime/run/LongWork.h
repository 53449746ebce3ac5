// Lines about work on all variables that takes long: drawing, reading and saving them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hydra::runtime {

/// Says on standard error how far it is, after two seconds and then every five, and at the end how
/// long it took; nothing where it takes less. Of a terminal's live line it takes the place.
class LongWork {
public:
  using Clock = std::chrono::steady_clock;

  /// `what`, such as `saving run/step-00000500`. Unless it `speaks`, it says nothing: the others of
  /// several ranks work as long.
  LongWork(std::string what, uint64_t bytes, bool speaks);

  /// So many more are done.
  void add(uint64_t bytes, Clock::time_point now = Clock::now());
  /// All of it.
  void finish(Clock::time_point now = Clock::now());

private:
  void say(const std::string &how) const;

  const std::string what;
  const uint64_t all;
  const bool speaks;
  const Clock::time_point begun = Clock::now();
  Clock::time_point next;
  uint64_t done = 0;
  bool said = false;
};

} // namespace hydra::runtime
