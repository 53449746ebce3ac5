// Matmuls of a few rows, as few_rows.cuh has them, where the copy engine of a multiprocessor brings operands.
//
// A block of each multiprocessor has as many rows of w as any other, 16 at a time, which are the first operand of
// mma.sync; rows of a are its columns. One warp starts copies (cp.async.bulk) into a ring of stages, each a few
// hundred numbers of 16 rows of w and of all rows of a; the others take parts of every stage. Their sums are joined
// in their order. Copies run ahead across the block's rows, so memory never rests. In which order k is summed
// does not matter, if both operands have the same: the 16 bytes that a thread reads are parts of two instructions.
//
// Nothing changes w, so the first stages do not wait for the kernels in front of this one; no more than two of them, since
// blocks of those kernels still read from memory. The ring takes most of a multiprocessor, or of integers half of it, so
// blocks of the next such kernel begin where blocks of this one have ended: one on each.
//
// Rows of a may also be computed: each block does it for itself, once, while the ring fills, and keeps them behind it. That
// is a launch less, and what w waits for is as far away as what a would be made of.
//
// Traffic: w once, a once for each 16 rows of w (from the second cache), or what it is computed from once for each
// block. Limit: memory. Rows of w may be of int8 (W), as few_rows.cuh has them, which says what is assumed.

/// Of a that lies in memory.
struct GivenRows {
  template <typename T> __device__ __forceinline__ void operator()(T *) const {}
};

/// `PitchX`: elements between the rows that `compute`, called by all warps but those that copy, writes; 0: a is given.
template <typename T, typename C, int M, int N, int K, int64 StrideA, int64 StrideW, int64 StrideC, int Depth,
          int Stages, bool Bias, int PitchX = 0, typename W, typename Compute = GivenRows>
