// Compiles row programs, loads the shared object without LLVM as a runtime would, and runs it.
#pragma once

#include "compiler/codegen/cpu/CpuModule.h"
#include "test/unit/codegen/RowReference.h"

#include <memory>

namespace hydra::test {

/// The target that tests compile for: HYDRA_TEST_TARGET or the host.
cpu::CpuTarget testTarget();

/// Row-major strides.
cpu::Strides denseStrides(llvm::ArrayRef<int64_t> shape);

/// Elements of a type under strides. The last one ends at a page that cannot be read; before the
/// first and between them lie bytes that must stay as they are.
class TypedTensor {
public:
  TypedTensor(llvm::ArrayRef<int64_t> shape, cpu::Strides strides, RowType type);
  ~TypedTensor();
  TypedTensor(const TypedTensor &) = delete;
  TypedTensor &operator=(const TypedTensor &) = delete;
  void fill(const Numbers &numbers);
  Numbers read() const;
  char *data() { return bytes + first; }
  const cpu::Strides &layout() const { return strides; }
  RowType elementType() const { return type; }
  /// Whether nothing was written outside of the elements.
  bool guardsHold() const;

private:
  template <typename Visit> void forEachOffset(Visit visit) const;

  llvm::SmallVector<int64_t> shape;
  cpu::Strides strides;
  RowType type;
  char *bytes;
  size_t size, first; ///< readable bytes, and where the first element is
  std::vector<char> isElement;
};

/// What to run beside the program itself.
struct RunOptions {
  std::vector<cpu::Strides> inputLayouts = {}, resultLayouts = {}; ///< empty entries: dense
  std::vector<int> inPlace = {}; ///< by result: the input whose tensor it takes over, or -1
  int64_t grain = 0;             ///< 0: about seven grains
  bool backwards = false;        ///< grains in descending order
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
