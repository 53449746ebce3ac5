// Creation and registration of all passes.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/plan/Plan.h"
#include "passes/Statistics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace hydra {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// The only model of a module; reports an error and returns null when there is not exactly one.
ModelOp findModel(mlir::ModuleOp module);
/// The same, refusing a model that `hydra-bind` has not seen.
ModelOp findBoundModel(mlir::ModuleOp module);
/// The programs named (or `loss`), each of which must exist.
llvm::FailureOr<llvm::SmallVector<EntryOp>> findPrograms(ModelOp model,
                                                         llvm::ArrayRef<std::string> names);

/// Fails, at what has it, if the model has the name of a program that is made.
llvm::LogicalResult checkProgramName(ModelOp model, llvm::StringRef name);

/// Erases operations whose results have no uses, from the last to the first.
void eraseDead(mlir::Block &block);

/// An entry in front of a loop's body, still without operations, that takes what the body takes;
/// `mapping` then leads from the arguments of the body to its own.
EntryOp bodyLike(EntryOp body, llvm::StringRef stem, ScanAttr scan, mlir::IRMapping &mapping);

/// Erases bodies of loops that no loop runs.
void eraseUnusedBodies(ModelOp model);

} // namespace hydra
