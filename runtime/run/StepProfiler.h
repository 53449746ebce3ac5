// Steps of a session under profiling, one by one.
#pragma once

#include "runtime/report/Phases.h"
#include "runtime/run/Executor.h"
#include "runtime/run/Session.h"

#include <span>
#include <vector>

namespace hydra::runtime {

/// A step or call of a session, in seconds: when it ended on the clock of the time line, all a user
/// waits for, of that waiting for batches, and what steps of the plan took by phase.
struct StepSample {
  double end = 0, wall = 0, data = 0;
  report::PhaseShares phases{};
};

/// What an executor measured over `runs` steps or calls, which took `wallSeconds` altogether.
/// `timeline`: every run of a step; empty where the device cannot say.
struct Profile {
  std::span<const StepTime> times;
  std::span<const StepRun> timeline;
  int runs = 1;
  double wallSeconds = 0;
  std::span<const StepSample> samples = {}; ///< each of the runs
  std::span<const StepTime> first = {};     ///< of the first step of the process; may be empty
  double tokens = 0;                        ///< of all runs
  bool stepByStep = false;                  ///< a GPU without a captured graph
  uint32_t multiprocessors = 0;             ///< of the GPU; 0: none
};

/// Ranks begin every run together: what one of them waits for in an exchange is no other's delay.
/// Between `begin` and `end`, `add` is to be called right behind each step, which took so many
/// seconds. What it asks the executor for is no part of a step's time.
class StepProfiler {
public:
  StepProfiler(Executor &executor, Session &session) : executor(executor), session(session) {}

  /// Forgets what was recorded but for the first step, and records from now on.
  void begin();
  void add(double wallSeconds);
  /// What was recorded since `begin` is the first step of the process, and no part of the others.
  void takeFirst();
  void end();

  const std::vector<StepSample> &samples() const { return steps; }
  /// Of the first step of the process; empty where it was not recorded.
  const std::vector<StepTime> &first() const { return firstTimes; }
  /// What the reports of the steps since `begin` take, over the time line given, if any. It is of
  /// use as long as the profiler is.
  Profile profile(std::span<const StepRun> timeline);

private:
  Executor &executor;
  Session &session;
  std::vector<StepSample> steps;
  std::vector<StepTime> times, firstTimes;
  report::PhaseShares before{}; // seconds of all steps so far
  double allTokens = 0;
};

} // namespace hydra::runtime
