// Code for all kernels of a plan, and what code generators ask of a kernel.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/plan/Plan.h"

#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace hydra {

/// Where the code of one kernel is, and on CUDA how it is launched.
struct KernelCode {
  std::string symbol;
  uint32_t blob = 0;
  int32_t ptx = -1; ///< the blob that a driver compiles where the other does not fit
  planfile::Dim3 grid, block;
  uint32_t sharedBytes = 0;
};

struct CompiledKernels {
  std::vector<planfile::BlobT> blobs;   ///< empty without kernels
  llvm::StringMap<KernelCode> kernels;  ///< by name
  std::vector<std::string> cpuFeatures; ///< that the code needs
};

/// The tensors that a kernel's code addresses by their strides: all but partial sums.
size_t stridedTensors(FusedOp group);

/// Strides of the first `count` tensors of a kernel.
std::vector<llvm::SmallVector<int64_t>> stridesOf(plan::KernelOp kernel, size_t count);

/// What a kernel that adds partial sums writes.
mlir::MemRefType combinedType(plan::KernelOp kernel);

planfile::BlobT blobOf(planfile::BlobKind kind, std::vector<uint8_t> data);

} // namespace hydra
