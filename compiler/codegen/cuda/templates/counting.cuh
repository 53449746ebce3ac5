// How many numbers are nearest to which power of two.

/// The counter of x, as runtime/support/ExponentCounts.h says.
template <int First, int Counters> __device__ __forceinline__ int exponentCounter(float x) {
  constexpr uint32 infinity = 0x7f800000, one = 0x3f800000, pastRootOfTwo = 0x3fb504f4;
  constexpr int mantissa = 23, bias = 127;
  const uint32 bits = __float_as_uint(x) & ~(1u << 31);
  // From the square root of two on a mantissa carries over into the exponent.
  const int exponent = int((bits + (one + (1u << mantissa) - pastRootOfTwo)) >> mantissa) - bias;
  return bits > infinity ? 0 : min(max(exponent - First, 0), Counters - 1);
}

/// Numbers side by side, which the blocks from `first` on share out.
template <typename T> struct Counted {
  const T *numbers;
  int64 count;
  uint32 first;
};

/// Counts a piece of so many numbers, multiplied by the factor first. 256 threads. Each lane has
/// counters in a bank of its own, so that it takes as long however numbers are distributed; sums of
/// whole numbers are the same in any order. `Aligned`: the numbers begin at a multiple of 16 bytes.
template <int First, int Counters, int64 Piece, bool Aligned, typename T>
__device__ __forceinline__ void countExponents(const Counted<T> &of, float factor, int *counts) {
  constexpr int threads = 256, lanes = 32, warps = threads / lanes;
  const int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
  __shared__ uint32 counters[Counters][lanes];
  for (int counter = warp; counter < Counters; counter += warps)
    counters[counter][lane] = 0;
  __syncthreads();
  auto add = [&](float x) {
    atomicAdd(&counters[exponentCounter<First, Counters>(x * factor)][lane], 1u);
  };
  int64 at = int64(blockIdx.x - of.first) * Piece;
  const int64 end = at + Piece < of.count ? at + Piece : of.count;
  if constexpr (Aligned) {
    constexpr int each = 16 / sizeof(T), step = threads * each, ahead = 4;
    auto addAll = [&](const uint4 &x) {
      const uint32 words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if constexpr (sizeof(T) == 4) {
          add(__uint_as_float(words[i]));
        } else {
          add(widenLow<T>(words[i]));
          add(widenHigh<T>(words[i]));
        }
    };
    const int64 whole = at + (end - at) / each * each;
    int64 i = at + threadIdx.x * each;
    for (; i + (ahead - 1) * step < whole; i += ahead * step) {
      uint4 pieces[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        pieces[a] = loadOnce(of.numbers + i + a * step);
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        addAll(pieces[a]);
    }
    for (; i < whole; i += step)
      addAll(loadOnce(of.numbers + i));
    at = whole;
  }
  for (int64 i = at + threadIdx.x; i < end; i += threads)
    add(widen(of.numbers[i]));
  __syncthreads();
  for (int counter = warp; counter < Counters; counter += warps) {
    uint32 sum = counters[counter][lane];
#pragma unroll
    for (int d = lanes / 2; d > 0; d /= 2)
      sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0 && sum > 0)
      atomicAdd(counts + counter, int(sum));
  }
}
