// Rows in registers, rounded, whose pairs of numbers are rotated by the position of the row as they are stored (RoPE). What is
// stored has the bits of a generated kernel (RowKernelEmitter::rotate) that would read the rows and write them rotated.

/// Rows are stored as they are.
struct Unrotated {};

/// Pairs of numbers 2 i and 2 i + 1 of a row, or with `Halves` i and i + Width / 2, are turned by an angle: the position of
/// the row times the frequency of the pair. `Back`: the other way round.
template <bool Halves, bool Back, typename Position> struct Rotation {
  const double *frequencies; // of pairs
  Position position;         // (sequence, row) -> a whole number
};
template <bool Halves, bool Back, typename Position>
__device__ __forceinline__ Rotation<Halves, Back, Position> rotation(const double *frequencies, Position position) {
  return {frequencies, position};
}

/// With the operations of generated kernels: a number times the cosine, and the other one of the pair times the sine.
template <bool Back> __device__ __forceinline__ void turnPair(float &x, float &y, double angle) {
  float sine, cosine;
  sineAndCosine(angle, sine, cosine);
  const float ofFirst = Back ? sine : -sine, first = __fadd_rn(__fmul_rn(x, cosine), __fmul_rn(y, ofFirst));
  y = __fadd_rn(__fmul_rn(y, cosine), __fmul_rn(x, -ofFirst));
  x = first;
}

/// Writes the 16 rows of a warp from `row`, of which there are `rows`; row 0 is `first` of its sequence.
template <int Width, typename T>
__device__ __forceinline__ void storeRotated(T *to, int64 stride, const float (&c)[Width / 8][4], Unrotated, int, int,
                                             int row, int rows) {
  storeRows<Width>(to, stride, c, 1.0f, 1.0f, row, rows);
}
template <int Width, typename T, bool Halves, bool Back, typename Position>
__device__ __forceinline__ void storeRotated(T *to, int64 stride, const float (&c)[Width / 8][4],
                                             Rotation<Halves, Back, Position> r, int sequence, int first, int row,
                                             int rows) {
  const int lane = threadIdx.x % 32, column = lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = row + lane / 4 + 8 * half;
    if (at >= rows)
      continue;
    const double position = r.position(sequence, first + at);
    T *const line = to + at * stride + column;
    if constexpr (Halves) {
      constexpr int pairs = Width / 2, parts = pairs / 8;
#pragma unroll
      for (int n = 0; n < parts; ++n) {
        const double *frequencies = r.frequencies + n * 8 + column;
        const uint32 low = pack<T>(c[n][2 * half], c[n][2 * half + 1]),
                     high = pack<T>(c[n + parts][2 * half], c[n + parts][2 * half + 1]);
        float x[2] = {widenLow<T>(low), widenHigh<T>(low)}, y[2] = {widenLow<T>(high), widenHigh<T>(high)};
#pragma unroll
        for (int i = 0; i < 2; ++i)
          turnPair<Back>(x[i], y[i], __dmul_rn(position, frequencies[i]));
        *reinterpret_cast<uint32 *>(line + n * 8) = pack<T>(x[0], x[1]);
        *reinterpret_cast<uint32 *>(line + n * 8 + pairs) = pack<T>(y[0], y[1]);
      }
    } else {
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) {
        const uint32 both = pack<T>(c[n][2 * half], c[n][2 * half + 1]);
        float x = widenLow<T>(both), y = widenHigh<T>(both);
        turnPair<Back>(x, y, __dmul_rn(position, r.frequencies[n * 4 + column / 2]));
        *reinterpret_cast<uint32 *>(line + n * 8) = pack<T>(x, y);
      }
    }
  }
}
