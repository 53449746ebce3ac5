// Matmuls of rows in groups, which have a matrix each. Where groups begin is on the device: a block finds
// its tile from the offsets, and the grid has as many blocks as tiles can be.
//
// c = a b with a [M, K], b [K, N], and products summed in rising order of k, in f32. Either factor may be
// stored as it is or transposed. Tiled: 16-bit operands on tensor cores (mma.sync), 128 x 128 of c a block
// of 8 warps, 64 x 32 a warp; 32 of K at a time, of which four are fetched ahead (cp.async). Tiles have
// rows padded by 16 bytes, so that ldmatrix meets no bank twice. Assumes rows of 16-byte pieces. Traffic: a
// and b once for every 128 columns and rows, from L2. Limit: the rate of mma.sync, about two thirds of what
// wgmma reaches. Plain: any type and any size, 64 x 64 of c a block of 256 threads. Limit: the rate of f32.
namespace grouped {

/// The rows [first, end) of c that a block computes; group -1: none, Groups: rows without a group.
struct Tile {
  int group, first, end;
};

/// Where a group begins, within the rows that there are whatever offsets say.
template <int Rows, int Groups> __device__ __forceinline__ int beginOf(const int *offsets, int e) {
  return e > Groups ? Rows : e == 0 ? 0 : min(max(offsets[e], 0), Rows);
}

/// The tile of that number, of `Height` rows or fewer: groups one after the other, then rows without one.
template <int Rows, int Groups, int Height>
__device__ __forceinline__ Tile findTile(const int *offsets, int number) {
  constexpr int lanes = 32;
  int lane = threadIdx.x % lanes;
  for (int base = 0; base <= Groups; base += lanes) {
    int e = base + lane;
    int begin = beginOf<Rows, Groups>(offsets, min(e, Groups + 1));
    int end = beginOf<Rows, Groups>(offsets, min(e + 1, Groups + 1));
    int tiles = (max(end - begin, 0) + Height - 1) / Height, sum = tiles;
#pragma unroll
    for (int d = 1; d < lanes; d *= 2) {
      int before = __shfl_up_sync(~0u, sum, d);
      sum += lane >= d ? before : 0;
    }
    uint32 reached = __ballot_sync(~0u, sum > number);
    if (reached) {
      int found = __ffs(reached) - 1;
      int first = begin + (number - (sum - tiles)) * Height;
      Tile tile{e, first, min(end, first + Height)};
      return {__shfl_sync(~0u, tile.group, found), __shfl_sync(~0u, tile.first, found),
              __shfl_sync(~0u, tile.end, found)};
    }
    number -= __shfl_sync(~0u, sum, lanes - 1);
  }
  return {-1, 0, 0};
}

/// The tile of rows, and the column, of a block of y: eight tiles of rows go through all columns before the
/// next eight, so that blocks that run together read the same rows and weights.
template <int Rows, int Groups, int N, int Side> struct Place {
  static constexpr int64 tiles = Rows < (Rows + (Groups + 1) * (Side - int64(1))) / Side
                                     ? Rows
                                     : (Rows + (Groups + 1) * (Side - int64(1))) / Side;
  static constexpr int64 columns = (N + Side - 1) / Side, band = 8;
  Tile tile;
  int column;

  __device__ __forceinline__ explicit Place(const int *offsets) {
    int64 number = blockIdx.x, first = number / (band * columns) * band, inBand = number % (band * columns);
    int64 height = tiles - first < band ? tiles - first : band;
    tile = findTile<Rows, Groups, Side>(offsets, int(first + inBand % height));
    column = int(inBand / height * Side);
  }
};

/// A factor: rows that are summed over are columns of it, or rows. Stride: between what is stored as rows.
template <typename T, bool BySum, int64 Stride> struct Factor {
  const T *base;
  int limit, sums; // how many rows (columns of the other factor) there are, and how many are summed

  static constexpr bool bySum = BySum;
  __device__ __forceinline__ T at(int row, int k) const { return base[(BySum ? k * Stride + row : row * Stride + k)]; }
};

constexpr int kSide = 128, kDepth = 32, kStages = 4, kBlockThreads = 256;
/// Numbers of a tile of one factor in shared memory.
constexpr int kTileNumbers = kSide * (kDepth + 8);
static_assert(kDepth * (kSide + 8) <= kTileNumbers);

/// Starts copying the sums [k, k + kDepth) of the rows [row, row + kSide) of a factor; zeros where it ends.
template <typename F, typename T>
__device__ __forceinline__ void fetch(T *to, const F &from, int row, int k) {
  constexpr int64 columns = F::bySum ? kSide : kDepth, rows = F::bySum ? kDepth : kSide, pieces = columns / 8;
#pragma unroll
  for (int i = threadIdx.x; i < rows * pieces; i += kBlockThreads) {
    int r = i / pieces, c = i % pieces * 8;
    int atRow = row + (F::bySum ? c : r), atSum = k + (F::bySum ? r : c);
    bool exists = atRow < from.limit && atSum < from.sums;
    copyAsync(to + r * (columns + 8) + c, exists ? from.address(atRow, atSum) : from.base, exists);
  }
}

template <typename T, bool BySum, int64 Stride> struct TiledFactor : Factor<T, BySum, Stride> {
  __device__ __forceinline__ const T *address(int row, int k) const {
    return this->base + (BySum ? k * Stride + row : row * Stride + k);
  }
};

/// 16 rows of the first factor, sixteen sums.
template <bool BySum, typename T>
__device__ __forceinline__ void loadRows(uint32 (&a)[4], const T *tile, int row, int k) {
  int lane = threadIdx.x % 32;
  if constexpr (BySum)
    loadTransposed(a, tile + (k + lane / 16 * 8 + lane % 8) * (kSide + 8) + row + lane / 8 % 2 * 8);
  else
    loadMatrices(a, tile + (row + lane % 16) * (kDepth + 8) + k + lane / 16 * 8);
}
/// 16 columns of the second factor, sixteen sums: two for each eight columns.
template <bool BySum, typename T>
__device__ __forceinline__ void loadColumns(uint32 (&b)[4], const T *tile, int column, int k) {
  int lane = threadIdx.x % 32;
  if constexpr (BySum)
    loadTransposed(b, tile + (k + lane / 8 % 2 * 8 + lane % 8) * (kSide + 8) + column + lane / 16 * 8);
  else
    loadMatrices(b, tile + (column + lane / 16 * 8 + lane % 8) * (kDepth + 8) + k + lane / 8 % 2 * 8);
}

__device__ __forceinline__ void storePair(float *to, float x, float y) {
  *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}
template <typename O> __device__ __forceinline__ void storePair(O *to, float x, float y) {
  *reinterpret_cast<uint32 *>(to) = pack<O>(x, y);
}

/// The block's 128 x 128 of c from (row, column) on, up to the limits of the factors.
template <int64 Stride, typename A, typename B, typename T, typename O>
__device__ __forceinline__ void multiplyTiled(const A &a, const B &b, O *c, int row, int column, T *shared) {
  constexpr int M = 4, N = 4;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int warpRow = warp / 4 * 64, warpColumn = warp % 4 * 32;
  float sums[M][N][4];
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[m][n][i] = 0.0f;
  const int steps = (a.sums + kDepth - 1) / kDepth;
  auto start = [&](int step) {
    if (step < steps) {
      T *stage = shared + step % kStages * 2 * kTileNumbers;
      fetch(stage, a, row, step * kDepth);
      fetch(stage + kTileNumbers, b, column, step * kDepth);
    }
    commitCopies();
  };
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step)
    start(step);
  for (int step = 0; step < steps; ++step) {
    waitForCopies<kStages - 2>();
    __syncthreads(); // all see this stage, and none reads the one before, which is filled next
    start(step + kStages - 1);
    const T *tileA = shared + step % kStages * 2 * kTileNumbers, *tileB = tileA + kTileNumbers;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      uint32 rows[M][4], columns[N / 2][4];
#pragma unroll
      for (int m = 0; m < M; ++m)
        loadRows<A::bySum>(rows[m], tileA, warpRow + m * 16, k);
#pragma unroll
      for (int n = 0; n < N / 2; ++n)
        loadColumns<B::bySum>(columns[n], tileB, warpColumn + n * 16, k);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < N; ++n)
          multiply<T>(sums[m][n], rows[m], columns[n / 2][n % 2 * 2], columns[n / 2][n % 2 * 2 + 1]);
    }
  }
  waitForCopies<0>();
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int r = row + warpRow + m * 16 + lane / 4 + half * 8, col = column + warpColumn + n * 8 + lane % 4 * 2;
        if (r < a.limit && col < b.limit)
          storePair(c + r * Stride + col, sums[m][n][half * 2], sums[m][n][half * 2 + 1]);
      }
}

