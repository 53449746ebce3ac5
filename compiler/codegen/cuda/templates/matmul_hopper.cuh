// Matmuls by Hopper's warpgroups, of operands that the copy engine brings (cp.async.bulk.tensor).
//
// c = a b of 16-bit numbers, summed in rising order of k, in f32. A tile is 128 rows and `Width` columns of c. As
// many blocks as there are multiprocessors take tiles in turn: one warp has the engine fill a ring of stages, 64
// of k each, and runs ahead into the next tile; two warpgroups have 64 rows of the tile each, in registers, and
// multiply what the ring has (wgmma, both operands in shared memory); a warp for each of these has the engine
// store what it puts into buffers, 128 bytes of each row at a time, while the next tile is multiplied. Tiles that
// do not suffice for all blocks are cut into strips of fewer columns, or split along k: the last part to be done adds
// all of them, in their order.
// Either operand may have k along its rows or along its columns. What lies outside of a matrix is zero, and is not
// stored: the engine sees to it, so every size will do whose rows are of 16-byte pieces. Every sum has one order,
// whichever block does it; of rows that the device counts, one for each number of rows.
//
// The engine knows a matrix by a map of 128 bytes (tensormap), which a block writes for itself, into memory that
// nobody else uses: of a group of rows that only the device knows, too, and no address has to be known before.
//
// Traffic: a tile reads (128 + Width) K numbers, from the second cache where tiles that run together share them:
// bands of 16 tiles of rows go through all columns before the next. Limit: wgmma.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace hopper_matmul {

constexpr int kGroups = 2, kHeight = kGroups * kTile, kDepth = 64;

//===-- Matmuls of many columns ----------------------------------------------------------------===//

#define HYDRA_L72 HYDRA_L64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define HYDRA_L80 HYDRA_L72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define HYDRA_L88 HYDRA_L80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define HYDRA_L96 HYDRA_L88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define HYDRA_L104 HYDRA_L96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define HYDRA_L112 HYDRA_L104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define HYDRA_L120 HYDRA_L112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define HYDRA_L128 HYDRA_L120 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define HYDRA_O72(how) HYDRA_O64(how), HYDRA_O8(how, 16)
#define HYDRA_O80(how) HYDRA_O72(how), HYDRA_O8(how, 18)
#define HYDRA_O88(how) HYDRA_O80(how), HYDRA_O8(how, 20)
#define HYDRA_O96(how) HYDRA_O88(how), HYDRA_O8(how, 22)
#define HYDRA_O104(how) HYDRA_O96(how), HYDRA_O8(how, 24)
#define HYDRA_O112(how) HYDRA_O104(how), HYDRA_O8(how, 26)
#define HYDRA_O120(how) HYDRA_O112(how), HYDRA_O8(how, 28)
#define HYDRA_O128(how) HYDRA_O120(how), HYDRA_O8(how, 30)

/// c[64 x N] = a b, or c += a b where `add`: sixteen of k, along rows of an operand or (`BySum`) its columns.
template <typename T, int N> struct WideMatmul;
#define HYDRA_WIDE_MATMUL(T, N, LIST, OUTPUTS, x0, x1, x2, x3, x4)                                               \
  template <> struct WideMatmul<T, N> {                                                                          \
    template <bool ABySum, bool BBySum>                                                                          \
    static __device__ __forceinline__ void run(float (&c)[N / 8][4], uint64 a, uint64 b, int add) {              \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #x2 ", 0;\n"                                             \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "                    \
                   "%" #x0 ", %" #x1 ", p, 1, 1, %" #x3 ", %" #x4 ";\n}"                                         \
                   : OUTPUTS("+f")                                                                               \
                   : "l"(a), "l"(b), "r"(add), "n"(int(ABySum)), "n"(int(BBySum)));                              \
    }                                                                                                            \
  };
#define HYDRA_WIDE_MATMULS(T)                                                                                    \
  HYDRA_WIDE_MATMUL(T, 64, HYDRA_L32, HYDRA_O32, 32, 33, 34, 35, 36)                                             \
  HYDRA_WIDE_MATMUL(T, 128, HYDRA_L64, HYDRA_O64, 64, 65, 66, 67, 68)                                            \
  HYDRA_WIDE_MATMUL(T, 192, HYDRA_L96, HYDRA_O96, 96, 97, 98, 99, 100)                                           \
  HYDRA_WIDE_MATMUL(T, 256, HYDRA_L128, HYDRA_O128, 128, 129, 130, 131, 132)
HYDRA_WIDE_MATMULS(bf16)
HYDRA_WIDE_MATMULS(f16)

//===-- Maps -----------------------------------------------------------------------------------===//

