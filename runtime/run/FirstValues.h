// First values of a plan's parameters and states: from a file, or drawn by their initialisers.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Adapter.h"
#include "runtime/run/Executor.h"
#include "runtime/run/TensorValues.h"
#include "runtime/run/Variables.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hydra::runtime {

/// Writes what a rank holds of all variables of the plan but those that are derived. Parameters
/// come from `given` if it has any of them, and then all must be there; otherwise they are drawn
/// from `seed`. States of the model alike, and what the optimizer keeps, but for the count of
/// updates, which then begins anew. Adapters may be missing together; those of `adapter` come from
/// there. `given` and `adapter` may be null.
void setVariables(const PlanFile &file, Executor &executor, uint64_t rank,
                  const GivenTensors *given, uint64_t seed, const AdapterFile *adapter = nullptr);

/// Gives every parameter of which a file has the average that value instead of its own. Throws
/// Error when it has none, or lacks that of a parameter that the plan trains, or was saved before
/// an update had made any.
void useAverages(const PlanFile &file, Executor &executor, uint64_t rank,
                 const GivenTensors &given);

/// Writes what a rank holds of what a variable begins with, drawn from the seed, and of its copies;
/// of zeros nothing is made on the host. Calls `wrote` with the bytes that are done, piece by
/// piece.
void writeInitialValues(
    const planfile::Plan &plan, Executor &executor, const planfile::Variable &variable,
    uint64_t rank, uint64_t seed,
    const std::function<void(uint64_t bytes)> &wrote = [](uint64_t) {});

/// What the file has of it, which must be there, under its name or another. Plan and file must
/// outlive the result.
ElementSource givenValues(const planfile::Plan &plan, const planfile::Variable &variable,
                          const GivenTensors &given, const std::string &name = "");

/// Whether the file has any parameter of the plan.
bool hasParameters(const PlanFile &file, const GivenTensors &given);

/// The same of adapters.
bool hasAdapters(const PlanFile &file, const GivenTensors &given);

/// Makes what programs derive of other variables. Whoever has written variables from outside calls
/// it before other programs run.
void deriveVariables(const planfile::Plan &plan, Executor &executor);

} // namespace hydra::runtime
