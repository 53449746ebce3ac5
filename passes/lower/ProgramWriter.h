// Turns an entry into a program of the plan, or the body of a loop into an iteration: part of
// hydra-to-plan.
#pragma once

#include "dialects/plan/Lowering.h"
#include "passes/lower/Liveness.h"
#include "passes/lower/MovePlacement.h"
#include "passes/lower/PlanWriter.h"
#include "passes/lower/RowRuns.h"

namespace hydra {

class ProgramWriter : public plan::Lowering {
public:
  ProgramWriter(PlanWriter &plan, EntryOp entry);

  /// Writes the program of the entry. Reports operations that no step computes, and scalars that
  /// programs disagree about.
  llvm::LogicalResult run();

  /// Steps that were written, and results that took the bytes of an operand.
  unsigned steps = 0, inPlace = 0;

  // The interface of operations.
  mlir::Value source(mlir::Value value) override;
  mlir::Value target(mlir::Value result) override;
  mlir::Value scratch(mlir::Operation *op, llvm::ArrayRef<int64_t> shape,
                      mlir::Type element) override;
  bool isInPlace(mlir::Operation *move, unsigned operand) override;
  void finish(mlir::Operation *op, mlir::Operation *step) override;

private:
  // Programs and their operations: ProgramWriter.cpp.
  llvm::LogicalResult addInputs();
  mlir::IntegerAttr batchOf(unsigned number,
                            llvm::ArrayRef<int64_t> (RowsAttr::*dimensions)() const);
  void chooseUpdateTargets();
  llvm::LogicalResult lowerAll();
  llvm::LogicalResult lower(mlir::Operation *op);
  llvm::LogicalResult launch(FusedOp group);
  void addLaunch(mlir::Operation *op, mlir::Location loc, plan::KernelOp kernel,
                 mlir::ValueRange args, size_t reads, int64_t flops, int64_t bytes);
  void addOutputs();

  mlir::Value dyingOperand(mlir::Value value);
  bool isDyingWhole(mlir::Operation *op, unsigned number);
  bool isDyingPart(mlir::Value result, unsigned number);
  mlir::Value inBytesOf(mlir::Value dying, mlir::Value result);
  mlir::Value newBuffer(mlir::RankedTensorType type, plan::Category category, mlir::Location loc);
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to);

  // Loops and their bodies: LoopLowering.cpp.

  /// Where the body of a loop finds what it is given and leaves its results: a buffer, or the bytes
  /// of one chunk, for each argument, each joined result and each carried value.
  struct LoopBuffers {
    llvm::SmallVector<mlir::Value> arguments, joined, carried;
  };
  llvm::LogicalResult lowerLoop(LoopOp loop);
  llvm::LogicalResult runBody(mlir::Block &block, const LoopBuffers &given);
  mlir::Value carriedBuffer(LoopOp loop, unsigned number, mlir::Value result);
  bool writeInto(mlir::Value value, mlir::Value slot);

  PlanWriter &plan;
  EntryOp entry;
  ProgramLiveness liveness;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  MovePlacement moves{*this, liveness};
  RowRuns runs{*this};
  /// Buffers of operands that a result has taken, by operation: no two results take the same.
  llvm::DenseSet<std::pair<mlir::Operation *, mlir::Operation *>> takenAt;
};

} // namespace hydra