/// Matrices behind each other, of numbers of 1, 2 or 4 bytes. `stride`: bytes between rows, a multiple of 16.
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
/// Writes the map of matrices, in boxes of `Line` bytes, 32, 64 or 128, of `rows` rows, and makes it known to the engine.
/// The 16-byte pieces of a line are permuted: by the row where it has 128, by half its number where it has 64. By a
/// warp; `image`: 128 bytes of shared memory, `map`: of global memory.
template <int Bytes, int Line = 128>
__device__ __forceinline__ void writeMap(uint32 image, unsigned char *map, const Matrices &of, uint32 rows) {
  const int lane = threadIdx.x % 32;
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(image + 4 * lane), "r"(0) : "memory");
  __syncwarp();
  if (lane == 0) {
    HYDRA_SET_MAP("global_address", "b64", "l", "", of.base);
    HYDRA_SET_MAP("rank", "b32", "n", "", 2); // less one
    HYDRA_SET_MAP("box_dim", "b32", "n", "0, ", Line / Bytes);
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
    HYDRA_SET_MAP("elemtype", "b32", "n", "", Bytes / 2); // u8, u16, u32: bits as they are
    HYDRA_SET_MAP("interleave_layout", "b32", "n", "", 0);
    HYDRA_SET_MAP("swizzle_mode", "b32", "n", "", Line == 128 ? 3 : Line == 64 ? 2 : 0); // of so many bytes
    HYDRA_SET_MAP("fill_mode", "b32", "n", "", 0); // zeros
  }
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
               "[%0], [%1], 128;\n"
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

/// A box from shared memory to (column, row, matrix) on; what lies outside of the matrix is left out.
__device__ __forceinline__ void storeBox(const unsigned char *map, int column, int row, int matrix, uint32 from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
               "cp.async.bulk.commit_group;" ::"l"(map),
               "r"(column), "r"(row), "r"(matrix), "r"(from)
               : "memory");
}
/// Waits until at most `Pending` boxes of this thread are still read.
template <int Pending> __device__ __forceinline__ void waitForStores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

//===-- Work -----------------------------------------------------------------------------------===//

__device__ __forceinline__ int stepsOf(int sums) { return (sums + kDepth - 1) / kDepth; }

/// A tile of c, of a group: where it begins, and how many are summed.
struct Tile {
  int group, row, column, sums;
};

/// The tile of that number of a matrix of `height` times `columns` tiles, in bands of so many rows of tiles: those that run
/// together cover about a square, of the fewest operands.
struct Raster {
  int row, column;
  __device__ __forceinline__ Raster(int number, int height, int columns, int band = 16) {
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
  static constexpr bool aBySum = false, bBySum = Transposed, operandsChange = false, resultChanges = true;
  static constexpr int pairs = 1; // of operands
  static constexpr int width = N, columns = (N + Width - 1) / Width;
  const T *x, *w;
  const int *offsets;
  O *y;

  __device__ __forceinline__ int count() const {
    return RowTiles<Rows, Groups>::find(offsets, 0x7fffffff).before * columns;
  }
  static __device__ __forceinline__ int steps() { return stepsOf(K); }
  __device__ __forceinline__ Tile at(int number) const {
    auto group = RowTiles<Rows, Groups>::find(offsets, number / columns);
    int height = (group.end - group.begin + kHeight - 1) / kHeight;
    Raster raster(number - group.before * columns, height, columns);
    return {group.number, group.begin + raster.row * kHeight, raster.column * Width, group.number < Groups ? K : 0};
  }
  __device__ __forceinline__ Matrices a(const Tile &) const { return {x, K, Rows, 1, K * sizeof(T)}; }
  __device__ __forceinline__ Matrices b(const Tile &) const {
    constexpr uint32 rows = Transposed ? K : N, columns = Transposed ? N : K;
    return {w, columns, rows, Groups, columns * sizeof(T)};
  }
  /// Rows up to the end of the tile's group.
  __device__ __forceinline__ Matrices c(const Tile &tile) const {
    const int end = grouped::beginOf<Rows, Groups>(offsets, tile.group + 1);
    return {y, N, uint32(end), 1, N * sizeof(O)};
  }
  static __device__ __forceinline__ int matrixOfB(const Tile &tile) { return tile.group; }
  static __device__ __forceinline__ int matrixOfC(const Tile &) { return 0; }
};

/// c[e] = a^T b over the rows of group e: [N, K].
template <int Rows, int Groups, int N, int K, int Width, typename T, typename O> struct OuterByGroups {
  static constexpr bool aBySum = true, bBySum = true, operandsChange = true, resultChanges = false;
  static constexpr int pairs = 1; // of operands
  static constexpr int width = K, columns = (K + Width - 1) / Width, height = (N + kHeight - 1) / kHeight;
  const T *left, *right;
  const int *offsets;
  O *to;

  static __device__ __forceinline__ int steps() { return stepsOf(Rows / Groups); } // of most groups, perhaps
  __device__ __forceinline__ int begin(int e) const { return grouped::beginOf<Rows, Groups>(offsets, e); }
  __device__ __forceinline__ int count() const { return Groups * height * columns; }
  __device__ __forceinline__ Tile at(int number) const {
    int e = number / (height * columns);
    Raster raster(number - e * height * columns, height, columns);
    return {e, raster.row * kHeight, raster.column * Width, max(begin(e + 1) - begin(e), 0)};
  }
  __device__ __forceinline__ Matrices a(const Tile &tile) const {
    return {left + int64(begin(tile.group)) * N, N, uint32(tile.sums), 1, N * sizeof(T)};
  }
  __device__ __forceinline__ Matrices b(const Tile &tile) const {
    return {right + int64(begin(tile.group)) * K, K, uint32(tile.sums), 1, K * sizeof(T)};
  }
  __device__ __forceinline__ Matrices c(const Tile &) const { return {to, K, N, Groups, K * sizeof(O)}; }
  static __device__ __forceinline__ int matrixOfB(const Tile &) { return 0; }
  static __device__ __forceinline__ int matrixOfC(const Tile &tile) { return tile.group; }
};

/// The first rows of a matrix of at most `Rows`: as many as the device counts.
template <int Rows> __device__ __forceinline__ int rowsOf(const int *count) { return min(max(*count, 0), Rows); }

/// y = x w^T of the first rows of x, or x w where `Transposed`; what lies behind them is neither read nor written.
/// Of each matrix the numbers between rows.
template <int N, int K, bool Transposed, int64 XStride, int64 WStride, int64 YStride, int Width, typename T, typename O>
struct LinearOfFirstRows {
  static constexpr bool aBySum = false, bBySum = Transposed, operandsChange = false, resultChanges = false;
  static constexpr int pairs = 1; // of operands
  static constexpr int width = N, columns = (N + Width - 1) / Width;
  const T *x, *w;
  int rows;
  O *y;

