// All generated kernels of a plan for one processor, as one shared object.
#pragma once

#include "compiler/codegen/cpu/CpuTarget.h"
#include "compiler/codegen/files/CodeFiles.h"
#include "compiler/codegen/rows/RowProgram.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <mutex>

namespace hydra::cpu {

/// Element strides of a tensor, one for each dimension.
using Strides = llvm::SmallVector<int64_t>;

/// Object files of kernels by what they do, for a process that compiles many plans.
class ObjectCache {
public:
  /// Empty when there is none.
  std::vector<uint8_t> find(llvm::StringRef key);
  void insert(llvm::StringRef key, std::vector<uint8_t> object);

private:
  static constexpr size_t kMostBytes = size_t{256} << 20; ///< then it begins anew

  std::mutex lock;
  llvm::StringMap<std::vector<uint8_t>> objects;
  size_t bytes = 0;
};

/// Collects kernels; equal ones are compiled once. The bytes depend only on what was added and on
/// the target, not on the order of adding.
class CpuModule {
public:
  /// What `objects` or `files` know is not compiled; null: nothing is known to this process.
  explicit CpuModule(CpuTarget target, ObjectCache *objects = nullptr,
                     CodeFiles files = CodeFiles(CodeFolder{}))
      : target(std::move(target)), objects(objects), files(std::move(files)) {}

  /// The symbol of the kernel of a group whose rows come in grains of `grain`. `layouts`: of its
  /// inputs, then of its results that are not sums over rows. RowCodegen.h says what the function
  /// expects.
  std::string add(const RowProgram &program, llvm::ArrayRef<Strides> layouts, int64_t grain);

  /// The symbol of the kernel that adds `parts` partial sums for each element of a result of that
  /// shape. Its rows are these elements in row-major order.
  std::string addCombine(int64_t parts, llvm::ArrayRef<int64_t> shape, const Strides &strides,
                         RowType type);

  size_t size() const { return kernels.size(); }

  /// The shared object. It imports nothing.
  llvm::Expected<std::vector<uint8_t>> link() const;

private:
  struct Kernel {
    std::string key;
    RowProgram program; ///< of a group
    std::vector<Strides> layouts;
    int64_t grain = 0;
    int64_t parts = 0; ///< of a combination; 0 for a group
    llvm::SmallVector<int64_t> shape;
    RowType type = RowType::F32;
  };
  /// What the files have, or LLVM made.
  llvm::Expected<std::vector<uint8_t>> compile(const std::string &symbol,
                                               const Kernel &kernel) const;
  /// What the cache has, or compiled.
  llvm::Expected<std::vector<uint8_t>> object(const std::string &symbol,
                                              const Kernel &kernel) const;

  CpuTarget target;
  ObjectCache *objects;
  CodeFiles files;
  std::map<std::string, Kernel> kernels; ///< by symbol
};

} // namespace hydra::cpu
