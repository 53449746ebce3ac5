// The rules of PlanVerifier.h for one program.
#pragma once

#include "runtime/plan/VerifyPath.h"
#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error at the first broken rule. The rest of the plan must have been verified.
void verifyProgram(const planfile::Plan &plan, const planfile::Program &program, const Path &path);

} // namespace hydra::runtime
