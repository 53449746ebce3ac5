// Loops whose iterations fall apart into slices that never touch each other's bytes: what lets one
// kernel run a whole loop, a block for each slice.
#pragma once

#include "dialects/plan/Plan.h"

namespace hydra::plan {

/// How many leading dimensions of a shape together have that many elements; nullopt if none do.
std::optional<unsigned> leadingDimensions(llvm::ArrayRef<int64_t> shape, int64_t slices);

/// The first element of a slice, counted from the first of the buffer. `dimensions`: how many
/// leading ones number the slices (StepInterface::slicedDimensions).
int64_t sliceOffset(mlir::MemRefType type, unsigned dimensions, int64_t slice);

/// Whether what a slice touches of a value lies in part `slice` of `slices` equal parts of its
/// buffer, at the same place in each; not so for values that loops move.
bool liesInOwnPart(mlir::Value value, unsigned dimensions, int64_t slices);

/// Whether the iterations of a loop fall apart into so many slices.
bool canBeSliced(LoopOp loop, int64_t slices);

/// Whether no iteration of a loop touches what another one writes, so that they can run side by
/// side; buffers of the body count as each iteration's own.
bool areIterationsApart(LoopOp loop);

} // namespace hydra::plan
