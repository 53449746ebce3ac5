// The rules for variables that are members of units.
#pragma once

#include "runtime/plan/VerifyPath.h"
#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error unless the shape is one, of at most `mostElements`.
void verifyMemberShape(const Path &member, const planfile::Member &entry, uint64_t mostElements);

/// Throws Error unless units are dense, and cut along an axis of the mesh or not at all, and each
/// member lies in its unit, where no other does. Tensors, mesh and shapes must be valid.
void verifyUnits(const planfile::Plan &plan, const Path &root, uint64_t mostElements);

} // namespace hydra::runtime
