// Code for all kernels of a plan.
#pragma once

#include "compiler/codegen/KernelResources.h"
#include "dialects/hydra/Hydra.h"
#include "dialects/plan/Plan.h"

#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
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
  bool early = false; ///< it waits itself for the kernels in front of it (Kernel in plan.fbs)
  std::optional<KernelResources> resources; ///< where they are asked for
};

struct CompiledKernels {
  std::vector<planfile::BlobT> blobs;   ///< empty without kernels
  llvm::StringMap<KernelCode> kernels;  ///< by name
  std::vector<std::string> cpuFeatures; ///< that the code needs
  std::vector<std::string> warnings;    ///< of an assembler, of no kernel alone; where asked for
};

planfile::BlobT blobOf(planfile::BlobKind kind, std::vector<uint8_t> data);

} // namespace hydra