/// What is multiplied: a number of f32, perhaps rounded to tf32.
template <bool Tf32> __device__ __forceinline__ float factor(float x) {
  if constexpr (Tf32) {
    // To the nearest, of two the even one, as executors on CPUs round.
    uint32 bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) != 0x7f800000u)
      bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
    return __uint_as_float(bits);
  }
  return x;
}

constexpr int kPlainSide = 64, kPlainDepth = 16;
/// The sums [k, k + kPlainDepth) of the rows from `row` on; zeros where the factor ends.
template <bool Tf32, typename F>
__device__ __forceinline__ void loadPlain(float (&tile)[kPlainDepth][kPlainSide + 1], const F &from, int row, int k) {
  for (int i = threadIdx.x; i < kPlainDepth * kPlainSide; i += kBlockThreads) {
    int r = F::bySum ? i % kPlainSide : i / kPlainDepth, s = F::bySum ? i / kPlainSide : i % kPlainDepth;
    bool exists = row + r < from.limit && k + s < from.sums;
    tile[s][r] = exists ? factor<Tf32>(widen(from.at(row + r, k + s))) : 0.0f;
  }
}
/// The same for any type and any size: the block's 64 x 64 of c.
template <int64 Stride, bool Tf32, typename A, typename B, typename O>
__device__ __forceinline__ void multiplyPlain(const A &a, const B &b, O *c, int row, int column) {
  __shared__ float tileA[kPlainDepth][kPlainSide + 1], tileB[kPlainDepth][kPlainSide + 1];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sums[4][4] = {};
  for (int k = 0; k < a.sums; k += kPlainDepth) {
    loadPlain<Tf32>(tileA, a, row, k);
    loadPlain<Tf32>(tileB, b, column, k);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kPlainDepth; ++s)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          sums[i][j] = fmaf(tileA[s][y + 16 * i], tileB[s][x + 16 * j], sums[i][j]);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int r = row + y + 16 * i, col = column + x + 16 * j;
      if (r < a.limit && col < b.limit)
        assign(c[r * Stride + col], sums[i][j]);
    }
}

