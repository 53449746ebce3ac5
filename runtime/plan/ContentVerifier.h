// The content rules of PlanVerifier.h for one program.
#pragma once

#include "runtime/plan/VerifyPath.h"
#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error, naming step and tensor, when a step would read bytes of the transient segment that
/// another buffer has written over, or that nothing has written; or when arguments of one step share
/// bytes of which one is written, where the step may not work in place. Tensors that do not say to
/// which buffer they belong are not checked. Every other rule must have been verified: blocks are
/// taken in list order, which streams and events respect (OrderVerifier.h).
void verifyContents(const planfile::Plan &plan, const planfile::Program &program,
                    const Path &path);

} // namespace hydra::runtime
