// Discrete Fourier transforms of real numbers on the CPU, by kissfft.
#pragma once

#include "runtime/calls/FftCall.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

#include <memory>

namespace hydra::runtime {

/// Transforms of all rows of a length, shared by the calls of a process: only read when they run.
class FftTables;

/// FftCall.h says what is computed. A row of n real numbers is one of n / 2 complex numbers, whose
/// transform the library computes (Press et al., Numerical Recipes, section 12.3); where n / 2 has
/// other prime factors than 2, 3 and 5, by transforms of a power of two, in n log n time too and
/// without memory that the library would take. Rows are tasks, so that values do not depend on
/// threads.
class Fft {
public:
  /// Throws Error for rows that are longer than the library counts.
  explicit Fft(const FftSpec &spec);

  size_t scratchBytesPerWorker() const;

  /// `from`, `to`: the arguments of the call, which do not overlap.
  void run(const float *from, float *to, ThreadPool &pool, const WorkerScratch &scratch) const;

private:
  FftSpec spec;
  std::shared_ptr<const FftTables> tables;
};

} // namespace hydra::runtime