__device__ __forceinline__ void fewRowsBulk(const T *a, const W *w, const C *bias, C *c, Compute compute = {},
                                            const float *scale = nullptr) {
  constexpr int warps = sizeof(W) == 1 ? 16 : 8; // integers take more instructions to multiply
  constexpr int copiers = 4, rows = 16, columns = (M + 7) / 8, width = M | 1;
  constexpr int mine = 16 / int(sizeof(W)), pairs = mine / 2, loads = pairs / 4; // of a thread, as in few_rows.cuh
  constexpr int rounds = (K + Depth - 1) / Depth;
  // Of rows: those that eight lanes read at a time meet all banks.
  constexpr int pitchW = Depth * int(sizeof(W)) + 64, pitchA = Depth * int(sizeof(T)) + 64 / (loads * loads);
  constexpr bool given = PitchX == 0;
  constexpr int staged = given ? M : 0, stageBytes = rows * pitchW + staged * pitchA; // rows of a in a stage
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4;
  const int first = int(int64(N) * blockIdx.x / gridDim.x), end = int(int64(N) * (blockIdx.x + 1) / gridDim.x);
  const int tiles = (end - first + rows - 1) / rows;

  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ __align__(8) unsigned long long barriers[2 * Stages];
  __shared__ float sums[2][warps][rows][width];
  const uint32 full = sharedAddress(barriers), empty = full + 8 * Stages;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Stages; ++i) {
      initBarrier(full + 8 * i, copiers);
      initBarrier(empty + 8 * i, warps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (warp >= warps) { // copies, by one lane: more would take turns
    if (lane != 0)
      return;
    const int copier = warp - warps;
    struct Place {
      int tile = 0, round = 0, stage = 0;
      bool odd = false; // how often the ring has been around
      __device__ __forceinline__ void next() {
        if (++stage == Stages) {
          stage = 0;
          odd = !odd;
        }
        if (++round == rounds) {
          round = 0;
          ++tile;
        }
      }
    };
    auto numbersOf = [&](const Place &at) { return min(Depth, K - at.round * Depth); };
    auto copyW = [&](const Place &at) {
      const int count = min(rows, end - first - at.tile * rows), bytes = numbersOf(at) * int(sizeof(W));
      const uint32 barrier = full + 8 * at.stage;
      const int ofW = (count - copier + copiers - 1) / copiers, ofA = (staged - copier + copiers - 1) / copiers;
      arriveExpecting(barrier, ofW * bytes + ofA * numbersOf(at) * int(sizeof(T)));
#pragma unroll
      for (int i = 0; i < rows; i += copiers)
        if (const int row = i + copier; row < count)
          copyBulk(sharedAddress(memory) + at.stage * stageBytes + row * pitchW,
                   w + (first + at.tile * rows + row) * StrideW + at.round * Depth, bytes, barrier);
    };
    auto copyA = [&](const Place &at) {
#pragma unroll
      for (int i = 0; i < staged; i += copiers)
        if (const int row = i + copier; row < staged)
          copyBulk(sharedAddress(memory) + at.stage * stageBytes + rows * pitchW + row * pitchA,
                   a + row * StrideA + at.round * Depth, numbersOf(at) * int(sizeof(T)), full + 8 * at.stage);
    };
    Place w0, a0;
    constexpr int early = Stages < 2 ? Stages : 2;
    for (int i = 0; i < early && w0.tile < tiles; ++i, w0.next())
      copyW(w0);
    if (given || early < Stages)
      waitForEarlier();
    for (int i = early; i < Stages && w0.tile < tiles; ++i, w0.next())
      copyW(w0);
    for (int i = 0; i < Stages && a0.tile < tiles; ++i, a0.next())
      copyA(a0);
    while (a0.tile < tiles) {
      waitFor(empty + 8 * a0.stage, !a0.odd);
      copyW(a0);
      copyA(a0);
      a0.next();
    }
    return;
  }

  waitForEarlier();
  T *x = reinterpret_cast<T *>(memory + Stages * stageBytes);
  if (!given) {
    compute(x);
    asm volatile("bar.sync 1, %0;" ::"n"(warps * 32) : "memory");
  }
  constexpr int each = Depth / warps; // of a stage, a warp
  int stage = 0;
  bool odd = false;
  for (int tile = 0; tile < tiles; ++tile) {
    float sum[columns][loads][4] = {};
    for (int round = 0; round < rounds; ++round) {
      waitFor(full + 8 * stage, odd);
      const unsigned char *of = memory + stage * stageBytes;
#pragma unroll
      for (int piece = 0; piece < each; piece += 4 * mine) {
        const int k = warp * each + piece + lane % 4 * mine;
        if (K % Depth != 0 && round * Depth + warp * each + piece >= K)
          break;
        const bool exists = K % (4 * mine) == 0 || round * Depth + k < K;
        auto at = [&](const void *from, bool is) {
          return is && exists ? *reinterpret_cast<const uint4 *>(from) : uint4{};
        };
        uint32 low[pairs], high[pairs];
        pairsOf<T>(w, at(of + group * pitchW + k * int(sizeof(W)), true), low);
        pairsOf<T>(w, at(of + (8 + group) * pitchW + k * int(sizeof(W)), true), high);
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          const int r = j * 8 + group;
          const T *row = given ? reinterpret_cast<const T *>(of + rows * pitchW + r * pitchA) + k
                               : x + r * PitchX + round * Depth + k;
          uint4 numbers[loads];
#pragma unroll
          for (int l = 0; l < loads; ++l)
            numbers[l] = at(row + 8 * l, r < M);
          multiplyPairs<T>(sum[j], low, high, numbers);
        }
      }
      __syncwarp();
      if (lane == 0)
        arrive(empty + 8 * stage);
      if (++stage == Stages) {
        stage = 0;
        odd = !odd;
      }
    }
    float(*parts)[rows][width] = sums[tile % 2];
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int x = 0; x < 4; ++x)
        if (const int m = j * 8 + lane % 4 * 2 + x % 2; m < M)
          parts[warp][x / 2 * 8 + group][m] = joined(sum[j], x);
    asm volatile("bar.sync 1, %0;" ::"n"(warps * 32) : "memory");
    for (int i = threadIdx.x; i < rows * M; i += warps * 32) {
      const int n = i % rows, m = i / rows, row = first + tile * rows + n;
      if (row >= end)
        continue;
      float total = 0.0f;
#pragma unroll
      for (int p = 0; p < warps; ++p)
        total += parts[p][n][m];
      if (sizeof(W) == 1)
        total *= scale[row];
      if (Bias)
        total += widen(bias[row]);
      assign(c[m * StrideC + row], total);
    }
  }
}
