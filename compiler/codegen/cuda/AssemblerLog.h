// What ptxas says with -v: what functions take, and warnings.
#pragma once

#include "compiler/codegen/KernelResources.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace hydra::cuda {

struct AssemblerLog {
  llvm::StringMap<KernelResources> kernels; ///< by symbol; without functions that kernels call
  /// Of no kernel alone; of functions that kernels call, also that they spill.
  std::vector<std::string> warnings;
};

/// Reads a log of NVRTC, nvJitLink or ptxas. Warnings are what it says beside resources: lines of
/// the kind `warning`, and those with a code, `(C7510) Potential Performance Loss: …`.
AssemblerLog readAssemblerLog(llvm::StringRef log);

} // namespace hydra::cuda
