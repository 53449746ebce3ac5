// The rules of PlanVerifier.h for code: blobs and kernels.
#pragma once

#include "runtime/plan/VerifyPath.h"
#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error at the first broken rule. The target must have been verified.
void verifyCode(const planfile::Plan &plan, const Path &root);

} // namespace hydra::runtime
