// The rules of PlanVerifier.h for data: segments, tensors, variables, scalars and the mesh.
#pragma once

#include "runtime/plan/VerifyPath.h"
#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error at the first broken rule. Target and locations must have been verified.
void verifyData(const planfile::Plan &plan, const Path &root);

} // namespace hydra::runtime
