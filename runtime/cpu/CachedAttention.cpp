// Cuts cached attention into tasks by shape, and picks the build of the kernels for this CPU.
#include "runtime/cpu/CachedAttention.h"

#include "runtime/support/Integers.h"

#include <algorithm>
#include <type_traits>

using namespace hydra::runtime;
using hydra::support::ceilDiv;
using hydra::support::roundUp;

namespace {

const CachedAttentionBuild &build() {
  if (__builtin_cpu_supports("x86-64-v4"))
    return v4::cachedAttentionBuild;
  if (__builtin_cpu_supports("x86-64-v3"))
    return v3::cachedAttentionBuild;
  return baseline::cachedAttentionBuild;
}

template <typename T> const CachedAttentionKernels<T> &kernels() {
  static const CachedAttentionBuild &best = build();
  if constexpr (std::is_same_v<T, float>)
    return best.f32;
  else if constexpr (std::is_same_v<T, BF16>)
    return best.bf16;
  else
    return best.f16;
}

int64_t rowsOfHead(const CachedAttentionShape &shape) {
  return shape.calls * (shape.heads / shape.kvHeads);
}

} // namespace

int64_t hydra::runtime::cachedAttentionRows(const CachedAttentionShape &shape) {
  constexpr int64_t wantedTasks = 8;
  const int64_t perHead = ceilDiv(wantedTasks, shape.batch * shape.kvHeads);
  return std::min(cachedAttentionTile(shape), ceilDiv(rowsOfHead(shape), perHead));
}

size_t hydra::runtime::cachedAttentionScratchBytes(const CachedAttentionShape &shape) {
  const int64_t side = cachedAttentionTile(shape), q = roundUp(shape.headDim, 16),
                v = roundUp(shape.valueDim, 16);
  return static_cast<size_t>(4 * side * (2 * q + 2 * v + side + 2));
}

template <typename T>
void hydra::runtime::cachedAttention(const CachedAttentionShape &shape,
                                     const CachedAttentionTensors<T> &tensors, ThreadPool &pool,
                                     const WorkerScratch &scratch) {
  pool.parallelFor(shape.batch * shape.kvHeads, [&](int64_t task, unsigned) {
    kernels<T>().remember(shape, tensors, task / shape.kvHeads, task % shape.kvHeads);
  });
  const int64_t blocks = ceilDiv(rowsOfHead(shape), cachedAttentionRows(shape));
  pool.parallelFor(shape.batch * shape.kvHeads * blocks, [&](int64_t task, unsigned worker) {
    const int64_t head = task / blocks;
    kernels<T>().attend(shape, tensors, head / shape.kvHeads, head % shape.kvHeads, task % blocks,
                        reinterpret_cast<float *>(scratch.of(worker)));
  });
}

namespace hydra::runtime {
template void cachedAttention(const CachedAttentionShape &, const CachedAttentionTensors<float> &,
                              ThreadPool &, const WorkerScratch &);
template void cachedAttention(const CachedAttentionShape &, const CachedAttentionTensors<BF16> &,
                              ThreadPool &, const WorkerScratch &);
template void cachedAttention(const CachedAttentionShape &, const CachedAttentionTensors<F16> &,
                              ThreadPool &, const WorkerScratch &);
} // namespace hydra::runtime
