// Work on a number of rows that only the device knows, without a choice between cases.
#pragma once

#include "compiler/codegen/cuda/StepLauncher.h"

namespace hydra::cuda {

/// A switch over a number of rows costs a graph the time to set a node and to start its case, and
/// works on whole granules. Where every step of it can read the number by itself, these steps take
/// its place: generated kernels whose blocks behind the last row end at once, and matmuls by
/// warpgroups (templates/matmul_hopper.cuh).
class CountedSteps {
public:
  explicit CountedSteps(StepLauncher &launcher) : launcher(launcher) {}

  /// Whether the steps of a switch have taken its place; else nothing has changed.
  bool expand(plan::SwitchOp choice);

private:
  void expandLaunch(plan::LaunchOp launch, mlir::Value count, int64_t rows);
  /// The kernel that reads a number, which stands for `each` times so many of its rows.
  plan::KernelOp counted(plan::KernelOp kernel, int64_t each);

  StepLauncher &launcher;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, plan::KernelOp> kernels;
};

} // namespace hydra::cuda
