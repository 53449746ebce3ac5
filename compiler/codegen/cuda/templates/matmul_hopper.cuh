// Matmuls by Hopper's warpgroups, of operands that the copy engine brings (cp.async.bulk.tensor).
//
// c = a b of 16-bit numbers, summed in rising order of k, in f32. A tile is 128 rows and `Width` columns of c. As
// many blocks as there are multiprocessors take tiles in turn: one warp has the engine fill a ring of stages, 64
// of k each, and runs ahead into the next tile; two warpgroups have 64 rows of the tile each, in registers, and
// multiply what the ring has (wgmma, both operands in shared memory). Either operand may have k along its rows or
// along its columns. What lies outside of an operand is zero: the engine fills it in, so every size will do
// whose rows are of 16-byte pieces. Every sum has one order, whichever block does it.
//
// The engine knows a matrix by a map of 128 bytes (tensormap), which a block writes for itself, into memory that
// nobody else uses: of a group of rows that only the device knows, too, and no address has to be known before.
//
// Traffic: a tile reads (128 + Width) K numbers, from the second cache where tiles that run together share them:
// `Band` tiles of rows go through all columns before the next. Limit: wgmma.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace hopper_matmul {

constexpr int kGroups = 2, kHeight = kGroups * kTile, kDepth = 64, kThreads = 128 * (kGroups + 1);

//===-- Matmuls of many columns ----------------------------------------------------------------===//

#define HYDRA_L72 HYDRA_L64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define HYDRA_L80 HYDRA_L72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define HYDRA_L88 HYDRA_L80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define HYDRA_L96 HYDRA_L88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define HYDRA_L104 HYDRA_L96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define HYDRA_L112 HYDRA_L104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define HYDRA_L120 HYDRA_L112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define HYDRA_L128 HYDRA_L120 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define HYDRA_O96(how) HYDRA_O64(how), HYDRA_O8(how, 16), HYDRA_O8(how, 18), HYDRA_O8(how, 20), HYDRA_O8(how, 22)
#define HYDRA_O128(how) HYDRA_O96(how), HYDRA_O8(how, 24), HYDRA_O8(how, 26), HYDRA_O8(how, 28), HYDRA_O8(how, 30)

/// c[64 x N] = a b, or c += a b where `add`: sixteen of k, along rows of an operand or (`BySum`) its columns.
template <typename T, int N, bool ABySum, bool BBySum> struct WideMatmul;
#define HYDRA_WIDE_MATMUL(T, N, LIST, OUTPUTS, x0, x1, x2, A, B)                                                  \
  template <> struct WideMatmul<T, N, A, B> {                                                                    \
    static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64 a, uint64 b, int add) {              \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #x2 ", 0;\n"                                             \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "                    \
                   "%" #x0 ", %" #x1 ", p, 1, 1, " #A ", " #B ";\n}"                                             \
                   : OUTPUTS("+f")                                                                               \
                   : "l"(a), "l"(b), "r"(add));                                                                  \
    }                                                                                                            \
  };
#define HYDRA_WIDE_MATMULS(T, A, B)                                                                              \
  HYDRA_WIDE_MATMUL(T, 64, HYDRA_L32, HYDRA_O32, 32, 33, 34, A, B)                                               \
  HYDRA_WIDE_MATMUL(T, 128, HYDRA_L64, HYDRA_O64, 64, 65, 66, A, B)                                              \
  HYDRA_WIDE_MATMUL(T, 192, HYDRA_L96, HYDRA_O96, 96, 97, 98, A, B)                                              \
  HYDRA_WIDE_MATMUL(T, 256, HYDRA_L128, HYDRA_O128, 128, 129, 130, A, B)
HYDRA_WIDE_MATMULS(bf16, 0, 0)
HYDRA_WIDE_MATMULS(bf16, 0, 1)
HYDRA_WIDE_MATMULS(bf16, 1, 1)
HYDRA_WIDE_MATMULS(f16, 0, 0)
HYDRA_WIDE_MATMULS(f16, 0, 1)
HYDRA_WIDE_MATMULS(f16, 1, 1)

//===-- Maps -----------------------------------------------------------------------------------===//

/// Matrices of 16-bit numbers behind each other. `stride`: bytes between rows, a multiple of 16.
struct Matrices {
  const void *base;
  uint32 columns, rows, count;
  uint64 stride;
};

