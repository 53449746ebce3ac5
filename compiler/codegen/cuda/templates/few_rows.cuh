// Matmuls of a few rows, c [M, N] = a [M, K] w [N, K]ᵀ (+ bias): what a decoding program multiplies.
//
// A warp has 16 Tiles rows of w, as the first operand of mma.sync; rows of a are its columns. A thread reads 16
// bytes of a row of w at a time and takes them for parts of two instructions: in which order k is summed does
// not matter, if both operands have the same, so fragments come straight from memory and nothing is staged.
// Warps of a block have the same rows and take k in turns; their sums are joined in their order. The first
// loads of w do not wait for what is in front of the kernel in its stream.
//
// Rows of w are of T, or of int8 (W), which have twice as many numbers in as many bytes: they are widened to T in
// registers, by bytes put behind an exponent, where tensor cores multiply them as they are. Their sums are multiplied
// by the scale of their row. Or bytes have two numbers (Int4Bytes), and 16 of them, which are a group, a scale, by which
// numbers are multiplied as they are widened: scales have so few bits that T has the products.
//
// Traffic: w once, a once for each block. Limit: memory. Assumes rows of a and w at multiples of 16 bytes, and K a
// multiple of the numbers of w in 16 bytes.

/// Two numbers of 4 bits, from -8 to 7: the lower one plus 8, the upper one as it is. Of 16 bytes the lower ones are the
/// numbers 0 to 15 of a row, and the upper ones 16 to 31 (Int4Groups.h).
struct Int4Bytes {
  int8 byte;
};

/// What 16 bytes of a row of w are to a thread: numbers, and how many parts they are widened in, since registers are few.
template <typename W> struct Loaded {
  static constexpr int numbers = 16 / int(sizeof(W)), parts = 1;
};
template <> struct Loaded<Int4Bytes> {
  static constexpr int numbers = 32, parts = 2;
};
template <typename W> __device__ constexpr int bytesOf(int numbers) { return numbers * 16 / Loaded<W>::numbers; }
/// The elements of a row from number k on.
template <typename W> __device__ __forceinline__ const W *behind(const W *row, int k) {
  return row + k * 16 / (Loaded<W>::numbers * int(sizeof(W)));
}

/// By what sums of a row are multiplied, where integers have a scale for each.
template <typename W, typename Scale> __device__ __forceinline__ float scaledSum(float sum, const Scale *scale, int row) {
  if constexpr (sizeof(W) == 1 && Loaded<W>::parts == 1)
    return sum * scale[row];
  return sum;
}
/// The scales from that of number k of a row on, where groups have some.
template <typename W, int K, typename Scale>
__device__ __forceinline__ const Scale *groupScales(const Scale *scale, int row, int k) {
  return Loaded<W>::parts == 1 ? scale : scale + row * int64(K / Loaded<W>::numbers) + k / Loaded<W>::numbers;
}
/// The bits of a group's scale, in a register of its own, which nothing waits for before it is used.
template <typename W, int K, typename Scale>
__device__ __forceinline__ uint32 groupScale(const Scale *scale, int row, int k) {
  if constexpr (Loaded<W>::parts == 1)
    return 0;
  else
    return *groupScales<W, K>(scale, row, k);
}

/// (x & mask) ^ on, which is one instruction only if it is asked for as one.
__device__ __forceinline__ uint32 maskedOn(uint32 x, uint32 mask, uint32 on) {
  uint32 y;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(y) : "r"(x), "r"(mask), "r"(on));
  return y;
}

/// Four integers as T, two in each half of the result; exact.
template <typename T> __device__ uint2 widenFour(uint32 integers);
/// 128 or 256 for the sign, and on top of 128 the other seven bits: their difference is the number.
template <> __device__ __forceinline__ uint2 widenFour<bf16>(uint32 integers) {
  auto two = [](uint32 apart) {
    const uint32 ahead = maskedOn(apart, 0x007f007fu, 0x43004300u), behind = maskedOn(apart, 0x00800080u, 0x43004300u);
    uint32 both;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(behind), "r"(0xbf80bf80u), "r"(ahead));
    return both;
  };
  return {two(__byte_perm(integers, 0, 0x4140)), two(__byte_perm(integers, 0, 0x4342))};
}
/// 128 more than the number on top of 1024, less 1152.
template <> __device__ __forceinline__ uint2 widenFour<f16>(uint32 integers) {
  auto two = [](uint32 ahead) {
    uint32 both;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(ahead), "r"(0x64806480u));
    return both;
  };
  const uint32 positive = integers ^ 0x80808080u;
  return {two(__byte_perm(positive, 0x64646464u, 0x4140)), two(__byte_perm(positive, 0x64646464u, 0x4342))};
}

