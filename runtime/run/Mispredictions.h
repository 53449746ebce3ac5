// Where predictions are wrong.
#pragma once

#include "runtime/run/Executor.h"

#include <span>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Steps of one name in one part of the model, those of all layers together; microseconds of one
/// step or call of the plan. Predicted with what runs beside them, as they are measured.
struct Misprediction {
  std::string name, module;
  double calls = 0, measured = 0, predicted = 0;
};

/// The farthest first. `times`: of so many runs.
std::vector<Misprediction> mispredictions(const planfile::Plan &plan,
                                          std::span<const StepTime> times, int runs);

/// The whole step or call.
Misprediction wholeStep(const planfile::Plan &plan, double measured);

} // namespace hydra::runtime
