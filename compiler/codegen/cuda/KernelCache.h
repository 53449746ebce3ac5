// Compiled kernels on disk, found by what they were compiled from.
#pragma once

#include "compiler/codegen/cuda/CudaLibraries.h"

#include "llvm/ADT/StringRef.h"

#include <filesystem>

namespace hydra::cuda {

/// Keeps what NVIDIA's compilers made of a text. Equal texts for equal compilers give equal code,
/// so an entry is never out of date. An entry that cannot be read is compiled again, one that
/// cannot be written is not kept: a cache fails no compilation. Several processes may share a
/// directory.
class KernelCache {
public:
  /// An empty directory keeps nothing.
  explicit KernelCache(std::filesystem::path directory) : directory(std::move(directory)) {}

  /// `$XDG_CACHE_HOME/hydra`, or `~/.cache/hydra`; empty where there is no home.
  static std::filesystem::path defaultDirectory();

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
  std::filesystem::path fileOf(llvm::StringRef compiler, llvm::StringRef architecture,
                               llvm::StringRef text) const;
  std::optional<CompiledSource> read(const std::filesystem::path &file) const;
  void write(const std::filesystem::path &file, const CompiledSource &code) const;

  std::filesystem::path directory;
};

} // namespace hydra::cuda
