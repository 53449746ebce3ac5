// A plan as text for people.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <string>

namespace hydra::inspect {

/// What compiled the plan, from what, for what, and what it predicts.
std::string headerText(const runtime::PlanFile &file);

/// Parameters, states and run-time scalars.
std::string parametersText(const planfile::Plan &plan);

/// Segments, bytes by category, and for each program its peak and a picture of its live ranges.
std::string memoryText(const planfile::Plan &plan);

std::string kernelsText(const planfile::Plan &plan);

/// R25 of models.md section 7: in which types numbers are held, per kind of tensor, and what each
/// type does to a long sum.
std::string precisionText(const planfile::Plan &plan);

/// What a step does: `matmul{transpose_b=true}`, `kernel silu on 2048 rows by 42`.
std::string actionText(const planfile::Plan &plan, const planfile::Step &step);

/// Inputs, outputs and the tree of blocks of every program.
std::string stepsText(const planfile::Plan &plan);

} // namespace hydra::inspect
