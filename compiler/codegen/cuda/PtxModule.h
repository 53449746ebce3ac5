// All generated kernels of a plan for one GPU architecture, as PTX.
#pragma once

#include "compiler/codegen/cuda/RowKernel.h"
#include "compiler/codegen/files/CodeFiles.h"

#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace hydra::cuda {

/// Collects kernels; equal ones are compiled once. The text depends only on what was added and on
/// the architecture, not on the order of adding.
class PtxModule {
public:
  /// Such as `sm_90a`.
  /// `early`: kernels wait for those in front of them in their stream, and may be launched before
  /// these have ended.
  /// What `files` have is not compiled.
  PtxModule(std::string architecture, bool early, const RowThreads &threads, CodeFiles files)
      : architecture(std::move(architecture)), early(early), threads(threads),
        files(std::move(files)) {}

  /// The symbol of the kernel of a group; see `emitRowKernel`. With several `instances` it takes a
  /// table of so many lists of arguments (plan.fbs: Kernel).
  std::string add(const RowProgram &program, llvm::ArrayRef<Strides> layouts,
                  llvm::ArrayRef<int64_t> alignments, int64_t grain, int64_t counted = 0,
                  int64_t instances = 1);
  /// The symbol of the kernel that adds partial sums; see `emitCombine`.
  std::string addCombine(int64_t parts, llvm::ArrayRef<int64_t> shape, const Strides &strides,
                         RowType type, int64_t instances = 1);

  size_t size() const { return kernels.size(); }

  /// One PTX module; sets the shape of every launch.
  llvm::Expected<std::string> compile();
  LaunchShape shapeOf(const std::string &symbol) const { return kernels.at(symbol).shape; }

private:
  struct Kernel {
    std::string key;
    RowProgram program; ///< of a group
    std::vector<Strides> layouts;
    std::vector<int64_t> alignments;
    int64_t grain = 0, counted = 0;
    int64_t parts = 0; ///< of a combination; 0 for a group
    llvm::SmallVector<int64_t> resultShape;
    RowType type = RowType::F32;
    int64_t instances = 1;
    LaunchShape shape = {};
  };
  std::string insert(Kernel kernel, int64_t instances);
  llvm::Expected<std::string> compile(const std::string &symbol, Kernel &kernel) const;

  std::string architecture;
  bool early;
  RowThreads threads;
  CodeFiles files;
  std::map<std::string, Kernel> kernels; ///< by symbol
};

} // namespace hydra::cuda
