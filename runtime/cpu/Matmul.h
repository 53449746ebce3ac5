// Batched matrix product over strided tensors, by oneDNN.
#pragma once

#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"
#include "runtime/support/DType.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hydra::runtime {

/// A batch of matrices: element (b0, b1, ..., row, column) lies b0*batchStrides[0] + ... +
/// row*rowStride + column*columnStride elements after the first. One of the last two strides must
/// be 1 (a dimension of length 1 has no stride). A batch stride may be 0 for an input.
struct MatmulOperand {
  support::DType dtype = support::DType::F32;
  std::vector<int64_t> batchStrides;
  int64_t rowStride = 0;
  int64_t columnStride = 1;
};

/// Whether oneDNN has products of bf16 operands for this CPU.
bool hasBf16Products();

/// c[b] = a[b] @ b[b] (+ bias) (+ c[b]): a is m x k, b is k x n, c is m x n. Inputs f32 or bf16
/// (both alike), c f32 or bf16, sums in f32. The bias, n values of the type of c, is added to every
/// row.
struct MatmulSpec {
  std::vector<int64_t> batch; // dimensions before the last two; empty for one matrix
  int64_t m = 0, n = 0, k = 0;
  MatmulOperand a, b, c;
  bool hasBias = false;
  bool accumulate = false; // add to what c holds
  bool gelu = false;       // of the sums (GPUs only)
  bool savesSums = false;  // beside c, in its type and strides: what gelu was applied to
  /// Multiply blocks that are widened to f32 first, for bf16 where the CPU has nothing better.
  bool widen = !hasBf16Products();
};

/// A product that is ready to run: primitives are created once, and a run allocates nothing of
/// ours.
///
/// The output is cut into blocks by shape alone, and oneDNN computes each block on one thread
/// (OpenMP is told so), so the bits do not depend on the number of threads, and no OpenMP thread
/// ever exists beside the pool. Whole blocks run at the speed of oneDNN's own threading within the
/// noise: see test/unit/cpu/MatmulTest.cpp for the benchmark.
class Matmul {
public:
  /// Throws Error when the description is not one oneDNN has a fast implementation for.
  Matmul(const MatmulSpec &spec, unsigned threads);
  ~Matmul();
  Matmul(Matmul &&) noexcept;
  Matmul &operator=(Matmul &&) noexcept;

  size_t scratchBytesPerWorker() const;

  /// The bias may be null unless the description has one. The pool has at most `threads` threads.
  void run(const void *a, const void *b, const void *bias, void *c, ThreadPool &pool,
           const WorkerScratch &scratch) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime
