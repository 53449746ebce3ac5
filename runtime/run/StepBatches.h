// Which batches a program's runs in a step have, and which of them are read ahead of it.
#pragma once

#include "runtime/run/Batch.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// The batches of a step, one for each run of a program, and those that were read ahead for the
/// step after it.
class StepBatches {
public:
  StepBatches() = default;
  explicit StepBatches(std::vector<Batch> batches) : present{.batches = std::move(batches)} {}

  size_t size() const { return present.batches.size(); }
  const Batch &operator[](size_t run) const { return present.batches[run]; }

  /// They become those from number `first` on. Throws Error when they cannot be read.
  void draw(uint64_t first);
  /// They stay for that step, which has not begun.
  void keepFor(int64_t step) { present.step = step; }
  /// Whether they were drawn for that step, ahead of it.
  bool areOf(int64_t step) const { return present.step == step; }
  /// Reads the next ones of their source for that step, beside those that are here. Throws Error.
  void drawBeside(int64_t step);
  /// What was read for that step beside others takes their place.
  void take(int64_t step);

  /// Seconds that reading the batches took which are here, since they were asked for last.
  double takeSeconds() { return std::exchange(present.seconds, 0.0); }

private:
  struct Set {
    std::vector<Batch> batches;
    int64_t step = -1; ///< that they were drawn for ahead of it, or -1
    double seconds = 0;

    void draw(uint64_t first);
  };

  Set present, beside;
};

} // namespace hydra::runtime