  static __device__ __forceinline__ int steps() { return stepsOf(K); }
  __device__ __forceinline__ int height() const { return (rows + kHeight - 1) / kHeight; }
  __device__ __forceinline__ int count() const { return height() * columns; }
  __device__ __forceinline__ Tile at(int number) const {
    Raster raster(number, height(), columns);
    return {0, raster.row * kHeight, raster.column * Width, K};
  }
  __device__ __forceinline__ Matrices a(const Tile &) const { return {x, K, uint32(rows), 1, XStride * sizeof(T)}; }
  __device__ __forceinline__ Matrices b(const Tile &) const {
    return {w, Transposed ? N : K, Transposed ? K : N, 1, WStride * sizeof(T)};
  }
  __device__ __forceinline__ Matrices c(const Tile &) const { return {y, N, uint32(rows), 1, YStride * sizeof(O)}; }
  static __device__ __forceinline__ int matrixOfB(const Tile &) { return 0; }
  static __device__ __forceinline__ int matrixOfC(const Tile &) { return 0; }
};

/// c = a^T b over the first rows of a and b: [N, K]. Without any, zeros.
template <int Rows, int N, int K, int64 AStride, int64 BStride, int64 CStride, int Width, typename T, typename O>
struct OuterOfFirstRows {
  static constexpr bool aBySum = true, bBySum = true, operandsChange = false, resultChanges = false;
  static constexpr int pairs = 1; // of operands
  static constexpr int width = K, columns = (K + Width - 1) / Width, height = (N + kHeight - 1) / kHeight;
  const T *left, *right;
  int rows;
  O *to;

  __device__ __forceinline__ int steps() const { return stepsOf(rows); }
  __device__ __forceinline__ int count() const { return height * columns; }
  __device__ __forceinline__ Tile at(int number) const {
    Raster raster(number, height, columns);
    return {0, raster.row * kHeight, raster.column * Width, rows};
  }
  __device__ __forceinline__ Matrices a(const Tile &) const { return {left, N, uint32(rows), 1, AStride * sizeof(T)}; }
  __device__ __forceinline__ Matrices b(const Tile &) const { return {right, K, uint32(rows), 1, BStride * sizeof(T)}; }
  __device__ __forceinline__ Matrices c(const Tile &) const { return {to, K, N, 1, CStride * sizeof(O)}; }
  static __device__ __forceinline__ int matrixOfB(const Tile &) { return 0; }
  static __device__ __forceinline__ int matrixOfC(const Tile &) { return 0; }
};

/// Two matrices of which the first rows are multiplied.
template <typename T> struct RowPair {
  const T *left, *right;
  int rows;
};

/// c = the sum of a^T b over the first rows of each pair, of at most `Rows` together: [N, K]. Sums are counted as if
/// each pair had a multiple of kDepth rows: the engine makes zeros of what is behind the last one.
template <int Pairs, int Rows, int N, int K, int64 AStride, int64 BStride, int64 CStride, int Width, typename T,
          typename O>
struct OuterOfPairs {
  static constexpr bool aBySum = true, bBySum = true, operandsChange = false, resultChanges = false;
  static constexpr int pairs = Pairs;
  static constexpr int width = K, columns = (K + Width - 1) / Width, height = (N + kHeight - 1) / kHeight;
  const RowPair<T> (&of)[Pairs];
  O *to;
  int sums = 0;

