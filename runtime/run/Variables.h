// First values of a plan's parameters and states, from a file or from their initialisers.
#pragma once

#include "runtime/run/Executor.h"
#include "runtime/run/TensorValues.h"

#include <cstdint>

namespace hydra::runtime {

/// Whether a state has the values of another variable, and is written with it.
bool isCopy(const planfile::Variable &variable);
/// Whether files have it: not what follows another variable, or lives within a step.
bool isSaved(const planfile::Variable &variable);
/// Those of them that a checkpoint holds: gradients are zero between two steps.
bool isInCheckpoint(const planfile::Variable &variable);

/// Writes one variable that is no copy (dense, in its own type), and its copies.
void writeVariable(const planfile::Plan &plan, Executor &executor,
                   const planfile::Variable &variable, std::span<const std::byte> values);

/// Writes all variables of the plan. Parameters come from `given` if it has any of them, and then
/// all must be there; otherwise they are drawn from `seed`. States alike, but for the count of
/// updates, which then begins anew. `given` may be null.
void setVariables(const PlanFile &file, Executor &executor, const GivenTensors *given,
                  uint64_t seed);

/// A hash of all variables that are saved, which is the same where all of them are.
std::string hashOfVariables(const PlanFile &file, Executor &executor);

/// What it begins with, drawn from the seed; dense, in its own type.
std::vector<std::byte> initialValue(const planfile::Plan &plan, const planfile::Variable &variable,
                                    uint64_t seed);

/// Whether the file has any parameter of the plan.
bool hasParameters(const PlanFile &file, const GivenTensors &given);

/// Whether all elements of a variable are finite.
bool isFinite(const PlanFile &file, Executor &executor, const planfile::Variable &variable);

/// Elements of all parameters.
uint64_t countParameters(const planfile::Plan &plan);

} // namespace hydra::runtime
