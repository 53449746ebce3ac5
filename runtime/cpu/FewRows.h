// Few rows times a matrix, which is read once: what adds a token to a text.
#pragma once

#include "runtime/calls/MatmulCall.h"
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

namespace hydra::runtime {

/// c[m, n] = sum over k of a[m, k] w[n, k], plus bias[n]; rows are dense, strides in elements. Rows
/// of a are f32, with zeros behind k up to a multiple of 16.
struct FewRowsShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t strideA = 0, strideW = 0, strideC = 0;
};

/// Whether a matmul is one: one matrix of at most 16 rows in f32, bf16 or f16, whose weight lies as
/// a linear layer's does.
bool isFewRows(const MatmulSpec &spec);

/// What each build of FewRowsKernels.cpp gives: columns [begin, end) of c, of operands T and
/// results T or f32. The bias may be null.
template <typename T, typename C>
using FewRowsKernel = void (*)(const FewRowsShape &shape, const float *a, const T *w, const C *bias,
                               C *c, int64_t begin, int64_t end);

struct FewRowsBuild {
  FewRowsKernel<float, float> f32;
  FewRowsKernel<BF16, BF16> bf16;
  FewRowsKernel<BF16, float> bf16ToF32;
  FewRowsKernel<F16, F16> f16;
  FewRowsKernel<F16, float> f16ToF32;
};

namespace baseline {
extern const FewRowsBuild fewRowsBuild;
}
namespace v3 {
extern const FewRowsBuild fewRowsBuild;
}
namespace v4 {
extern const FewRowsBuild fewRowsBuild;
}

/// Columns of c are shared out by shape alone, and the sum of each is of 16 lanes, along k in
/// order, whatever rows are beside it: its bits depend on neither threads nor m.
class FewRows {
public:
  /// Of a matmul that is one.
  explicit FewRows(const MatmulSpec &spec);

  size_t scratchBytesPerWorker() const;

  void run(const void *a, const void *w, const void *bias, void *c, ThreadPool &pool,
           const WorkerScratch &scratch) const;

private:
  /// The rows of a as kernels take them: where they lie, or a copy.
  const float *widened(const void *a, const WorkerScratch &scratch) const;

  FewRowsShape shape;
  support::DType operands, results;
  int64_t givenStride = 0; ///< of a
  bool copied = false;     ///< a is
  int64_t columnsOfTask = 0;
};

} // namespace hydra::runtime
