// Processes that check programs: what crashes or hangs in one of them is a result like any other.
#pragma once

#include "test/fuzz/differential/Check.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace hydra::test {

/// One check of a job: its number, the setting's number in it, and what came out.
struct Report {
  uint64_t job = 0;
  uint32_t part = 0;
  Verdict verdict;
};

struct WorkerOptions {
  unsigned processes = 1;
  std::chrono::milliseconds limit{60000}; ///< for one part
  std::chrono::seconds total{0};          ///< for everything; 0: none
  uint64_t lifetime = 1000;               ///< jobs after which a process is replaced by a fresh one
  uint64_t memory = 0;                    ///< bytes of address space of a process; 0: no limit
};

/// What there is to do.
class JobRunner {
public:
  virtual ~JobRunner() = default;
  /// Called in the process that does the jobs, before any.
  virtual void begin() {}
  /// How many parts a job has; at least one.
  virtual uint32_t parts(uint64_t job) = 0;
  virtual Verdict run(uint64_t job, uint32_t part) = 0;
};

/// Does the jobs [first, last) in forked processes. `take` is called in this process for every
/// part, in any order; a part that ends its process (or takes longer than the limit) is reported as
/// Crashed (or Hung), and the job goes on behind it. So it does behind every finding, in a fresh
/// process: an executor that has gone wrong may have left anything behind. Returns how many jobs
/// were done: all but after an interrupt or when the time is over.
uint64_t runJobs(JobRunner &runner, uint64_t first, uint64_t last, const WorkerOptions &options,
                 const std::function<void(const Report &)> &take);

} // namespace hydra::test
