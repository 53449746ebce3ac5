// Which steps of a loop's kernel have to wait for others.
#pragma once

#include "compiler/codegen/cuda/LoopPlacement.h"

namespace hydra::cuda {

/// Who has to be waited for in front of a step.
enum class LoopWait { None, Warp, Block };

/// What has been touched since the last barrier.
class LoopBarriers {
public:
  LoopBarriers(const LoopPlacement &places) : places(places) {}

  /// What each of the steps of an iteration waits for. A group's rows are the same warp's in every
  /// group of the same domain.
  llvm::SmallVector<LoopWait> waitsOf(llvm::ArrayRef<LoopStep> steps);

private:
  LoopWait waitOf(const LoopStep &step) const;
  struct Touch {
    mlir::Value value;
    bool writes;
    const RowDomain *domain; ///< whose rows the warps share out; null for others
    int64_t begin, end;      ///< bytes of a slice, from the first of its part of the buffer
  };
  llvm::SmallVector<Touch> touchesOf(const LoopStep &step) const;
  LoopWait between(const Touch &earlier, const Touch &later) const;

  const LoopPlacement &places;
  llvm::SmallVector<Touch> touched;
};

} // namespace hydra::cuda
