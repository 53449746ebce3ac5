// Code for all kernels of a plan.
#pragma once

#include "compiler/target/Target.h"
#include "dialects/plan/Plan.h"

#include "llvm/ADT/StringMap.h"

#include <filesystem>
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

namespace cpu {
class ObjectCache;
}

/// How code for a CPU is made.
struct CpuCode {
  /// Whether LLVM improves it or writes it as it was emitted, which takes a quarter of the time to
  /// compile, several times that to run, and computes the same bits.
  bool optimised = true;
  cpu::ObjectCache *objects = nullptr; ///< of plans compiled before; null: none
};

/// Compiles every `plan.kernel`: for a CPU to one shared object; for CUDA to machine code, with PTX
/// beside it (kept in the directory `cache` if that is not empty: cuda::KernelCache), once
/// `cuda::expandCalls` has replaced the calls that have templates. Equal input gives equal bytes.
llvm::FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module, const Target &target,
                                                const std::filesystem::path &cache = {},
                                                const CpuCode &code = {});

} // namespace hydra
