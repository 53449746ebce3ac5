// Exchanges in two levels, inside of a node and then across nodes, by the shape of the mesh.
#pragma once

#include "compiler/PlanPipeline.h"

namespace hydra {

/// Where an axis of the mesh crosses nodes of `nodeRanks` ranks (those of the target, unless
/// `compile` says), makes it two: `data:64` becomes `data.node:8,data:8`. Ranks keep their order.
/// Sums then are made inside of a node, and across nodes go pieces of them, so they have another
/// association. What a rank holds stays the same: what the axis cuts is cut along both, in
/// `shardLevels`, as large pieces for the ranks of a node and these among nodes.
///
/// `Always` does so wherever an axis crosses nodes; `Auto` only where as many bytes as a bucket of
/// gradients are predicted to be exchanged sooner, by what exchanges that much. From then
/// on `nodeRanks` is the number that have to share a node, 0 where an axis crosses nodes all the
/// same; links of a target have it, if it was given. A mesh that cannot be read stays as it is.
///
/// Throws Error where nodes do not divide an axis, though they were asked for, or nothing says how
/// many ranks a node has.
void factorAtNodes(CompileOptions &compile);

} // namespace hydra
