// Linear layers of one input as one layer.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Linear layers of every input, in program order, whose weights (and biases, if any has one) are
/// parameters: those that can become one layer. Inputs with a single one are left out.
llvm::SmallVector<llvm::SmallVector<LinearOp>> siblingProjections(EntryOp entry);

/// Whether the weight of a layer is one that `hydra-lora` has made.
bool isAdapter(LinearOp linear);

/// The attention that all of a value goes into, as query, key or value, through operations that
/// pass on it and what was computed from it: a sum with anything else is not followed (an adapter
/// beside a projection: joined they measured slower). Null when there is none, or several.
mlir::Operation *attentionOf(mlir::Value v);

/// The multiplication that a value is a factor of, itself or through one activation: an elementwise
/// function of it alone; null otherwise.
mlir::Operation *gateOf(mlir::Value v);

/// Replaces the layers, which must be of one list of siblingProjections, by one with their weights
/// behind one another, and slices of its result.
void fuseProjections(llvm::StringRef pass, llvm::ArrayRef<LinearOp> layers);

} // namespace hydra
