// Compiles row programs, loads the shared object without LLVM as a runtime would, and runs it.
#pragma once

#include "compiler/codegen/cpu/CpuModule.h"
#include "test/unit/codegen/RowReference.h"

#include <memory>

namespace hydra::test {

using KernelFunction = void (*)(char *const *args, int64_t begin, int64_t end);

/// A shared object in memory.
class LoadedCode {
public:
  explicit LoadedCode(const std::vector<uint8_t> &bytes);
  ~LoadedCode();
  LoadedCode(const LoadedCode &) = delete;
  LoadedCode &operator=(const LoadedCode &) = delete;
  KernelFunction function(const std::string &symbol) const;

private:
  void *handle;
};

/// The target that tests compile for: HYDRA_TEST_TARGET or the host.
cpu::CpuTarget testTarget();

/// Row-major strides.
cpu::Strides denseStrides(llvm::ArrayRef<int64_t> shape);

/// Elements of a type under strides, with a guard before and after that must stay as it is.
class TypedTensor {
public:
  TypedTensor(llvm::ArrayRef<int64_t> shape, cpu::Strides strides, RowType type);
  void fill(const Numbers &numbers);
  Numbers read() const;
  char *data() { return bytes.data() + guard; }
  const cpu::Strides &layout() const { return strides; }
  RowType elementType() const { return type; }
  /// Whether nothing was written outside of the elements (gaps between them included).
  bool guardsHold() const;

private:
  static constexpr size_t guard = 256;
  template <typename Visit> void forEachOffset(Visit visit) const;

  llvm::SmallVector<int64_t> shape;
  cpu::Strides strides;
  RowType type;
  std::vector<char> bytes, isElement;
};

/// What to run beside the program itself.
struct RunOptions {
  std::vector<cpu::Strides> inputLayouts, resultLayouts; ///< empty entries: dense
  std::vector<int> inPlace;    ///< by result: the input whose tensor it takes over, or -1
  int64_t grain = 0;           ///< 0: about seven grains
  bool backwards = false;      ///< grains in descending order
};

/// Runs a program on inputs; sums over rows include their combination.
std::vector<Numbers> runKernel(const RowProgram &program, const std::vector<Numbers> &inputs,
                               const RunOptions &options = {});

/// Random numbers that fit the inputs of a program: normal for numbers, in [0, limit) for integers.
std::vector<Numbers> randomInputs(const RowProgram &program, uint64_t seed, int64_t limit = 2);

/// Runs it and holds every result against float64 within twice the error of the rounded evaluation.
void expectMatches(const RowProgram &program, const std::vector<Numbers> &inputs,
                   const RunOptions &options = {});

} // namespace hydra::test
