// Matmuls of a few rows, c [M, N] = a [M, K] w [N, K]ᵀ (+ bias): what a decoding program multiplies.
//
// A warp has 16 Tiles rows of w, as the first operand of mma.sync; rows of a are its columns. A thread reads 16
// bytes of a row of w at a time and takes them for parts of two instructions: in which order k is summed does
// not matter, if both operands have the same, so fragments come straight from memory and nothing is staged.
// Warps of a block have the same rows and take k in turns; their sums are joined in their order. The first
// loads of w do not wait for what is in front of the kernel in its stream.
//
// Traffic: w once, a once for each block. Limit: memory. Assumes K, and the strides of a and w, to be
// multiples of 8, and rows at multiples of 16 bytes.

/// `Flight` pieces of 32 numbers of each row of w are loaded while as many are multiplied.
template <typename T, typename C, int M, int N, int K, int64 StrideA, int64 StrideW, int64 StrideC, int Tiles,
          int Warps, int Flight, bool Bias>
__device__ __forceinline__ void fewRowsMatmul(const T *a, const T *w, const C *bias, C *c) {
  constexpr int columns = (M + 7) / 8, pieces = (K + 31) / 32, rounds = (pieces + Warps * Flight - 1) / (Warps * Flight);
  constexpr int rows = 16 * Tiles, width = 8 * columns + 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, first = blockIdx.x * rows;
  const T *row[Tiles][2];
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      row[i][half] = w + int64(min(first + i * 16 + half * 8 + group, N - 1)) * StrideW;

  struct Round {
    uint4 w[Flight][Tiles][2], a[Flight][columns];
  };
  auto offset = [&](int round, int u) { return ((round * Flight + u) * Warps + warp) * 32 + lane % 4 * 8; };
  auto loadW = [&](Round &to, int round) {
#pragma unroll
    for (int u = 0; u < Flight; ++u)
#pragma unroll
      for (int i = 0; i < Tiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int k = offset(round, u);
          to.w[u][i][half] = k < K ? loadOnce(row[i][half] + k) : uint4{};
        }
  };
  auto loadA = [&](Round &to, int round) {
#pragma unroll
    for (int u = 0; u < Flight; ++u)
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        int k = offset(round, u), r = j * 8 + group;
        to.a[u][j] = k < K && r < M ? *reinterpret_cast<const uint4 *>(a + r * StrideA + k) : uint4{};
      }
  };

  float sums[Tiles][columns][4] = {};
  auto multiplyRound = [&](const Round &of) {
#pragma unroll
    for (int u = 0; u < Flight; ++u)
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
        const uint4 low = of.w[u][i][0], high = of.w[u][i][1];
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          multiply<T>(sums[i][j], {low.x, high.x, low.y, high.y}, of.a[u][j].x, of.a[u][j].y);
          multiply<T>(sums[i][j], {low.z, high.z, low.w, high.w}, of.a[u][j].z, of.a[u][j].w);
        }
      }
  };
  Round even, odd;
  loadW(even, 0);
  waitForEarlier();
  loadA(even, 0);
#pragma unroll 1
  for (int round = 0; round < rounds; round += 2) {
    if (round + 1 < rounds) {
      loadW(odd, round + 1);
      loadA(odd, round + 1);
    }
    multiplyRound(even);
    if (round + 2 < rounds) {
      loadW(even, round + 2);
      loadA(even, round + 2);
    }
    if (round + 1 < rounds)
      multiplyRound(odd);
  }

  __shared__ float parts[Warps][rows][width];
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int x = 0; x < 4; ++x)
        parts[warp][i * 16 + x / 2 * 8 + group][j * 8 + lane % 4 * 2 + x % 2] = sums[i][j][x];
  __syncthreads();
  for (int i = threadIdx.x; i < rows * M; i += Warps * 32) {
    int n = i % rows, m = i / rows;
    if (first + n >= N)
      continue;
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < Warps; ++p)
      sum += parts[p][n][m];
    if (Bias)
      sum += widen(bias[first + n]);
    assign(c[m * StrideC + first + n], sum);
  }
}