constexpr int kMapBytes = 128;

#define HYDRA_SET_MAP(field, type, constraint, place, value)                                                     \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " place "%1;" ::"r"(image),    \
               constraint(value)                                                                                 \
               : "memory")
/// Writes the map of matrices, in boxes of 64 columns and `rows` rows, and makes it known to the engine. By a warp;
/// `image`: 128 bytes of shared memory, `map`: of global memory.
__device__ __forceinline__ void writeMap(uint32 image, unsigned char *map, const Matrices &of, uint32 rows) {
  const int lane = threadIdx.x % 32;
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(image + 4 * lane), "r"(0) : "memory");
  __syncwarp();
  if (lane == 0) {
    HYDRA_SET_MAP("global_address", "b64", "l", "", of.base);
    HYDRA_SET_MAP("rank", "b32", "n", "", 2); // less one
    HYDRA_SET_MAP("box_dim", "b32", "n", "0, ", kBlock);
    HYDRA_SET_MAP("box_dim", "b32", "r", "1, ", rows);
    HYDRA_SET_MAP("box_dim", "b32", "n", "2, ", 1);
    HYDRA_SET_MAP("global_dim", "b32", "r", "0, ", of.columns);
    HYDRA_SET_MAP("global_dim", "b32", "r", "1, ", of.rows);
    HYDRA_SET_MAP("global_dim", "b32", "r", "2, ", of.count);
    HYDRA_SET_MAP("global_stride", "b64", "l", "0, ", of.stride);
    HYDRA_SET_MAP("global_stride", "b64", "l", "1, ", of.stride * of.rows);
    HYDRA_SET_MAP("element_stride", "b32", "n", "0, ", 1);
    HYDRA_SET_MAP("element_stride", "b32", "n", "1, ", 1);
    HYDRA_SET_MAP("element_stride", "b32", "n", "2, ", 1);
    HYDRA_SET_MAP("elemtype", "b32", "n", "", 1);      // 16 bits, as they are
    HYDRA_SET_MAP("interleave_layout", "b32", "n", "", 0);
    HYDRA_SET_MAP("swizzle_mode", "b32", "n", "", 3);  // of 128 bytes
    HYDRA_SET_MAP("fill_mode", "b32", "n", "", 0);     // zeros
  }
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;\n"
               "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map),
               "r"(image)
               : "memory");
}
#undef HYDRA_SET_MAP

/// A box from (column, row, matrix) on, counted by a barrier.
__device__ __forceinline__ void copyBox(uint32 to, const unsigned char *map, int column, int row, int matrix,
                                        uint32 barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
               "l"(map), "r"(column), "r"(row), "r"(matrix), "r"(barrier)
               : "memory");
}

//===-- Work -----------------------------------------------------------------------------------===//

/// A tile of c: rows [row, end) and columns from `column` on, and how many are summed. `matrix`: of b, and of c.
struct Tile {
  int matrix, row, end, column, sums;
};

/// The tile of that number of a matrix of `height` times `columns` tiles, in bands of rows.
struct Raster {
  int row, column;
  __device__ __forceinline__ Raster(int number, int height, int columns) {
    constexpr int band = 16;
    int first = number / (band * columns) * band, inBand = number - first * columns;
    int rows = max(1, min(band, height - first)); // behind the last tile there is nothing, of height 0
    row = first + inBand % rows;
    column = inBand / rows;
  }
};

/// Rows in groups, and those without one, as tiles that have rows of one group. By warps.
template <int Rows, int Groups> struct RowTiles {
  struct Group {
    int number, begin, end, before; // tiles of rows of earlier groups; number -1: there is none
  };
  /// The group that has a tile of rows, or how many tiles there are (`before`).
  static __device__ __forceinline__ Group find(const int *offsets, int tile) {
    constexpr int lanes = 32;
    int lane = threadIdx.x % lanes, before = 0;
    for (int base = 0; base <= Groups; base += lanes) {
      int e = base + lane;
      int begin = grouped::beginOf<Rows, Groups>(offsets, min(e, Groups + 1));
      int end = max(begin, grouped::beginOf<Rows, Groups>(offsets, min(e + 1, Groups + 1)));
      int tiles = (end - begin + kHeight - 1) / kHeight, sum = tiles;
#pragma unroll
      for (int d = 1; d < lanes; d *= 2) {
        int other = __shfl_up_sync(~0u, sum, d);
        sum += lane >= d ? other : 0;
      }
      if (uint32 reached = __ballot_sync(~0u, before + sum > tile)) {
        int found = __ffs(reached) - 1;
        return {base + found, __shfl_sync(~0u, begin, found), __shfl_sync(~0u, end, found),
                before + __shfl_sync(~0u, sum - tiles, found)};
      }
      before += __shfl_sync(~0u, sum, lanes - 1);
    }
    return {-1, 0, 0, before};
  }
};

