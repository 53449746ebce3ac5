// The ordering rule of PlanVerifier.h for one list of blocks.
#pragma once

#include "runtime/plan/Accesses.h"
#include "runtime/plan/VerifyPath.h"
#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

using BlockList = flatbuffers::Vector<flatbuffers::Offset<planfile::Block>>;

/// Throws Error, naming both blocks, when two of `blocks` touch the same bytes, one of them
/// writing, and neither stream nor event orders them. Does not look for conflicts inside one block.
/// Every other rule must have been verified. Takes close to linear time in the number of arguments.
void verifyOrder(const planfile::Plan &plan, const BlockList &blocks, const LoopNest &loops,
                 const Path &owner);

} // namespace hydra::runtime
