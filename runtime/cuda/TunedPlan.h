// What a plan says of its tuning: where it was measured, and which steps there are to measure.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime::cuda {

// Numbers of algorithms mean something only on the device and with the libraries that they were
// found on, which the header of a tuned plan names: `NVIDIA H200, cuBLASLt 130100`.

/// Throws Error where the plan was tuned on another device or with other libraries than `machine`.
void checkTunedFor(const PlanFile &file, std::string_view machine);

/// Notes that the plan was tuned on `machine`, and where it has safe forms, which are not tuned,
/// that kernels are one of its optimizations.
void noteTunedFor(planfile::PlanT &plan, std::string machine);

/// The steps of a program in the order of its nodes: those of a loop once for every iteration; null
/// for switches, which stand in front of their cases.
std::vector<planfile::StepT *> stepsInOrder(const planfile::ProgramT &program);

} // namespace hydra::runtime::cuda
