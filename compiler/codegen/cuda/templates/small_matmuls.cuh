// Many matmuls of small matrices, whose batch need not lie at one distance: a block brings both matrices of
// one whole to shared memory, in whatever order they lie, and multiplies them on tensor cores (mma.sync) as a
// loop's kernel does, with sums in f32 in rising order of k. Traffic: every operand and result once. Limit: the
// memory's rate, since matrices that fit have few products for a byte; blocks that are in flight together hide
// the wait for both.

/// A matrix [Rows, Columns] of 16-bit floats in memory, element (i, j) at i * Down + j * Across, one of which
/// is 1, in lines of whole pieces of 16 bytes; and its place in shared memory, where columns of lines meet all banks.
template <typename T, int Rows, int Columns, int64 Down, int64 Across> struct SmallMatrix {
  static constexpr bool byRows = Across == 1;
  static constexpr int lines = byRows ? Rows : Columns, pieces = (byRows ? Columns : Rows) / 8;
  static constexpr int line = pieces * 8 + 8, numbers = lines * line; ///< in shared memory
  static constexpr int64 apart = byRows ? Down : Across;              ///< lines, in memory
  using Near = Matrix<T, Rows, Columns, byRows ? line : 1, byRows ? 1 : line, 16, true>;
  const T *data;

  /// Begins to copy it, by all threads.
  template <int Threads> __device__ __forceinline__ void fetch(T *to) const {
#pragma unroll
    for (int e = threadIdx.x; e < lines * pieces; e += Threads)
      copyAsync(to + e / pieces * line + e % pieces * 8, data + e / pieces * apart + e % pieces * 8, true);
  }
};

/// c = a b, or c + a b, of one batch: a [M, K], b given as its transpose [N, K], c anywhere in memory.
template <bool Accumulate, int Threads, typename T, typename C, typename A, typename B>
__device__ __forceinline__ void multiplySmall(const C &c, const A &a, const B &b, const T *) {
  extern __shared__ __align__(16) unsigned short shared16[];
  T *nearA = reinterpret_cast<T *>(shared16), *nearB = nearA + A::numbers;
  a.template fetch<Threads>(nearA);
  b.template fetch<Threads>(nearB);
  commitCopies();
  waitForCopies<0>();
  __syncthreads();
  const typename A::Near x{nearA};
  const typename B::Near y{nearB};
  for (int unit = threadIdx.x / 32; unit < Units<A::Near::rows, B::Near::rows>::count; unit += Threads / 32)
    multiplyUnit<Accumulate, T>(c, x, y, unit);
}
