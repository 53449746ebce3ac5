// NVIDIA's compilers, looked up when they are used: a program made with them runs without them.
#pragma once

#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hydra::cuda {

/// Machine code and PTX of a CUDA C++ source for an architecture (`sm_90a`), by NVRTC. An error
/// when the library is missing or refuses.
struct CompiledSource {
  std::vector<uint8_t> cubin, ptx;
};
llvm::Expected<CompiledSource> compileSource(const std::string &source,
                                             const std::string &architecture);

/// What ptxas says of the kernels that these functions make of a text (AssemblerLog.h). An error
/// when the library is missing or refuses.
llvm::Expected<std::string> sourceLog(const std::string &source, const std::string &architecture);
llvm::Expected<std::string> assemblerLog(const std::string &ptx, const std::string &architecture);

/// What the two compilers are and which version, for code that is kept; empty where one is missing.
std::string sourceCompilerVersion();
std::string assemblerVersion();

/// Machine code of PTX, by nvJitLink; nullopt when the library is missing: a driver then compiles
/// the PTX when the plan is loaded.
llvm::Expected<std::optional<std::vector<uint8_t>>> assemble(const std::string &ptx,
                                                             const std::string &architecture);

} // namespace hydra::cuda
