// Attention as matmuls, a cap, masks and a softmax over all scores.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// What a caller makes among the steps, of a value [B, H, S, Sk].
using AttentionStep =
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value)>;

/// How the steps differ from the plain ones; null: not at all.
struct AttentionChanges {
  /// Of the masked scores, truth values: where one is false, the score becomes minus infinity.
  AttentionStep keptKeys = nullptr;
  /// Of the weights, those that the values are multiplied by.
  AttentionStep onWeights = nullptr;
  /// Scores and weights are f32 whatever is multiplied, as those that fused kernels never store.
  bool wideScores = false;
};

/// Writes in front of an attention that saves nothing the steps that compute its output, and
/// returns that [B, S, H, dv]; the attention stays. What it makes says that it is of `pass`.
mlir::Value writeAttentionSteps(AttentionOp op, llvm::StringRef pass,
                                const AttentionChanges &changes = {});

} // namespace hydra
