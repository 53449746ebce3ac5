// Linear layers of one input as one layer.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "passes/Statistics.h"

#include "mlir/IR/BuiltinOps.h"

namespace hydra {

/// Whether the weight of a layer is one that `hydra-lora` has made.
bool isAdapter(LinearOp linear);

/// The attention that all of a value goes into, as query, key or value, through operations that
/// pass on it and what was computed from it: a sum with anything else is not followed (an adapter
/// beside a projection: joined they measured slower). Null when there is none, or several.
mlir::Operation *attentionOf(mlir::Value v);

/// The multiplication that a value is a factor of, itself or through one activation: an elementwise
/// function of it alone; null otherwise.
mlir::Operation *gateOf(mlir::Value v);

using LayerGroups = llvm::SmallVector<llvm::SmallVector<LinearOp>>;

/// What a pass does whose name is `pass`: fuses linear layers of the bound model of a module, whose
/// weights (and biases, if any has one) are parameters. `groupsOf` gets such layers of one input
/// that can become one, in program order, and says which do: those of each of its groups. A group
/// of a single layer stays as it is. `fused` counts the layers. Fails, with the error reported,
/// when there is no bound model.
llvm::LogicalResult
fuseProjections(mlir::ModuleOp module, llvm::StringRef pass, PassStatistic &fused,
                llvm::function_ref<LayerGroups(llvm::ArrayRef<LinearOp>)> groupsOf);

} // namespace hydra
