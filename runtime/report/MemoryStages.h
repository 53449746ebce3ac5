// How memory grows and shrinks over the phases of a program.
#pragma once

#include "runtime/report/LiveMemory.h"

#include <string>
#include <vector>

namespace hydra::report {

/// What is live behind a part of a run: of the persistent segment what its variables hold, of the
/// transient one what later blocks still read. `peak` is the most during the part.
struct MemoryStage {
  std::string name;   ///< `model`, `batch`, then phases in the order in which they end
  int64_t block = -1; ///< the last of the part; -1 before the first
  uint64_t live = 0, peak = 0;
};

/// Model, batch and the phases of a program. A phase ends with the last block that has a step of
/// it, also where steps of another one stand between its own.
std::vector<MemoryStage> memoryStages(const planfile::Plan &plan, const planfile::Program &program,
                                      const LiveMemory &memory);

/// Bytes that come to life or die, at a time of the run as the compiler predicts it, one block
/// after the other.
struct MemoryEvent {
  double microseconds;
  int64_t bytes; ///< negative where they die
  uint32_t tensor;
};

/// All events of a program in the order of time; at one time what dies comes first.
std::vector<MemoryEvent> memoryEvents(const planfile::Program &program, const LiveMemory &memory);

} // namespace hydra::report