  __device__ __forceinline__ OuterOfPairs(const RowPair<T> (&of)[Pairs], O *to) : of(of), to(to) {
#pragma unroll
    for (int i = 0; i < Pairs; ++i)
      sums += padded(i);
  }
  __device__ __forceinline__ int padded(int i) const { return stepsOf(of[i].rows) * kDepth; }
  __device__ __forceinline__ int steps() const { return stepsOf(sums); }
  __device__ __forceinline__ int count() const { return height * columns; }
  __device__ __forceinline__ Tile at(int number) const {
    Raster raster(number, height, columns);
    return {0, raster.row * kHeight, raster.column * Width, sums};
  }
  /// The pair that has the sum k, and its sums [begin, end).
  struct Span {
    int pair, begin, end;
  };
  // Pairs are found by going through all of them: they stay in registers.
  __device__ __forceinline__ Span spanOf(int k) const {
    Span span = {0, 0, 0};
#pragma unroll
    for (int i = 0, begin = 0; i < Pairs; ++i) {
      const int end = begin + padded(i);
      if (begin <= k && k < end)
        span = {i, begin, end};
      begin = end;
    }
    return span;
  }
  __device__ __forceinline__ RowPair<T> pairAt(int number) const {
    RowPair<T> pair = of[0];
#pragma unroll
    for (int i = 1; i < Pairs; ++i)
      if (i == number)
        pair = of[i];
    return pair;
  }
  __device__ __forceinline__ Matrices a(const RowPair<T> &pair) const {
    return {pair.left, N, uint32(pair.rows), 1, AStride * sizeof(T)};
  }
  __device__ __forceinline__ Matrices b(const RowPair<T> &pair) const {
    return {pair.right, K, uint32(pair.rows), 1, BStride * sizeof(T)};
  }
  __device__ __forceinline__ Matrices c(const Tile &) const { return {to, K, N, 1, CStride * sizeof(O)}; }
  static __device__ __forceinline__ int matrixOfB(const Tile &) { return 0; }
  static __device__ __forceinline__ int matrixOfC(const Tile &) { return 0; }
};

/// What a block does at a time: a tile, a strip of its columns, or the sums [begin, end) of one of these.
struct Unit {
  Tile tile;
  int width, begin, end;
  int part, parts, place; // of the strips whose sums are split
};

/// All of a launch. When every block has had as many tiles as any other, the rest is cut into strips, and the sums of
/// strips are split, for as many blocks as there are: the way that takes least by `timeOf`. WarpgroupTiles::timeOf of
/// compiler/codegen/cuda/GroupedSteps.cpp has the same numbers.
template <typename Work, int Width> struct Units {
  static constexpr int narrowest = 64, mostParts = 8;
  const Work &work;
  int whole, strips = 1, parts = 1, count;

  __device__ __forceinline__ explicit Units(const Work &work) : work(work) {
    const int blocks = int(gridDim.x), tiles = work.count(), rest = tiles % blocks;
    whole = tiles - rest;
    if (rest > 0) {
      float least = INFINITY;
#pragma unroll
      for (int s = 1; s <= Width / narrowest; ++s)
        if (Width % (narrowest * s) == 0 && rest * s <= blocks) {
          auto consider = [&](int p) {
            const float time = timeOf(Width / s, p);
            if (time < least)
              least = time, strips = s, parts = p;
          };
          consider(1);
          consider(min(blocks / (rest * s), mostParts));
        }
    }
    count = whole + rest * strips * parts;
  }
  /// Of a part of the sums of a strip, in steps of 256 columns: they, and storing and adding parts. Measured on an H200.
  __device__ __forceinline__ float timeOf(int width, int parts) const {
    const float step = width == 64 ? 0.5f : width == 128 ? 0.64f : width == 192 ? 0.73f : 1.0f;
    return (work.steps() + parts - 1) / parts * step + (parts > 1 ? 3.3f + 0.008f * parts * width : 0.0f);
  }
  __device__ __forceinline__ Unit at(int number) const {
    if (number < whole) {
      const Tile tile = work.at(number);
      return {tile, Width, 0, tile.sums, 0, 1, 0};
    }
    const int place = (number - whole) / parts, part = (number - whole) % parts, width = Width / strips;
    Tile tile = work.at(whole + place / strips);
    tile.column += place % strips * width;
    if (tile.column >= Work::width) // a strip beside the last column
      return {tile, width, 0, 0, 0, 1, 0};
    const int64 steps = stepsOf(tile.sums);
    const int begin = int(steps * part / parts) * kDepth, end = int(steps * (part + 1) / parts) * kDepth;
    return {tile, width, begin, min(tile.sums, end), part, parts, place};
  }
};

//===-- The kernel -----------------------------------------------------------------------------===//

/// Stages that one side fills and the other empties. Threads that use it keep the same place in it.
template <int Stages> struct Turns {
  static constexpr int bytes = 16 * Stages;
  uint32 barriers; // of each stage: full, empty
  int stage = 0, phase = 0;

  __device__ __forceinline__ explicit Turns(uint32 barriers) : barriers(barriers) {}
  __device__ __forceinline__ uint32 full() const { return barriers + 16 * stage; }
  __device__ __forceinline__ uint32 empty(int which) const { return barriers + 16 * which + 8; }
  __device__ __forceinline__ void init(int fillers, int emptiers) const {
    for (int i = 0; i < Stages; ++i) {
      initBarrier(barriers + 16 * i, fillers);
      initBarrier(empty(i), emptiers);
    }
  }
  __device__ __forceinline__ void awaitFull() const { waitFor(full(), phase); }
  __device__ __forceinline__ void awaitEmpty() const { waitFor(empty(stage), phase ^ 1); }
  __device__ __forceinline__ void next() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
  /// What somebody else uses.
  __device__ __forceinline__ void skip(int count) {
    phase ^= (stage + count) / Stages & 1;
    stage = (stage + count) % Stages;
  }
  __device__ __forceinline__ int last() const { return stage == 0 ? Stages - 1 : stage - 1; }
};

/// Of a stage: a, then b, each in blocks of 64 columns.
template <typename Work, int Width> struct Stage {
  static constexpr int aBytes = kHeight * kDepth * 2, bytes = aBytes + Width * kDepth * 2;
  static constexpr int aBoxRows = Work::aBySum ? kDepth : kHeight, bBoxRows = kBlock;

  /// Starts the copies of the sums from k on. By one thread.
  static __device__ __forceinline__ void fetch(uint32 to, const unsigned char *maps, const Unit &unit, int k,
                                               uint32 full) {
    const Tile &tile = unit.tile;
    arriveExpecting(full, aBytes + unit.width * kDepth * 2);
    const int matrix = Work::matrixOfB(tile);
    if constexpr (Work::aBySum) {
#pragma unroll
      for (int i = 0; i < kHeight; i += kBlock)
        copyBox(to + i * kDepth * 2, maps, tile.row + i, k, 0, full);
    } else {
      copyBox(to, maps, k, tile.row, 0, full);
    }
    for (int i = 0; i < unit.width; i += kBlock) {
      const uint32 at = to + aBytes + i * kDepth * 2;
      if constexpr (Work::bBySum)
        copyBox(at, maps + kMapBytes, tile.column + i, k, matrix, full);
      else
        copyBox(at, maps + kMapBytes, k, tile.column + i, matrix, full);
    }
  }
  /// Adds a stage's matmuls to 64 rows of c.
  template <typename T, int N>
  static __device__ __forceinline__ void multiply(float (&c)[N][4], uint32 at, int group, bool first) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const uint32 a = at + group * kBlockBytes, b = at + aBytes;
      WideMatmul<T, 8 * N>::template run<Work::aBySum, Work::bBySum>(
          c, Work::aBySum ? rowsSummed(a, k) : columnsSummed(a, k),
          Work::bBySum ? rowsSummed(b, k) : columnsSummed(b, k), !first || k > 0);
    }
  }
};

