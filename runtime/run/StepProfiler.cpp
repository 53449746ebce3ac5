// A step is what the executor has recorded more than before it.
#include "runtime/run/StepProfiler.h"

using namespace hydra::runtime;
using namespace hydra::report;

void StepProfiler::begin() {
  steps.clear();
  before = {};
  allTokens = 0;
  executor.setProfiling(true);
  session.startTogether(true);
}

void StepProfiler::end() {
  executor.setProfiling(false);
  session.startTogether(false);
}

void StepProfiler::add(double wallSeconds) {
  const double end = executor.clock();
  PhaseShares now{};
  for (const StepTime &time : executor.stepTimes()) {
    const PhaseShares shares = phaseShares(*time.step);
    for (size_t i = 0; i < shares.size(); ++i)
      now[i] += shares[i] * time.seconds;
  }
  StepSample sample{.end = end, .wall = wallSeconds, .data = session.dataSeconds(), .phases = now};
  for (size_t i = 0; i < now.size(); ++i)
    sample.phases[i] -= before[i];
  before = now;
  steps.push_back(sample);
  allTokens += double(session.tokens());
}

void StepProfiler::takeFirst() { firstTimes = executor.stepTimes(); }

Profile StepProfiler::profile(std::span<const StepRun> timeline) {
  times = executor.stepTimes();
  Profile all;
  all.times = times;
  all.timeline = timeline;
  all.runs = static_cast<int>(steps.size());
  all.samples = steps;
  all.first = firstTimes;
  all.tokens = allTokens;
  all.stepByStep = executor.launchesSteps();
  all.multiprocessors = executor.multiprocessors();
  for (const StepSample &one : steps)
    all.wallSeconds += one.wall;
  return all;
}