/// Numbers of 4 bits, each above a number of T that they are counted from, times a scale: `above` is 8 and more than the
/// numbers, and so many times the scale is a number of T (17 or 9 times four bits).
template <typename T> struct Scaled4Bits;
template <> struct Scaled4Bits<bf16> {
  uint32 scale, offset;
  __device__ __forceinline__ explicit Scaled4Bits(uint32 of) : scale(of * 0x10001u) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(offset) : "r"(scale), "r"(0xc308c308u), "r"(0x80008000u)); // -136
  }
  /// Two of them; each half has two, of which the lower is 8 more than its number.
  __device__ __forceinline__ uint32 two(uint32 halves, bool upper) const {
    const uint32 above =
        upper ? maskedOn(halves >> 4, 0x000f000fu, 0x43084308u) : maskedOn(halves, 0x000f000fu, 0x43004300u);
    uint32 both;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(above), "r"(scale), "r"(offset));
    return both;
  }
};
template <> struct Scaled4Bits<f16> {
  uint32 scale, offset;
  __device__ __forceinline__ explicit Scaled4Bits(uint32 of) : scale(pack<f16>(widen(bf16(of)), widen(bf16(of)))) {
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(offset) : "r"(scale), "r"(0xd480d480u)); // -72
  }
  __device__ __forceinline__ uint32 two(uint32 halves, bool upper) const {
    const uint32 above =
        upper ? maskedOn(halves, 0x00f000f0u, 0x54805480u) : maskedOn(halves << 4, 0x00f000f0u, 0x54005400u);
    uint32 both;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(above), "r"(scale), "r"(offset));
    return both;
  }
};

/// A part of 16 bytes of a row of w as pairs of T, scaled where they are a group.
template <typename T>
__device__ __forceinline__ void pairsOf(const T *, uint4 of, int, uint32, uint32 (&to)[4]) {
  to[0] = of.x, to[1] = of.y, to[2] = of.z, to[3] = of.w;
}
template <typename T>
__device__ __forceinline__ void pairsOf(const Int4Bytes *, uint4 of, int part, uint32 scale, uint32 (&to)[8]) {
  const uint32 four[4] = {of.x, of.y, of.z, of.w};
  const Scaled4Bits<T> by(scale);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = by.two(__byte_perm(four[i], 0, 0x4140), part == 1);
    to[2 * i + 1] = by.two(__byte_perm(four[i], 0, 0x4342), part == 1);
  }
}
template <typename T>
__device__ __forceinline__ void pairsOf(const int8 *, uint4 of, int, uint32, uint32 (&to)[8]) {
  const uint32 four[4] = {of.x, of.y, of.z, of.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint2 wide = widenFour<T>(four[i]);
    to[2 * i] = wide.x, to[2 * i + 1] = wide.y;
  }
}
/// Adds the products of pairs of two rows of w and as many of a row of a. What is widened has two sums, so that of
/// twice as many instructions no more wait for each other.
template <typename T, int Pairs>
__device__ __forceinline__ void multiplyPairs(float (&sum)[Pairs / 4][4], const uint32 (&low)[Pairs], const uint32 (&high)[Pairs],
                                              const uint4 (&a)[Pairs / 4]) {
#pragma unroll
  for (int i = 0; i < Pairs / 4; ++i) {
    multiply<T>(sum[i], {low[4 * i], high[4 * i], low[4 * i + 1], high[4 * i + 1]}, a[i].x, a[i].y);
    multiply<T>(sum[i], {low[4 * i + 2], high[4 * i + 2], low[4 * i + 3], high[4 * i + 3]}, a[i].z, a[i].w);
  }
}