/// y = x w^T by groups, or x w where `Transposed`; zeros in rows without a group.
template <int Rows, int Groups, int N, int K, bool Transposed, int Width, typename T, typename O>
struct LinearByGroups {
  static constexpr bool aBySum = false, bBySum = Transposed, mapsChange = false;
  static constexpr int stride = N, width = N, columns = (N + Width - 1) / Width;
  const T *x, *w;
  const int *offsets;
  O *y;

  __device__ __forceinline__ int count() const {
    return RowTiles<Rows, Groups>::find(offsets, 0x7fffffff).before * columns;
  }
  __device__ __forceinline__ Tile at(int number) const {
    auto group = RowTiles<Rows, Groups>::find(offsets, number / columns);
    int height = (group.end - group.begin + kHeight - 1) / kHeight;
    Raster raster(number - group.before * columns, height, columns);
    int row = group.begin + raster.row * kHeight;
    return {group.number, row, min(row + kHeight, group.end), raster.column * Width, group.number < Groups ? K : 0};
  }
  __device__ __forceinline__ Matrices a(const Tile &) const { return {x, K, Rows, 1, K * sizeof(T)}; }
  __device__ __forceinline__ Matrices b(const Tile &) const {
    constexpr uint32 rows = Transposed ? K : N, columns = Transposed ? N : K;
    return {w, columns, rows, Groups, columns * sizeof(T)};
  }
  static __device__ __forceinline__ int matrixOfB(const Tile &tile) { return tile.matrix; }
  __device__ __forceinline__ O *c(const Tile &) const { return y; }
};

/// c[e] = a^T b over the rows of group e: [N, K].
template <int Rows, int Groups, int N, int K, int Width, typename T, typename O> struct OuterByGroups {
  static constexpr bool aBySum = true, bBySum = true, mapsChange = true;
  static constexpr int stride = K, width = K, columns = (K + Width - 1) / Width,
                       height = (N + kHeight - 1) / kHeight;
  const T *left, *right;
  const int *offsets;
  O *to;

  __device__ __forceinline__ int begin(int e) const { return grouped::beginOf<Rows, Groups>(offsets, e); }
  __device__ __forceinline__ int count() const { return Groups * height * columns; }
  __device__ __forceinline__ Tile at(int number) const {
    int e = number / (height * columns);
    Raster raster(number - e * height * columns, height, columns);
    int row = raster.row * kHeight;
    return {e, row, min(row + kHeight, N), raster.column * Width, max(begin(e + 1) - begin(e), 0)};
  }
  __device__ __forceinline__ Matrices a(const Tile &tile) const {
    return {left + int64(begin(tile.matrix)) * N, N, uint32(tile.sums), 1, N * sizeof(T)};
  }
  __device__ __forceinline__ Matrices b(const Tile &tile) const {
    return {right + int64(begin(tile.matrix)) * K, K, uint32(tile.sums), 1, K * sizeof(T)};
  }
  static __device__ __forceinline__ int matrixOfB(const Tile &) { return 0; }
  __device__ __forceinline__ O *c(const Tile &tile) const { return to + int64(tile.matrix) * N * K; }
};

//===-- The kernel -----------------------------------------------------------------------------===//

