// The largest numbers that a group of update_hopper.cuh finds: each of a run of numbers that lie one behind the other, in
// rows that several tiles share.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace hopper_update {

/// Numbers in an order of u32, all above 0, and a NaN as `larger` gives it above all.
__device__ __forceinline__ uint32 keyOf(float x) {
  const uint32 bits = __float_as_uint(x);
  return bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ __forceinline__ float ofKey(uint32 key) {
  return __uint_as_float(key >> 31 ? key & ~(1u << 31) : ~key);
}

template <int N> __device__ __forceinline__ void clearLargest(float (&most)[2][N]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    most[0][i] = most[1][i] = -INFINITY;
}

/// The largest numbers of half a tile, of the thread's two rows there, for the warp that gives them: those of the piece at
/// `column`, or of all pieces, at 0.
template <bool PairedRows, typename Tensors, typename Block>
__device__ __forceinline__ void leaveLargest(const Block &block, int group, const float (&most)[2][Tensors::mosts + 1],
                                             int half, int column) {
#pragma unroll
  for (int i = 0; i < Tensors::mosts; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float x = most[j][i];
      x = larger(x, __shfl_xor_sync(~0u, x, 1));
      x = larger(x, __shfl_xor_sync(~0u, x, 2));
      const int row = half * kPieceRows + rowOfSums<PairedRows>(threadIdx.x % 32 / 4, j);
      if (threadIdx.x % 4 == 0)
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(block.most(group, i, row) + column / kPieceColumns * 4),
                     "f"(x)
                     : "memory");
    }
}

/// Whether each row of a tile lies in one run.
template <int Columns, int Width, int Run> constexpr bool kIsWithinRun = Columns % Run == 0 && Run % Width == 0;

/// Adds one to a counter; how many others had. What all lanes have done before it is seen by who comes last.
__device__ __forceinline__ uint32 countUp(uint32 *count) {
  uint32 others = 0;
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(others) : "l"(count) : "memory");
  __syncwarp();
  return __shfl_sync(~0u, others, 0);
}

/// The warp that gives the largest numbers: it adds those of a tile to those of others, and of all tiles that share runs the
/// last gives them, and leaves zeros.
template <int Rows, int Columns, int Width, typename Block, typename Tensors>
__device__ __forceinline__ void giveLargest(const Block &block, const Tensors &tensors) {
  using Tiles = Tiles<Rows, Columns, Width>;
  constexpr bool isWithinRun = kIsWithinRun<Columns, Width, Tensors::run>;
  // Tiles that share runs: those of as many columns.
  constexpr int runs = int(int64(Rows) * Columns / Tensors::run), shared = isWithinRun ? Tensors::run : Columns,
                segments = isWithinRun ? 1 : Block::segments, together = 4;
  const int lane = threadIdx.x % 32;
  const auto runOf = [](int row, int column) { return int((int64(row) * Columns + column) / Tensors::run); };
  int turn = 0;
  for (int number = blockIdx.x; number < Tiles::count; number += gridDim.x, ++turn) {
    const Tiles tile(number);
    const int group = turn % kGroups, end = min(Rows, tile.row + kHeight);
    waitFor(block.found(group), turn / kGroups & 1);
#pragma unroll
    for (int i = 0; i < Tensors::mosts; ++i)
      for (int row = lane; tile.row + row < end; row += 32) {
        uint32 *to = tensors.found + i * runs;
        float most = -INFINITY;
#pragma unroll
        for (int segment = 0; segment < segments; ++segment) {
          const int column = tile.column + segment * kPieceColumns;
          if (column >= Columns)
            break;
          float x;
          asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(block.most(group, i, row) + segment * 4) : "memory");
          most = larger(most, x);
          const int run = runOf(tile.row + row, column);
          if (segment + 1 == segments || column + kPieceColumns >= Columns ||
              runOf(tile.row + row, column + kPieceColumns) != run) {
            atomicMax(to + run, keyOf(most));
            most = -INFINITY;
          }
        }
      }
    arrive(block.taken(group));
    const int begin = tile.column / shared * shared;
    uint32 *count = tensors.counts + tile.row / kHeight * Tiles::width + begin / Width;
    if (countUp(count) + 1 < (shared + Width - 1) / Width)
      continue;
#pragma unroll 1
    for (int first = tile.row; first < end; first += kPieceRows) { // parts begin at such rows
      const int part = tensors.partOf(first), before = runOf(tensors.begin(part), 0),
                behind = min(end, first + kPieceRows);
      const auto placeOf = [&](int i) { return isWithinRun ? runOf(first + i, begin) : runOf(first, 0) + i; };
      const int given = isWithinRun ? behind - first : runOf(behind, 0) - runOf(first, 0);
#pragma unroll
      for (int i = 0; i < Tensors::mosts; ++i) {
        auto *to = tensors.most[0][i];
#pragma unroll
        for (int p = 1; p < Tensors::parts; ++p)
          to = part == p ? tensors.most[p][i] : to;
        uint32 *from = tensors.found + i * runs;
#pragma unroll 1
        for (int at = lane; at < given; at += 32 * together) {
          uint32 keys[together];
#pragma unroll
          for (int j = 0; j < together; ++j)
            keys[j] = at + 32 * j < given ? __ldcg(from + placeOf(at + 32 * j)) : 0;
#pragma unroll
          for (int j = 0; j < together; ++j)
            if (const int run = placeOf(at + 32 * j); at + 32 * j < given) {
              assign(to[run - before], ofKey(keys[j]));
              from[run] = 0;
            }
        }
      }
    }
    if (lane == 0)
      *count = 0;
  }
}

} // namespace hopper_update

#endif // __CUDA_ARCH_FEAT_SM90_ALL
