// What generated kernels are known by, on every target: a key that says all that one does, and a
// symbol made from it.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

#include <map>
#include <string>

namespace hydra::rows {

/// Adds `[1, 2]` to a key.
void addNumbers(std::string &key, llvm::ArrayRef<int64_t> numbers);

/// The key of a kernel that adds `parts` partial sums for each element of a result.
std::string combineKey(int64_t parts, llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<int64_t> strides, RowType type);

/// A symbol for a key: a hash of it, plus how often other keys had that symbol.
std::string symbolOf(llvm::StringRef key, uint64_t others);

/// Keeps a kernel, which has a `key`, by its symbol; equal keys are one kernel. The symbol.
template <typename Kernel>
std::string insertKernel(std::map<std::string, Kernel> &kernels, const Kernel &kernel) {
  for (uint64_t others = 0;; ++others) {
    std::string symbol = symbolOf(kernel.key, others);
    auto [entry, isNew] = kernels.try_emplace(symbol, kernel);
    if (isNew || entry->second.key == kernel.key)
      return symbol;
  }
}

} // namespace hydra::rows