/// Where a stage of the ring is full and empty. All threads of a role keep the same place in it.
template <int Stages> struct TileRing {
  uint32 barriers;
  int stage = 0, phase = 0;

  __device__ __forceinline__ explicit TileRing(uint32 barriers) : barriers(barriers) {}
  __device__ __forceinline__ uint32 full() const { return barriers + 16 * stage; }
  __device__ __forceinline__ uint32 empty(int which) const { return barriers + 16 * which + 8; }
  __device__ __forceinline__ void init() const {
    for (int i = 0; i < Stages; ++i) {
      initBarrier(barriers + 16 * i, 1);
      initBarrier(empty(i), 4 * kGroups); // a thread of each warp
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ __forceinline__ void next() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
  __device__ __forceinline__ int last() const { return stage == 0 ? Stages - 1 : stage - 1; }
};

/// Of a stage: a, then b, each in blocks of 64 columns.
template <typename Work, int Width> struct Stage {
  static constexpr int aBytes = kHeight * kDepth * 2, bBytes = Width * kDepth * 2, bytes = aBytes + bBytes;
  static constexpr int aBoxRows = Work::aBySum ? kDepth : kHeight, bBoxRows = Work::bBySum ? kDepth : Width;

  /// Starts the copies of the sums from k on. By one thread.
  static __device__ __forceinline__ void fetch(uint32 to, const unsigned char *maps, const Tile &tile, int k,
                                               uint32 full) {
    arriveExpecting(full, bytes);
    const int matrix = Work::matrixOfB(tile);
    if constexpr (Work::aBySum) {
#pragma unroll
      for (int i = 0; i < kHeight; i += kBlock)
        copyBox(to + i * kDepth * 2, maps, tile.row + i, k, 0, full);
    } else {
      copyBox(to, maps, k, tile.row, 0, full);
    }
    if constexpr (Work::bBySum) {
#pragma unroll
      for (int i = 0; i < Width; i += kBlock)
        copyBox(to + aBytes + i * kDepth * 2, maps + kMapBytes, tile.column + i, k, matrix, full);
    } else {
      copyBox(to + aBytes, maps + kMapBytes, k, tile.column, matrix, full);
    }
  }
  /// Adds a stage's matmuls to 64 rows of c.
  template <typename T>
  static __device__ __forceinline__ void multiply(float (&c)[Width / 8][4], uint32 at, int group, bool first) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const uint32 a = at + group * kBlockBytes, b = at + aBytes;
      WideMatmul<T, Width, Work::aBySum, Work::bBySum>::run(
          c, Work::aBySum ? rowsSummed(a, k) : columnsSummed(a, k),
          Work::bBySum ? rowsSummed(b, k) : columnsSummed(b, k), !first || k > 0);
    }
  }
};

/// Words [i] of lanes s of four that follow each other become words [s] of lanes i.
__device__ __forceinline__ void transposeQuad(uint32 (&w)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
  uint32 x = __shfl_xor_sync(~0u, high ? w[0] : w[2], 2), y = __shfl_xor_sync(~0u, high ? w[1] : w[3], 2);
  uint32 low0 = high ? x : w[0], low1 = high ? y : w[1], high0 = high ? w[2] : x, high1 = high ? w[3] : y;
  x = __shfl_xor_sync(~0u, odd ? low0 : low1, 1);
  y = __shfl_xor_sync(~0u, odd ? high0 : high1, 1);
  w[0] = odd ? x : low0;
  w[1] = odd ? low1 : x;
  w[2] = odd ? y : high0;
  w[3] = odd ? high1 : y;
}

