// What each step of a plan takes in one optimizer step of the run or in one call: as measured, or
// as predicted.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hydra::report {

/// All calls of a step together.
struct StepMeasure {
  const planfile::Step *step = nullptr;
  uint32_t program = 0;
  double calls = 0, seconds = 0;
  double hostSeconds = 0;             ///< of the thread that starts it
  std::optional<double> firstSeconds; ///< in the first step or call of the process
};

/// Times are seconds: `wall` is what a user waits for; `data`, in which it waits for batches;
/// `idle`, in which the device runs nothing and no batch is waited for; `alone`, in which ranks
/// exchange something and nothing computes.
struct Measurement {
  std::vector<StepMeasure> steps; ///< in the order of programs and of steps in them
  bool measured = false;
  double wall = 0, data = 0, idle = 0, alone = 0;
  bool stepByStep = false;      ///< a GPU without a captured graph
  uint32_t multiprocessors = 0; ///< of the GPU; 0: unknown

  double seconds() const;
};

/// The programs of one optimizer step of the run with how often each of them runs; of a plan that
/// does not train its first one.
std::vector<std::pair<uint32_t, uint64_t>> programsOfStep(const planfile::Plan &plan);

/// By the costs that the compiler predicts.
Measurement predictedMeasurement(const planfile::Plan &plan);

} // namespace hydra::report