/// Zeros in the rows of a tile, of the columns [column, column + side).
template <int N, typename O> __device__ __forceinline__ void clearTile(O *y, const Tile &tile, int column, int side) {
  for (int i = threadIdx.x; i < (tile.end - tile.first) * side; i += kBlockThreads)
    if (int col = column + i % side; col < N)
      assign(y[int64(tile.first + i / side) * N + col], 0.0f);
}

} // namespace grouped

/// y = x w^T by groups, or x w where `Transposed`. A block for each tile of rows and columns.
template <int Rows, int Groups, int N, int K, bool Transposed, typename T, typename O>
__device__ __forceinline__ void groupedLinear(const T *x, const T *w, const int *offsets, O *y) {
  using namespace grouped;
  extern __shared__ __align__(16) unsigned short shared16[];
  Place<Rows, Groups, N, kSide> at(offsets);
  Tile tile = at.tile;
  int column = at.column;
  if (tile.group < 0)
    return;
  if (tile.group == Groups)
    return clearTile<N>(y, tile, column, kSide);
  TiledFactor<T, false, K> a{{x, tile.end, K}};
  TiledFactor<T, Transposed, Transposed ? N : K> b{{w + int64(tile.group) * N * K, N, K}};
  multiplyTiled<N>(a, b, y, tile.first, column, reinterpret_cast<T *>(shared16));
}
template <int Rows, int Groups, int N, int K, bool Transposed, bool Tf32, typename T, typename O>
__device__ __forceinline__ void groupedLinearPlain(const T *x, const T *w, const int *offsets, O *y) {
  using namespace grouped;
  Place<Rows, Groups, N, kPlainSide> at(offsets);
  Tile tile = at.tile;
  int column = at.column;
  if (tile.group < 0)
    return;
  if (tile.group == Groups)
    return clearTile<N>(y, tile, column, kPlainSide);
  Factor<T, false, K> a{x, tile.end, K};
  Factor<T, Transposed, Transposed ? N : K> b{w + int64(tile.group) * N * K, N, K};
  multiplyPlain<N, Tf32>(a, b, y, tile.first, column);
}

/// c[e] = a^T b over the rows of group e: a block for each tile of columns (x), rows (y) and group (z).
template <int Rows, int Groups, int N, int K, typename T, typename O>
__device__ __forceinline__ void groupedOuter(const T *a, const T *b, const int *offsets, O *c) {
  using namespace grouped;
  extern __shared__ __align__(16) unsigned short shared16[];
  int e = blockIdx.z, begin = beginOf<Rows, Groups>(offsets, e), end = beginOf<Rows, Groups>(offsets, e + 1);
  int rows = max(end - begin, 0);
  TiledFactor<T, true, N> left{{a + int64(begin) * N, N, rows}};
  TiledFactor<T, true, K> right{{b + int64(begin) * K, K, rows}};
  multiplyTiled<K>(left, right, c + int64(e) * N * K, blockIdx.y * kSide, blockIdx.x * kSide,
                   reinterpret_cast<T *>(shared16));
}
template <int Rows, int Groups, int N, int K, bool Tf32, typename T, typename O>
__device__ __forceinline__ void groupedOuterPlain(const T *a, const T *b, const int *offsets, O *c) {
  using namespace grouped;
  int e = blockIdx.z, begin = beginOf<Rows, Groups>(offsets, e), end = beginOf<Rows, Groups>(offsets, e + 1);
  int rows = max(end - begin, 0);
  Factor<T, true, N> left{a + int64(begin) * N, N, rows};
  Factor<T, true, K> right{b + int64(begin) * K, K, rows};
  multiplyPlain<K, Tf32>(left, right, c + int64(e) * N * K, blockIdx.y * kPlainSide, blockIdx.x * kPlainSide);
}