__device__ __forceinline__ float joined(const float (&sum)[1][4], int i) { return sum[0][i]; }
__device__ __forceinline__ float joined(const float (&sum)[2][4], int i) { return sum[0][i] + sum[1][i]; }

/// `Flight` pieces of 64 bytes of each row of w are loaded while as many are multiplied.
template <typename T, typename C, int M, int N, int K, int64 StrideA, int64 StrideW, int64 StrideC, int Tiles,
          int Warps, int Flight, bool Bias, typename W, typename Scale = float>
__device__ __forceinline__ void fewRowsMatmul(const T *a, const W *w, const C *bias, C *c,
                                              const Scale *scale = nullptr) {
  constexpr int mine = Loaded<W>::numbers, piece = 4 * mine; // numbers of a thread, and of the four of a row
  constexpr int parts = Loaded<W>::parts, pairs = mine / 2 / parts, loads = pairs / 4; // of w, and of a in 16 bytes
  constexpr int columns = (M + 7) / 8, pieces = (K + piece - 1) / piece;
  constexpr int rounds = (pieces + Warps * Flight - 1) / (Warps * Flight);
  constexpr int rows = 16 * Tiles, width = 8 * columns + 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, first = blockIdx.x * rows;
  const W *row[Tiles][2];
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      row[i][half] = w + int64(min(first + i * 16 + half * 8 + group, N - 1)) * StrideW;

  struct Round {
    uint4 w[Flight][Tiles][2], a[Flight][columns][parts][loads];
    uint32 scale[Flight][Tiles][2];
  };
  auto offset = [&](int round, int u) {
    return ((round * Flight + u) * Warps + warp) * piece + lane % 4 * mine;
  };
  auto loadW = [&](Round &to, int round) {
#pragma unroll
    for (int u = 0; u < Flight; ++u)
#pragma unroll
      for (int i = 0; i < Tiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int k = offset(round, u);
          to.w[u][i][half] = k < K ? loadOnce(behind(row[i][half], k)) : uint4{};
        }
  };
  auto loadA = [&](Round &to, int round) {
#pragma unroll
    for (int u = 0; u < Flight; ++u) {
      const int k = offset(round, u);
#pragma unroll
      for (int i = 0; i < 2 * Tiles; ++i)
        to.scale[u][i / 2][i % 2] =
            k < K ? groupScale<W, K>(scale, min(first + i * 8 + group, N - 1), k) : 0;
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int l = 0; l < parts * loads; ++l) {
          int r = j * 8 + group;
          to.a[u][j][l / loads][l % loads] =
              k < K && r < M ? *reinterpret_cast<const uint4 *>(a + r * StrideA + k + 8 * l) : uint4{};
        }
    }
  };

  float sums[Tiles][columns][loads][4] = {};
  auto multiplyRound = [&](const Round &of) {
#pragma unroll
    for (int u = 0; u < Flight; ++u)
#pragma unroll
      for (int i = 0; i < parts * Tiles; ++i) {
        const int tile = i / parts, part = i % parts;
        uint32 low[pairs], high[pairs];
        pairsOf<T>(w, of.w[u][tile][0], part, of.scale[u][tile][0], low);
        pairsOf<T>(w, of.w[u][tile][1], part, of.scale[u][tile][1], high);
#pragma unroll
        for (int j = 0; j < columns; ++j)
          multiplyPairs<T>(sums[tile][j], low, high, of.a[u][j][part]);
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

  __shared__ float all[Warps][rows][width];
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int x = 0; x < 4; ++x)
        all[warp][i * 16 + x / 2 * 8 + group][j * 8 + lane % 4 * 2 + x % 2] = joined(sums[i][j], x);
  __syncthreads();
  for (int i = threadIdx.x; i < rows * M; i += Warps * 32) {
    int n = i % rows, m = i / rows;
    if (first + n >= N)
      continue;
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < Warps; ++p)
      sum += all[p][n][m];
    sum = scaledSum<W>(sum, scale, first + n);
    if (Bias)
      sum += widen(bias[first + n]);
    assign(c[m * StrideC + first + n], sum);
  }
}
