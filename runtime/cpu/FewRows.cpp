// Cuts few rows times a matrix into tasks by shape, and picks the build of the kernels for this
// CPU.
#include "runtime/cpu/FewRows.h"

#include "runtime/support/Integers.h"

#include <algorithm>

using namespace hydra::runtime;
using hydra::support::DType;

namespace {

constexpr int64_t kLanes = 16;
/// Of bf16 the library multiplies more rows faster, where the CPU has matmuls of bf16: a 124M
/// GPT-2 adds a token to each of 8 texts in 23 ms by both, to each of 16 in 43 ms by a sweep and in
/// 30 ms by oneDNN.
constexpr int64_t kMostBf16Rows = 8;

static_assert(hydra::support::kMostInt8Rows <= mostFewRows);

const FewRowsBuild &build() {
  if (__builtin_cpu_supports("x86-64-v4"))
    return v4::fewRowsBuild;
  if (__builtin_cpu_supports("x86-64-v3"))
    return v3::fewRowsBuild;
  return baseline::fewRowsBuild;
}

} // namespace

bool hydra::runtime::isFewRows(const MatmulSpec &spec) {
  const bool one = std::ranges::all_of(spec.batch, [](int64_t size) { return size == 1; });
  const bool floats =
      spec.a.dtype == DType::F32 || spec.a.dtype == DType::BF16 || spec.a.dtype == DType::F16;
  if (spec.hasWeightScale)
    return true; // describeMatmul takes no others
  const int64_t most = spec.a.dtype == DType::BF16 && !spec.widen ? kMostBf16Rows : mostFewRows;
  return one && floats && spec.m <= most && !spec.accumulate && !spec.gelu && !spec.tf32;
}

FewRows::FewRows(const MatmulSpec &spec)
    : shape{spec.m,
            spec.n,
            spec.k,
            {spec.a.rowStride, spec.a.columnStride},
            {spec.b.rowStride, spec.b.columnStride},
            {spec.c.rowStride, spec.c.columnStride}},
      rows(spec.a.dtype), matrix(spec.b.dtype), results(spec.c.dtype), givenA(shape.a),
      alongSums(spec.k == 1 || spec.b.rowStride == 1), packed(spec.packed) {
  if (packed)
    shape.b.column /= 2;
  copied = rows != DType::F32 || (alongSums && (spec.k % kLanes != 0 || spec.a.columnStride != 1));
  if (copied)
    shape.a = {support::roundUp(spec.k, kLanes), 1};
  // A task reads for some microseconds: as long as it takes to start one.
  constexpr int64_t bytesOfTask = 32 << 10, unit = 16;
  const int64_t column =
      packed ? spec.k / 2 : spec.k * static_cast<int64_t>(support::byteSize(matrix));
  columnsOfTask = (bytesOfTask / column + unit) / unit * unit;
}

size_t FewRows::scratchBytesPerWorker() const {
  return copied ? static_cast<size_t>(shape.m * shape.a.row) * sizeof(float) : 0;
}

const float *FewRows::widened(const void *a, const WorkerScratch &scratch) const {
  if (!copied)
    return static_cast<const float *>(a);
  auto *wide = reinterpret_cast<float *>(scratch.of(0));
  for (int64_t i = 0; i < shape.m; ++i) {
    float *to = wide + i * shape.a.row;
    const auto copy = [&](auto *from, auto widen) {
      for (int64_t k = 0; k < shape.k; ++k)
        to[k] = widen(from[i * givenA.row + k * givenA.column]);
    };
    if (rows == DType::F32)
      copy(static_cast<const float *>(a), [](float x) { return x; });
    else if (rows == DType::BF16)
      copy(static_cast<const uint16_t *>(a), support::bf16ToFloat);
    else
      copy(static_cast<const uint16_t *>(a), support::f16ToFloat);
    std::fill(to + shape.k, to + shape.a.row, 0.0F);
  }
  return wide;
}

void FewRows::run(const void *a, const void *b, const void *bias, const void *scale, void *c,
                  ThreadPool &pool, const WorkerScratch &scratch) const {
  static const FewRowsBuild &best = build();
  const float *given = widened(a, scratch);
  const auto share = [&]<typename T, typename C>(const FewRowsKernels<T, C> &kernels) {
    const FewRowsKernel<T, C> kernel = alongSums ? kernels.alongSums : kernels.acrossSums;
    const int64_t tasks = support::ceilDiv(shape.n, columnsOfTask);
    pool.parallelFor(tasks, [&](int64_t task, unsigned) {
      kernel(shape, given, static_cast<const T *>(b), static_cast<const C *>(bias),
             static_cast<const typename FewRowsScale<T>::Type *>(scale), static_cast<C *>(c),
             task * columnsOfTask, std::min(shape.n, (task + 1) * columnsOfTask));
    });
  };
  const bool wide = results == DType::F32;
  if (packed)
    wide                     ? share(best.int4ToF32)
    : results == DType::BF16 ? share(best.int4ToBf16)
                             : share(best.int4ToF16);
  else if (matrix == DType::I8)
    wide                     ? share(best.int8ToF32)
    : results == DType::BF16 ? share(best.int8ToBf16)
                             : share(best.int8ToF16);
  else if (matrix == DType::F32)
    share(best.f32);
  else if (matrix == DType::BF16)
    wide ? share(best.bf16ToF32) : share(best.bf16);
  else
    wide ? share(best.f16ToF32) : share(best.f16);
}
