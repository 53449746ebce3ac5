// The plan of a model as it grows: what its programs share. Part of hydra-to-plan.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/RowPartition.h"
#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"

namespace hydra {

class PlanWriter {
public:
  const TargetAttr target;

  /// An empty plan at `at`, with a variable for each parameter and state of the model.
  PlanWriter(ModelOp model, mlir::OpBuilder &at);

  mlir::Value variable(mlir::StringAttr name) { return variables.lookup(name); }
  /// The bytes of parameters that lie side by side, of which `first` is the first.
  mlir::Value sideBySide(mlir::StringAttr first) { return wholes.lookup(first); }
  /// Where this rank is along an axis of the mesh.
  mlir::Value rank(llvm::StringRef axis) { return ranks.lookup(axis); }

  /// A new program behind all others; scalars and kernels go before the first.
  plan::ProgramOp program(EntryOp entry);

  /// The scalar that an argument with a default is, made by the first program that asks; reports
  /// programs that disagree about it.
  llvm::FailureOr<mlir::Value> scalar(EntryOp entry, unsigned argument);

  /// The kernel of a group for these layouts; equal ones are the same.
  plan::KernelOp kernel(FusedOp group, llvm::ArrayRef<mlir::Type> layouts,
                        const RowPartition &partition);
  /// The kernel that adds `parts` rows of partial sums, `columns` wide.
  plan::KernelOp combineKernel(int64_t parts, int64_t columns, llvm::ArrayRef<mlir::Type> layouts,
                               mlir::Location loc);
  size_t kernelCount() const { return kernels.size(); }

private:
  /// One buffer for each concatenation of parameters, or copies of them, that needs no bytes of its
  /// own.
  void placeSideBySide(ModelOp model);
  void addMesh(ModelOp model);
  mlir::Value addBuffer(mlir::RankedTensorType type, plan::Category category, mlir::Location loc);
  void addVariable(mlir::Operation *op, VariableRole role, mlir::RankedTensorType type,
                   InitAttr init, mlir::StringAttr group, mlir::StringAttr owner,
                   plan::Category category);
  /// The members of a unit, or of state of one.
  void addMembers(mlir::Operation *op, FlatUnitAttr unit, plan::Category category);
  /// Named after the operations inside, numbered.
  std::string kernelName(FusedOp group);

  mlir::OpBuilder b;
  plan::PlanModuleOp module;
  plan::ProgramOp firstProgram;
  llvm::DenseMap<mlir::Attribute, mlir::Value> variables;
  llvm::DenseMap<mlir::Attribute, mlir::Value> wholes; // of parameters side by side, by the first
  llvm::StringMap<plan::ScalarOp> scalars;
  llvm::StringMap<mlir::Value> ranks; // by axis of the mesh: where a rank is along it
  llvm::StringMap<plan::KernelOp> kernels;
};

} // namespace hydra
