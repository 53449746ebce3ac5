// Batched matmul over strided tensors, by oneDNN.
#pragma once

#include "runtime/calls/MatmulCall.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

#include <cstddef>
#include <memory>

namespace hydra::runtime {

/// Whether oneDNN has matmuls of bf16 operands for this CPU.
bool hasBf16Matmuls();

/// A matmul that is ready to run: primitives are created once, and a run allocates nothing of
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

  /// The same in parts, which workers may run in any order: of tasks 0 to tasks() - 1 each writes a
  /// block of c.
  int64_t tasks() const;
  void runTask(int64_t task, unsigned worker, const void *a, const void *b, const void *bias,
               void *c, const WorkerScratch &scratch) const;

  /// Of a description with scales: those of this call, before its tasks run, which read them.
  void setScales(const float *a, const float *b);

  /// The bias may be null unless the description has one. The pool has at most `threads` threads.
  void run(const void *a, const void *b, const void *bias, void *c, ThreadPool &pool,
           const WorkerScratch &scratch) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime
