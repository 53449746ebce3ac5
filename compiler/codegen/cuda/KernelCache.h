// Compiled kernels on disk, found by what they were compiled from.
#pragma once

#include "compiler/codegen/cuda/CudaLibraries.h"
#include "compiler/codegen/files/CodeFiles.h"

namespace hydra::cuda {

/// Keeps what NVIDIA's compilers made of a text. Equal texts for equal compilers give equal code.
class KernelCache {
public:
  explicit KernelCache(CodeFolder folder) : files(std::move(folder)) {}

  /// As the functions of CudaLibraries.h.
  llvm::Expected<CompiledSource> compileSource(const std::string &source,
                                               const std::string &architecture) const;
  llvm::Expected<std::optional<std::vector<uint8_t>>>
  assemble(const std::string &ptx, const std::string &architecture) const;

  llvm::Expected<std::string> sourceLog(const std::string &source,
                                        const std::string &architecture) const;
  llvm::Expected<std::string> assemblerLog(const std::string &ptx,
                                           const std::string &architecture) const;

private:
  /// A log of a compiler, which has an entry of its own.
  llvm::Expected<std::string>
  log(const std::string &compiler, const std::string &text, const std::string &architecture,
      llvm::Expected<std::string> (*make)(const std::string &, const std::string &)) const;

  CodeFiles files;
};

} // namespace hydra::cuda
