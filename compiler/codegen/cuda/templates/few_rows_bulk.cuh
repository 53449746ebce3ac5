// Matmuls of a few rows, as few_rows.cuh has them, where the copy engine of a multiprocessor brings operands.
//
// A block of each multiprocessor has as many rows of w as any other, 16 at a time, which are the first operand of
// mma.sync; rows of a are its columns. A few warps start copies (cp.async.bulk) into a ring of stages, each a few
// hundred numbers of 16 rows of w and of all rows of a; others take parts of every stage. Their sums are joined in their order, those of
// integers by one more warp, while they go on. Copies run ahead across the block's rows, so memory never rests. In which order k is summed
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
// block. Limit: memory. Rows of w may be of int8 or Int4Bytes (W), as few_rows.cuh has them, which says what is assumed.

/// Of a that lies in memory.
struct GivenRows {
  template <typename T> __device__ __forceinline__ void operator()(T *) const {}
};

/// `PitchX`: elements between the rows that `compute`, called by the warps that multiply, writes; 0: a is given.
template <typename T, typename C, int M, int N, int K, int64 StrideA, int64 StrideW, int64 StrideC, int Depth,
          int Stages, bool Bias, int PitchX = 0, typename W, typename Compute = GivenRows, typename Scale = float>
__device__ __forceinline__ void fewRowsBulk(const T *a, const W *w, const C *bias, C *c, Compute compute = {},
                                            const Scale *scale = nullptr) {
  constexpr int warps = sizeof(W) == 1 ? 16 : 8; // integers take more instructions to multiply
  constexpr int rows = 16, columns = (M + 7) / 8, width = M | 1;
  constexpr int mine = Loaded<W>::numbers, parts = Loaded<W>::parts; // of a thread, as in few_rows.cuh
  constexpr bool joins = sizeof(W) == 1; // a warp of its own does
  constexpr int copiers = joins ? 3 : 4;
  constexpr int pairs = mine / 2 / parts, loads = pairs / 4;
  constexpr int rounds = (K + Depth - 1) / Depth;
  // Of rows: those that eight lanes read at a time meet all banks.
  constexpr int pitchW = bytesOf<W>(Depth) + 64, pitchA = Depth * int(sizeof(T)) + 64 / (loads * loads);
  constexpr bool given = PitchX == 0;
  constexpr int staged = given ? M : 0, stageBytes = rows * pitchW + staged * pitchA; // rows of a in a stage
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4;
  const int first = int(int64(N) * blockIdx.x / gridDim.x), end = int(int64(N) * (blockIdx.x + 1) / gridDim.x);
  const int tiles = (end - first + rows - 1) / rows;

  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ __align__(8) unsigned long long barriers[2 * Stages + 4];
  __shared__ float sums[2][warps][rows][width];
  const uint32 full = sharedAddress(barriers), empty = full + 8 * Stages, summed = empty + 8 * Stages,
               taken = summed + 16; // of a stage, and of one of the two places of sums
  if (threadIdx.x == 0) {
    for (int i = 0; i < Stages; ++i) {
      initBarrier(full + 8 * i, copiers);
      initBarrier(empty + 8 * i, warps);
    }
    for (int i = 0; i < 2; ++i) {
      initBarrier(summed + 8 * i, warps);
      initBarrier(taken + 8 * i, 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  auto joinSums = [&](int tile, int thread, int threads) {
    for (int i = thread; i < rows * M; i += threads) {
      const int n = i % rows, m = i / rows, row = first + tile * rows + n;
      if (row >= end)
        continue;
      float total = 0.0f;
#pragma unroll
      for (int p = 0; p < warps; ++p)
        total += sums[tile % 2][p][n][m];
      total = scaledSum<W>(total, scale, row);
      if (Bias)
        total += widen(bias[row]);
      assign(c[m * StrideC + row], total);
    }
  };
  if (joins && warp == warps + copiers) {
    waitForEarlier();
    for (int tile = 0; tile < tiles; ++tile) {
      waitFor(summed + 8 * (tile % 2), tile / 2 % 2);
      joinSums(tile, lane, 32);
      __syncwarp();
      if (lane == 0)
        arrive(taken + 8 * (tile % 2));
    }
    return;
  }
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
      const int count = min(rows, end - first - at.tile * rows), bytes = bytesOf<W>(numbersOf(at));
      const uint32 barrier = full + 8 * at.stage;
      const int ofW = (count - copier + copiers - 1) / copiers, ofA = (staged - copier + copiers - 1) / copiers;
      arriveExpecting(barrier, ofW * bytes + ofA * numbersOf(at) * int(sizeof(T)));
#pragma unroll
      for (int i = 0; i < rows; i += copiers)
        if (const int row = i + copier; row < count)
          copyBulk(sharedAddress(memory) + at.stage * stageBytes + row * pitchW,
                   behind(w + (first + at.tile * rows + row) * StrideW, at.round * Depth), bytes, barrier);
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
  constexpr int each = Depth / warps, pieces = (each + 4 * mine - 1) / (4 * mine); // of a stage, a warp
  const int own = warp * each + lane % 4 * mine; // the first number of a thread in a stage
  // Scales of the groups that a thread takes of a stage, asked for a stage before; where there are none, any others.
  struct Scales {
    uint32 low[pieces], high[pieces];
  };
  auto scalesOf = [&](int tile, int round) {
    Scales of;
    const int row = min(first + tile * rows + group, N - 1), after = min(row + 8, N - 1) - row;
    const Scale *ofRow = groupScales<W, K>(scale, row, round * Depth + own);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int k = K % Depth == 0 ? p * 4 * mine : min(p * 4 * mine, K - mine - round * Depth - own);
      of.low[p] = groupScale<W, K>(ofRow, 0, k);
      of.high[p] = groupScale<W, K>(ofRow, after, k);
    }
    return of;
  };
  Scales next = scalesOf(0, 0);
  int stage = 0;
  bool odd = false;
  for (int tile = 0; tile < tiles; ++tile) {
    float sum[columns][loads][4] = {};
    for (int round = 0; round < rounds; ++round) {
      const Scales scales = next;
      next = round + 1 < rounds ? scalesOf(tile, round + 1) : scalesOf(tile + 1, 0);
      waitFor(full + 8 * stage, odd);
      const unsigned char *of = memory + stage * stageBytes;
#pragma unroll
      for (int piece = 0; piece < each; piece += 4 * mine) {
        const int k = own + piece;
        if (K % Depth != 0 && round * Depth + warp * each + piece >= K)
          break;
        const bool exists = K % (4 * mine) == 0 || round * Depth + k < K;
        auto at = [&](const void *from) { return exists ? *reinterpret_cast<const uint4 *>(from) : uint4{}; };
        const uint4 ofLow = at(of + group * pitchW + bytesOf<W>(k)),
                    ofHigh = at(of + (8 + group) * pitchW + bytesOf<W>(k));
#pragma unroll
        for (int part = 0; part < parts; ++part) {
          uint32 low[pairs], high[pairs];
          pairsOf<T>(w, ofLow, part, scales.low[piece / (4 * mine)], low);
          pairsOf<T>(w, ofHigh, part, scales.high[piece / (4 * mine)], high);
#pragma unroll
          for (int j = 0; j < columns; ++j) {
            const int r = min(j * 8 + group, M - 1); // of those that there are not, nothing is taken
            const T *row = given ? reinterpret_cast<const T *>(of + rows * pitchW + r * pitchA) + k
                                 : x + r * PitchX + round * Depth + k;
            uint4 numbers[loads];
#pragma unroll
            for (int l = 0; l < loads; ++l)
              numbers[l] = at(row + 8 * (part * loads + l));
            multiplyPairs<T>(sum[j], low, high, numbers);
          }
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
    if (joins)
      waitFor(taken + 8 * (tile % 2), tile / 2 % 2 == 0);
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int x = 0; x < 4; ++x)
        if (const int m = j * 8 + lane % 4 * 2 + x % 2; m < M)
          sums[tile % 2][warp][x / 2 * 8 + group][m] = joined(sum[j], x);
    if (joins) {
      __syncwarp();
      if (lane == 0)
        arrive(summed + 8 * (tile % 2));
    } else {
      asm volatile("bar.sync 1, %0;" ::"n"(warps * 32) : "memory");
      joinSums(tile, threadIdx.x, warps * 32);
    }
  }
}