/// Puts 128 bytes of each of a warpgroup's 64 rows into a buffer, swizzled: the numbers c[first] and on, as O.
template <typename O, int N>
__device__ __forceinline__ void putRows(uint32 buffer, const float (&c)[N][4], int first) {
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 % 4 * 16;
  if constexpr (sizeof(O) == 4) {
    const int row = warpRow + lane / 4, at = lane % 4 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int piece = (2 * n + at / 16) ^ (row % 8);
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(buffer + (row + 8 * half) * 128 + piece * 16 + at % 16),
                     "f"(c[first + n][2 * half]), "f"(c[first + n][2 * half + 1])
                     : "memory");
      }
  } else {
    const int row = warpRow + lane % 16;
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      const int piece = (n + lane / 16) ^ (row % 8);
      const float(&x)[4] = c[first + n], (&y)[4] = c[first + n + 1];
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       buffer + row * 128 + piece * 16),
                   "r"(pack<O>(x[0], x[1])), "r"(pack<O>(x[2], x[3])), "r"(pack<O>(y[0], y[1])),
                   "r"(pack<O>(y[2], y[3]))
                   : "memory");
    }
  }
}

__device__ __forceinline__ void writeShared(uint32 to, int x) {
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
__device__ __forceinline__ int readShared(uint32 from) {
  int x;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}

/// What a block has besides registers. In shared memory: stages, buffers of results, images of maps, barriers.
template <typename Work, typename O, int Width, int Stages, int Buffers> struct Block {
  using Stage = hopper_matmul::Stage<Work, Width>;
  static constexpr int bufferBytes = kTile * 128, columns = 128 / int(sizeof(O)); // of a buffer
  static constexpr int width = Width, buffers = Buffers;
  static_assert(Stages > 1 && Buffers > 1, "one is emptied when the next has been filled");
  static constexpr int operandMaps = Work::operandsChange ? Stages + 1 : Work::pairs,
                       mapsBytes = (2 * operandMaps + kGroups) * kMapBytes;

  uint32 stages, results, images, barriers, words;
  unsigned char *maps; // of the operands by pairs, of the results of each warpgroup
  float4 *sums;        // of parts
  int *done;           // parts of each tile, by warpgroups

  __device__ __forceinline__ Block(const void *shared, unsigned char *scratch, int *done) : done(done) {
    stages = sharedAddress(shared);
    results = stages + Stages * Stage::bytes;
    images = results + kGroups * buffers * bufferBytes;
    barriers = images + (1 + kGroups) * kMapBytes;
    words = barriers + Turns<Stages>::bytes + kGroups * Turns<buffers>::bytes;
    maps = scratch + int64(blockIdx.x) * mapsBytes;
    sums = reinterpret_cast<float4 *>(scratch + int64(gridDim.x) * mapsBytes);
  }
  __device__ __forceinline__ Turns<Stages> ring() const { return Turns<Stages>(barriers); }
  __device__ __forceinline__ Turns<buffers> resultsOf(int group) const {
    return Turns<buffers>(barriers + Turns<Stages>::bytes + group * Turns<buffers>::bytes);
  }
  __device__ __forceinline__ uint32 buffer(int group, int which) const {
    return results + (group * buffers + which) * bufferBytes;
  }
  /// Whether what is in a buffer is to be stored, or stands for a tile that is stored elsewhere.
  __device__ __forceinline__ uint32 isStored(int group, int which) const {
    return words + 4 * (group * buffers + which);
  }
  /// Whether a warpgroup's part of a tile was the last to be done.
  __device__ __forceinline__ uint32 isLast(int group) const { return words + 4 * (kGroups * buffers + group); }
  /// Before all roles begin.
  __device__ __forceinline__ void init() const {
    if (threadIdx.x == 0) {
      ring().init(1, 4 * kGroups); // a thread of each warp
      for (int group = 0; group < kGroups; ++group)
        resultsOf(group).init(128, 1);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
};

/// The warp that has operands fetched.
template <typename Work, typename Block>
__device__ __forceinline__ void fetchAll(const Work &work, const Block &block) {
  using Stage = typename Block::Stage;
  const Units<Work, Block::width> units(work);
  auto ring = block.ring();
  // A pair of maps is written again when the ring has gone around since its last use.
  int slot = 0, mapped = -1;
  const unsigned char *maps = block.maps;
  for (int number = blockIdx.x; number < units.count; number += gridDim.x) {
    const Unit unit = units.at(number);
    if (unit.begin < unit.end && (mapped < 0 || (Work::operandsChange && unit.tile.group != mapped))) {
      slot = slot + 1 == Block::operandMaps ? 0 : slot + 1;
      unsigned char *to = block.maps + slot * 2 * kMapBytes;
      writeMap<2>(block.images, to, work.a(unit.tile), Stage::aBoxRows);
      writeMap<2>(block.images, to + kMapBytes, work.b(unit.tile), Stage::bBoxRows);
      mapped = unit.tile.group;
      maps = to;
    }
    for (int k = unit.begin; k < unit.end; k += kDepth, ring.next())
      if (threadIdx.x % 32 == 0) {
        ring.awaitEmpty();
        Stage::fetch(block.stages + ring.stage * Stage::bytes, maps, unit, k, ring.full());
      }
    __syncwarp();
  }
}

/// The same of several pairs of operands, whose maps are written when they are first fetched.
template <typename Work, typename Block>
__device__ __forceinline__ void fetchPairs(const Work &work, const Block &block) {
  using Stage = typename Block::Stage;
  const Units<Work, Block::width> units(work);
  auto ring = block.ring();
  uint32 mapped = 0;
  static_assert(Work::pairs <= 32, "a bit each");
  for (int number = blockIdx.x; number < units.count; number += gridDim.x) {
    const Unit unit = units.at(number);
    typename Work::Span span = {0, 0, 0};
    for (int k = unit.begin; k < unit.end; k += kDepth, ring.next()) {
      if (k >= span.end) {
        span = work.spanOf(k);
        unsigned char *to = block.maps + span.pair * 2 * kMapBytes;
        if (!(mapped >> span.pair & 1)) {
          const auto pair = work.pairAt(span.pair);
          writeMap<2>(block.images, to, work.a(pair), Stage::aBoxRows);
          writeMap<2>(block.images, to + kMapBytes, work.b(pair), Stage::bBoxRows);
          mapped |= uint32(1) << span.pair;
        }
      }
      if (threadIdx.x % 32 == 0) {
        ring.awaitEmpty();
        Stage::fetch(block.stages + ring.stage * Stage::bytes, block.maps + span.pair * 2 * kMapBytes, unit,
                     k - span.begin, ring.full());
      }
      __syncwarp();
    }
  }
}

/// The warp that has results of a warpgroup stored.
template <typename O, typename Work, typename Block>
__device__ __forceinline__ void storeAll(const Work &work, const Block &block, int group) {
  const Units<Work, Block::width> units(work);
  auto turns = block.resultsOf(group);
  unsigned char *map = block.maps + (2 * Block::operandMaps + group) * kMapBytes;
  int mapped = -1, pending = -1;
  for (int number = blockIdx.x; number < units.count; number += gridDim.x) {
    const Unit unit = units.at(number);
    const Tile &tile = unit.tile;
    if (mapped < 0 || (Work::resultChanges && tile.group != mapped)) {
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); // nothing uses the map before
      __syncwarp();
      writeMap<sizeof(O)>(block.images + (1 + group) * kMapBytes, map, work.c(tile), kTile);
      mapped = tile.group;
    }
    const int pieces = min(unit.width, Work::width - tile.column);
    // By one thread, which the engine tells what it has read. A buffer is found empty when the next is handed over.
    for (int i = 0; threadIdx.x % 32 == 0 && i < pieces; i += Block::columns, turns.next()) {
      turns.awaitFull();
      const bool isStored = readShared(block.isStored(group, turns.stage));
      if (isStored) {
        storeBox(map, tile.column + i, tile.row + group * kTile, Work::matrixOfC(tile),
                 block.buffer(group, turns.stage));
        waitForStores<1>();
      } else {
        waitForStores<0>();
      }
      if (pending >= 0)
        arrive(turns.empty(pending));
      pending = isStored ? turns.stage : -1;
      if (!isStored) {
        arrive(turns.empty(turns.stage));
        i = pieces;
      }
    }
    __syncwarp();
  }
  waitForStores<0>();
}

/// What other blocks have written meanwhile.
__device__ __forceinline__ float4 loadFresh(const float4 *from) {
  float4 x;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "l"(from)
               : "memory");
  return x;
}

/// Adds the sums of all parts of a strip, by the warpgroup that is done last. False for the others.
template <int N, typename Block>
__device__ __forceinline__ bool joinParts(const Block &block, const Unit &unit, int group, float (&c)[N][4]) {
  const int thread = threadIdx.x % 128;
  auto at = [&](int part) {
    return block.sums + ((int64(unit.place) * unit.parts + part) * kGroups + group) * N * 128 + thread;
  };
  float4 *own = at(unit.part);
#pragma unroll
  for (int n = 0; n < N; ++n)
    own[n * 128] = make_float4(c[n][0], c[n][1], c[n][2], c[n][3]);
  __threadfence();
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (thread == 0) {
    int *done = block.done + kGroups * unit.place + group;
    const bool isLast = atomicAdd(done, 1) == unit.parts - 1;
    if (isLast)
      *done = 0; // as it was
    writeShared(block.isLast(group), isLast);
  }
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (!readShared(block.isLast(group)))
    return false;
  __threadfence();
  clear(c);
  constexpr int flight = 8; // loads of a thread
#pragma unroll
  for (int first = 0; first < N; first += flight)
    for (int part = 0; part < unit.parts; ++part) {
      const float4 *from = at(part) + first * 128;
      float4 x[flight];
#pragma unroll
      for (int n = 0; n < flight; ++n)
        x[n] = loadFresh(from + n * 128);
#pragma unroll
      for (int n = 0; n < flight; ++n) {
        c[first + n][0] += x[n].x;
        c[first + n][1] += x[n].y;
        c[first + n][2] += x[n].z;
        c[first + n][3] += x[n].w;
      }
    }
  return true;
}

/// Hands the rows of a warpgroup to the warp that has them stored.
template <typename O, typename Work, typename Block, int N>
__device__ __forceinline__ void putTile(const Block &block, const Unit &unit, int group,
                                        Turns<Block::buffers> &turns, float (&c)[N][4]) {
  auto hand = [&](bool isStored) {
    if (threadIdx.x % 128 == 0)
      writeShared(block.isStored(group, turns.stage), isStored);
    shareWithMatmuls(); // and with the engine
    arrive(turns.full());
    turns.next();
  };
  if (unit.parts > 1 && !joinParts(block, unit, group, c)) {
    turns.awaitEmpty();
    hand(false);
    return;
  }
#pragma unroll
  for (int column = 0; column < 8 * N; column += Block::columns)
    if (unit.tile.column + column < Work::width) {
      turns.awaitEmpty();
      putRows<O>(block.buffer(group, turns.stage), c, column / 8);
      hand(true);
    }
}

/// A warpgroup multiplies 64 rows of a unit of `Width` columns; `meanwhile` runs beside the last matmuls.
template <typename T, typename O, int Width, typename Work, typename Block, typename Ring, typename Results, typename F>
__device__ __forceinline__ void multiplyUnit(const Block &block, const Unit &unit, int group, Ring &ring,
                                             Results &results, F meanwhile) {
  float c[Width / 8][4];
  if (unit.begin >= unit.end)
    clear(c);
  for (int k = unit.begin; k < unit.end; k += kDepth, ring.next()) {
    ring.awaitFull();
    beginMatmuls();
    Block::Stage::template multiply<T>(c, block.stages + ring.stage * Block::Stage::bytes, group, k == unit.begin);
    commitMatmuls();
    // The matmuls of the stage before are done.
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (k > unit.begin && threadIdx.x % 32 == 0)
      arrive(ring.empty(ring.last()));
  }
  meanwhile();
  waitForMatmuls<0>(c);
  if (unit.begin < unit.end && threadIdx.x % 32 == 0)
    arrive(ring.empty(ring.last()));
  putTile<O, Work>(block, unit, group, results, c);
}

/// A warpgroup that multiplies.
template <typename T, typename O, int Width, typename Work, typename Block>
__device__ __forceinline__ void multiplyAll(const Work &work, const Block &block, int group) {
  const Units<Work, Width> units(work);
  auto ring = block.ring();
  auto results = block.resultsOf(group);
  Unit next = units.at(blockIdx.x);
  for (int number = blockIdx.x; number < units.count; number += gridDim.x) {
    const Unit unit = next;
    auto findNext = [&] { next = units.at(number + gridDim.x); };
    if (unit.width == Width)
      multiplyUnit<T, O, Width, Work>(block, unit, group, ring, results, findNext);
    else if (Width == 256 && unit.width == 128)
      multiplyUnit<T, O, 128, Work>(block, unit, group, ring, results, findNext);
    else
      multiplyUnit<T, O, 64, Work>(block, unit, group, ring, results, findNext);
  }
}

/// All tiles of some work. `scratch`: Block::mapsBytes, and 512 Width for the sums of a part of a tile, for each block;
/// `done`: kGroups zeros for each, left as they are.
template <typename T, typename O, int Width, int Stages, int Buffers, typename Work>
__device__ __forceinline__ void multiplyTiles(const Work &work, unsigned char *scratch, int *done) {
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  const Block<Work, O, Width, Stages, Buffers> block(blocks1024, scratch, done);
  block.init();
  const int group = ownGroup(), warp = ownWarp();
  if (group == kGroups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (warp == kGroups) {
      if constexpr (Work::pairs > 1)
        fetchPairs(work, block);
      else
        fetchAll(work, block);
    } else if (warp < kGroups) {
      storeAll<O>(work, block, warp);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    multiplyAll<T, O, Width>(work, block, group);
  }
}

} // namespace hopper_matmul

/// As groupedLinear of grouped.cuh; `scratch` and `done` are multiplyTiles'.
template <int Rows, int Groups, int N, int K, bool Transposed, int Width, int Stages, int Buffers, typename T,
          typename O>
__device__ __forceinline__ void groupedLinearHopper(const T *x, const T *w, const int *offsets, O *y,
                                                    unsigned char *scratch, int *done) {
  using Work = hopper_matmul::LinearByGroups<Rows, Groups, N, K, Transposed, Width, T, O>;
  hopper_matmul::multiplyTiles<T, O, Width, Stages, Buffers>(Work{x, w, offsets, y}, scratch, done);
}

/// As groupedOuter of grouped.cuh; the same.
template <int Rows, int Groups, int N, int K, int Width, int Stages, int Buffers, typename T, typename O>
__device__ __forceinline__ void groupedOuterHopper(const T *a, const T *b, const int *offsets, O *c,
                                                   unsigned char *scratch, int *done) {
  using Work = hopper_matmul::OuterByGroups<Rows, Groups, N, K, Width, T, O>;
  hopper_matmul::multiplyTiles<T, O, Width, Stages, Buffers>(Work{a, b, offsets, c}, scratch, done);
}

/// LinearOfFirstRows; the same.
template <int Rows, int N, int K, bool Transposed, int64 XStride, int64 WStride, int64 YStride, int Width, int Stages,
          int Buffers, typename T, typename O>
__device__ __forceinline__ void linearOfFirstRows(const T *x, const T *w, const int *count, O *y,
                                                  unsigned char *scratch, int *done) {
  using namespace hopper_matmul;
  using Work = LinearOfFirstRows<N, K, Transposed, XStride, WStride, YStride, Width, T, O>;
  if (const int rows = rowsOf<Rows>(count); rows > 0)
    multiplyTiles<T, O, Width, Stages, Buffers>(Work{x, w, rows, y}, scratch, done);
}

/// OuterOfFirstRows; the same.
template <int Rows, int N, int K, int64 AStride, int64 BStride, int64 CStride, int Width, int Stages, int Buffers,
          typename T, typename O>
__device__ __forceinline__ void outerOfFirstRows(const T *a, const T *b, const int *count, O *c,
                                                 unsigned char *scratch, int *done) {
  using namespace hopper_matmul;
  using Work = OuterOfFirstRows<Rows, N, K, AStride, BStride, CStride, Width, T, O>;
  multiplyTiles<T, O, Width, Stages, Buffers>(Work{a, b, rowsOf<Rows>(count), c}, scratch, done);
}

/// OuterOfPairs; the same.
template <int Pairs, int Rows, int N, int K, int64 AStride, int64 BStride, int64 CStride, int Width, int Stages,
          int Buffers, typename T, typename O>
__device__ __forceinline__ void outerOfPairs(const hopper_matmul::RowPair<T> (&pairs)[Pairs], O *c,
                                             unsigned char *scratch, int *done) {
  using namespace hopper_matmul;
  using Work = OuterOfPairs<Pairs, Rows, N, K, AStride, BStride, CStride, Width, T, O>;
  multiplyTiles<T, O, Width, Stages, Buffers>(Work(pairs, c), scratch, done);
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
