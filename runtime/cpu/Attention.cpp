// Cuts attention into tasks by shape, and picks the build of the kernels for this CPU.
#include "runtime/cpu/Attention.h"

#include "runtime/cpu/AttentionKernels.h"
#include "runtime/support/Integers.h"

#include <type_traits>

using namespace hydra::runtime;
using hydra::support::ceilDiv;
using hydra::support::roundUp;

namespace {

const AttentionBuild &build() {
  static const AttentionBuild &best = []() -> const AttentionBuild & {
    if (__builtin_cpu_supports("x86-64-v4"))
      return v4::attentionBuild;
    if (__builtin_cpu_supports("x86-64-v3"))
      return v3::attentionBuild;
    return baseline::attentionBuild;
  }();
  return best;
}

template <typename T> const AttentionKernels<T> &kernels() {
  if constexpr (std::is_same_v<T, float>)
    return build().f32;
  else if constexpr (std::is_same_v<T, BF16>)
    return build().bf16;
  else
    return build().f16;
}

/// Calls fn(batch, head, block, worker) for all blocks of query rows. Blocks of one head alternate
/// between its ends, because the work of a causal block grows with its number.
template <typename Fn> void forQueryBlocks(const AttentionShape &shape, ThreadPool &pool, Fn fn) {
  const int64_t blocks = ceilDiv(shape.queries, attentionBlock(shape));
  pool.parallelFor(shape.batch * shape.heads * blocks, [&](int64_t task, unsigned worker) {
    const int64_t turn = task % blocks, headOfBatch = task / blocks;
    const int64_t block = turn % 2 == 0 ? turn / 2 : blocks - 1 - turn / 2;
    fn(headOfBatch / shape.heads, headOfBatch % shape.heads, block, worker);
  });
}

float *floats(const WorkerScratch &scratch, unsigned worker) {
  return reinterpret_cast<float *>(scratch.of(worker));
}

} // namespace

size_t hydra::runtime::attentionScratchBytes(const AttentionShape &shape) {
  // The backward's tiles; the forward's are fewer. Every piece is rounded to a cache line.
  const int64_t side = attentionBlock(shape), q = roundUp(shape.headDim, 16),
                v = roundUp(shape.valueDim, 16);
  return static_cast<size_t>(4 * side * (4 * q + 4 * v + 2 * side + 4));
}

template <typename T>
void hydra::runtime::attentionForward(const AttentionShape &shape,
                                      const AttentionForward<T> &tensors, ThreadPool &pool,
                                      const WorkerScratch &scratch) {
  forQueryBlocks(shape, pool, [&](int64_t batch, int64_t head, int64_t block, unsigned worker) {
    kernels<T>().forward(shape, tensors, batch, head, block, floats(scratch, worker));
  });
}

template <typename T>
void hydra::runtime::attentionBackward(const AttentionShape &shape,
                                       const AttentionBackward<T> &tensors, ThreadPool &pool,
                                       const WorkerScratch &scratch) {
  forQueryBlocks(shape, pool, [&](int64_t batch, int64_t head, int64_t block, unsigned) {
    kernels<T>().delta(shape, tensors, batch, head, block);
  });
  const int64_t parts = attentionBackwardParts(shape);
  pool.parallelFor(shape.batch * shape.kvHeads * parts, [&](int64_t task, unsigned worker) {
    const int64_t head = task / parts;
    kernels<T>().backward(shape, tensors, head / shape.kvHeads, head % shape.kvHeads, task % parts,
                          floats(scratch, worker));
  });
  if (!attentionPartsWriteDq(shape, std::is_same_v<T, float>)) {
    forQueryBlocks(shape, pool, [&](int64_t batch, int64_t head, int64_t block, unsigned) {
      kernels<T>().gather(shape, tensors, batch, head, block);
    });
  }
}

namespace hydra::runtime {
#define HYDRA_INSTANTIATE(T)                                                                       \
  template void attentionForward(const AttentionShape &, const AttentionForward<T> &,              \
                                 ThreadPool &, const WorkerScratch &);                             \
  template void attentionBackward(const AttentionShape &, const AttentionBackward<T> &,            \
                                  ThreadPool &, const WorkerScratch &);
HYDRA_INSTANTIATE(float)
HYDRA_INSTANTIATE(BF16)
HYDRA_INSTANTIATE(F16)
#undef HYDRA_INSTANTIATE
} // namespace hydra::runtime

const char *hydra::runtime::attentionLevel() { return build().level; }