/// A warpgroup's 64 rows of a tile from row `row` on, within its limits.
template <int Stride, int Columns, int Width>
__device__ __forceinline__ void storeTile(float *to, const float (&c)[Width / 8][4], int row, int end, int column) {
  const int lane = threadIdx.x % 32;
  row += threadIdx.x / 32 % 4 * 16 + lane / 4;
  to += int64(row) * Stride + column + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int n = 0; n < Width / 8; ++n)
      if (row + 8 * half < end && column + n * 8 < Columns)
        *reinterpret_cast<float2 *>(to + 8 * half * Stride + n * 8) = make_float2(c[n][2 * half], c[n][2 * half + 1]);
}
template <int Stride, int Columns, int Width, typename O>
__device__ __forceinline__ void storeTile(O *to, const float (&c)[Width / 8][4], int row, int end, int column) {
  const int lane = threadIdx.x % 32;
  row += threadIdx.x / 32 % 4 * 16 + lane / 4;
  column += lane % 4 * 8;
  to += int64(row) * Stride + column;
#pragma unroll
  for (int n = 0; n < Width / 8; n += 4)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32 words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words[i] = pack<O>(c[n + i][2 * half], c[n + i][2 * half + 1]);
      transposeQuad(words);
      if (row + 8 * half < end && column + n * 8 < Columns)
        *reinterpret_cast<uint4 *>(to + 8 * half * Stride + n * 8) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

/// All tiles of some work. `maps`: (Stages + 1) pairs for each block where maps change, else one.
template <typename Work, typename T, int Width, int Stages>
__device__ __forceinline__ void multiplyTiles(const Work &work, unsigned char *maps) {
  using Stage = hopper_matmul::Stage<Work, Width>;
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  const uint32 stages = sharedAddress(blocks1024), image = stages + Stages * Stage::bytes;
  TileRing<Stages> ring(image + kMapBytes);
  if (threadIdx.x == 0)
    ring.init();
  __syncthreads();
  const int count = work.count(), group = threadIdx.x / 128;

  if (group == kGroups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); // what finds tiles does not fit fewer
    if (threadIdx.x / 32 % 4 != 0)
      return;
    // A pair of maps is written again when the ring has gone around since its last use.
    constexpr int slots = Work::mapsChange ? Stages + 1 : 1;
    maps += int64(blockIdx.x) * slots * 2 * kMapBytes;
    int slot = 0, mapped = -1;
    for (int number = blockIdx.x; number < count; number += gridDim.x) {
      const Tile tile = work.at(number);
      if (tile.sums > 0 && (mapped < 0 || (Work::mapsChange && tile.matrix != mapped))) {
        slot = slot + 1 == slots ? 0 : slot + 1;
        writeMap(image, maps + slot * 2 * kMapBytes, work.a(tile), Stage::aBoxRows);
        writeMap(image, maps + slot * 2 * kMapBytes + kMapBytes, work.b(tile), Stage::bBoxRows);
        mapped = tile.matrix;
      }
      for (int k = 0; k < tile.sums; k += kDepth, ring.next())
        if (threadIdx.x % 32 == 0) {
          waitFor(ring.empty(ring.stage), ring.phase ^ 1);
          Stage::fetch(stages + ring.stage * Stage::bytes, maps + slot * 2 * kMapBytes, tile, k, ring.full());
        }
      __syncwarp();
    }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  Tile tile = work.at(blockIdx.x);
  for (int number = blockIdx.x; number < count; number += gridDim.x) {
    const Tile current = tile;
    float c[Width / 8][4];
    clear(c);
    for (int k = 0; k < current.sums; k += kDepth, ring.next()) {
      waitFor(ring.full(), ring.phase);
      beginMatmuls();
      Stage::template multiply<T>(c, stages + ring.stage * Stage::bytes, group, k == 0);
      commitMatmuls();
      // The matmuls of the stage before are done.
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (k > 0 && threadIdx.x % 32 == 0)
        arrive(ring.empty(ring.last()));
    }
    tile = work.at(number + gridDim.x); // while the last matmuls run
    waitForMatmuls<0>(c);
    if (current.sums > 0 && threadIdx.x % 32 == 0)
      arrive(ring.empty(ring.last()));
    storeTile<Work::stride, Work::width, Width>(work.c(current), c, current.row + group * kTile, current.end,
                                                current.column);
  }
}

} // namespace hopper_matmul

/// As groupedLinear of grouped.cuh; `maps`: 256 bytes for each block.
template <int Rows, int Groups, int N, int K, bool Transposed, int Width, int Stages, typename T, typename O>
__device__ __forceinline__ void groupedLinearHopper(const T *x, const T *w, const int *offsets, O *y,
                                                    unsigned char *maps) {
  using Work = hopper_matmul::LinearByGroups<Rows, Groups, N, K, Transposed, Width, T, O>;
  hopper_matmul::multiplyTiles<Work, T, Width, Stages>(Work{x, w, offsets, y}, maps);
}

/// As groupedOuter of grouped.cuh; `maps`: 256 (Stages + 1) bytes for each block.
template <int Rows, int Groups, int N, int K, int Width, int Stages, typename T, typename O>
__device__ __forceinline__ void groupedOuterHopper(const T *a, const T *b, const int *offsets, O *c,
                                                   unsigned char *maps) {
  using Work = hopper_matmul::OuterByGroups<Rows, Groups, N, K, Width, T, O>;
  hopper_matmul::multiplyTiles<Work, T, Width, Stages>(Work{a, b, offsets, c}, maps);
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
