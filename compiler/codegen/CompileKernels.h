// Native code for all kernels of a plan.
#pragma once

#include "dialects/plan/Plan.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace hydra {

struct CompiledKernels {
  std::vector<uint8_t> code;             ///< a shared object; empty without kernels
  llvm::StringMap<std::string> symbols;  ///< kernel name to symbol
  std::vector<std::string> cpuFeatures;  ///< that the code needs
};

/// Compiles every `plan.kernel` for a CPU: `host` (this machine), `x86-64-v3`, `x86-64-v4`.
/// Equal input gives equal bytes.
llvm::FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module,
                                                llvm::StringRef target);

} // namespace hydra
