// Steps of neighbouring operations that work on gathered rows become one switch: part of
// hydra-to-plan.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/plan/Lowering.h"
#include "passes/lower/RowSwitch.h"

namespace hydra {

class RowRuns {
public:
  /// Steps are made by `lowering`, one operation after the other.
  explicit RowRuns(plan::Lowering &lowering) : lowering(lowering) {}

  /// Lowers an operation by `lower`. Steps of one that hydra-skip-rows has marked join the open
  /// run; any other operation with steps ends it.
  llvm::LogicalResult lower(mlir::Operation *op,
                            llvm::function_ref<llvm::LogicalResult(mlir::Operation *)> lower);
  /// Writes the switch of the open run, if there is one.
  void end();

private:
  /// Makes a sum over joined rows one term after the other, each of its own rows: a switch where
  /// the device counts these.
  void splitSum(MatmulOp op, llvm::ArrayRef<int64_t> parts);

  struct Run {
    int64_t number = -1, rows = 0;
    mlir::Value count;
    llvm::SmallVector<RowStep> steps;
  };

  plan::Lowering &lowering;
  llvm::DenseMap<int64_t, CompactOp> compactions; // by number
  Run open;
};

} // namespace hydra
