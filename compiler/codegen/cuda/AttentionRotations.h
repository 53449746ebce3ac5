// Rotations of the gradients of attention's queries and keys, as kernels that make them store them
// (hydra-fuse-rotations).
#pragma once

#include "compiler/codegen/cuda/StepLauncher.h"

#include <optional>
#include <string>

namespace hydra::cuda {

/// A launch behind attention_grad that rotates gradients of queries, of keys, or of both side by
/// side, and does nothing else.
struct GradientRotation {
  plan::LaunchOp launch;
  RowProgram program;
  unsigned node = 0; ///< that rotates
  /// Of the heads that it rotates the first one of queries and of keys; none: it rotates none of
  /// them.
  std::optional<int64_t> ofQueries = {}, ofKeys = {};

  const Rotation &rotation() const { return program.nodes[node].rotation; }
  /// Gradients, and where they are to lie rotated, [batch, rows, heads, width].
  mlir::Value from() const;
  mlir::Value to() const;
};

/// Nothing for a launch that does something else, or reads more than these gradients.
std::optional<GradientRotation> gradientRotationOf(plan::AttentionGradOp op, plan::LaunchOp launch);

/// Where a gradient of this type lies rotated, from a head on: a view, made by `b`.
mlir::Value rotatedPlace(mlir::OpBuilder &b, const GradientRotation &rotation,
                         mlir::MemRefType type, int64_t firstHead);

/// What a kernel says of a rotation (templates/rotation.cuh).
struct RotationText {
  std::string table;    ///< in front of what it does
  std::string argument; ///< behind its other arguments
};
/// Positions that the launch reads become an argument.
RotationText rotationText(const GradientRotation &rotation, Arguments &arguments);

} // namespace hydra::cuda
