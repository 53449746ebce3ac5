// What each pass is good for on a given model.
#pragma once

#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"

#include <memory>
#include <string>

namespace hydra {

/// Compiles without the named pass (empty: with all of them), up to the plan without code.
using CompileWithout =
    llvm::function_ref<llvm::FailureOr<std::unique_ptr<planfile::PlanT>>(const std::string &pass)>;

/// Prints steps, memory, traffic and roofline time of a step (or call) with all passes, and how
/// much more each of them would be without each pass that ran and can be left out. Fails when a
/// compilation does.
llvm::LogicalResult printExplanation(CompileWithout compile);

} // namespace hydra
