// Loops whose iterations fall apart into slices that never touch each other's bytes: what lets one
// kernel run a whole loop, a block for each slice, or a thread where a slice is a single number.
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

/// Where the numbers of a value lie, in row-major order, whatever its shape: values with equal
/// layouts have the same number at the same position in every iteration.
struct LaneLayout {
  mlir::Operation *buffer = nullptr;
  mlir::Type element;
  int64_t bytes = 0; ///< from the start of the buffer to the first number
  llvm::SmallVector<std::pair<int64_t, int64_t>> dims; ///< size and stride, as few as possible
  llvm::SmallVector<int64_t> moves; ///< bytes, by the loops around, the innermost first

  bool operator==(const LaneLayout &other) const = default;
};
/// Of a value that steps in the body of a loop use.
LaneLayout laneLayoutOf(LoopOp loop, mlir::Value value);

/// How many lanes a loop has, if each can run all iterations by itself: every step computes or
/// copies that many numbers, one by one, and what the loop writes is read by the lane that wrote
/// it. nullopt: it has none.
std::optional<int64_t> lanesOf(LoopOp loop);

} // namespace hydra::plan
