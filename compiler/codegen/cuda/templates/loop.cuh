// Steps of a loop that one block runs for its slice of all tensors: matmuls and what groups need.

constexpr int kLoopThreads = 512, kLoopWarps = kLoopThreads / 32;

/// The nearest number of T.
template <typename T> __device__ __forceinline__ float rounded(float x) {
  return widenHigh<T>(pack<T>(0.0f, x));
}
template <typename T> __device__ __forceinline__ float roundedByte(float x) {
  T byte;
  assign(byte, x);
  return widen(byte);
}
#if __CUDA_ARCH__ >= 890
template <> __device__ __forceinline__ float rounded<e4m3>(float x) { return roundedByte<e4m3>(x); }
template <> __device__ __forceinline__ float rounded<e5m2>(float x) { return roundedByte<e5m2>(x); }
#endif
/// The nearest number with 10 bits behind the point, as tensor cores would multiply it.
__device__ __forceinline__ float roundedToTF32(float x) {
  uint32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}
__device__ __forceinline__ float exponential(float x) { return exp2Approx(__fmul_rn(x, kLog2e)); }
/// The largest power of two that is no larger than x >= 0.
__device__ __forceinline__ float powerOfTwo(float x) {
  return x != x ? x : __int_as_float(__float_as_int(x) & 0x7f800000);
}
__device__ __forceinline__ float sigmoid(float x) {
  return __fdividef(1.0f, __fadd_rn(1.0f, exponential(-x)));
}

/// One number of a pair that is turned by an angle, as generated kernels do it: of the first of both `minus` is true, or of
/// the second where it is turned back.
__device__ __forceinline__ float turned(float x, float other, double angle, bool minus) {
  float sin, cos;
  sineAndCosine(angle, sin, cos);
  return __fadd_rn(__fmul_rn(x, cos), __fmul_rn(other, minus ? -sin : sin));
}

/// Over so many lanes side by side.
template <bool Max, int Lanes> __device__ __forceinline__ float overLanes(float x) {
#pragma unroll
  for (int distance = Lanes / 2; distance > 0; distance /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, x, distance);
    x = Max ? larger(x, other) : __fadd_rn(x, other);
  }
  return x;
}

/// Over `Lanes` threads side by side, by all of a team: `Threads` of a block from `First` on, with a barrier of their own.
/// `Number` tells calls of a team apart: each has shared memory of its own.
template <bool Max, int Lanes, int Number, int Threads, int First, int Barrier>
__device__ __forceinline__ float overTeam(float x) {
  constexpr int warps = Lanes / 32;
  __shared__ float parts[Threads / 32];
  const int warp = (threadIdx.x - First) / 32, lane = threadIdx.x % 32;
  x = overLanes<Max, 32>(x);
  if (lane == 0)
    parts[warp] = x;
  asm volatile("bar.sync %0, %1;" ::"n"(Barrier), "n"(Threads) : "memory");
  return overLanes<Max, warps>(parts[warp / warps * warps + lane % warps]);
}

/// Over `Warps` warps side by side, of which each lane has one number, by all threads of a block. `parts`: room for a number
/// of each warp of the block, which nothing else has had since the last barrier.
template <bool Max, int Warps> __device__ __forceinline__ float overWarps(float x, float *parts) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  x = overLanes<Max, 32>(x);
  if (lane == 0)
    parts[warp] = x;
  __syncthreads();
  return overLanes<Max, Warps>(parts[warp / Warps * Warps + lane % Warps]);
}

/// Over numbers of one thread, in the order in which as many lanes would.
template <bool Max, int Left, int Count> __device__ __forceinline__ float overOwn(float (&x)[Count]) {
  if constexpr (Left > 1) {
#pragma unroll
    for (int i = 0; i < Left / 2; ++i)
      x[i] = Max ? larger(x[i], x[i + Left / 2]) : __fadd_rn(x[i], x[i + Left / 2]);
    return overOwn<Max, Left / 2>(x);
  }
  return x[0];
}

__device__ __forceinline__ void loadFour(float *to, const float *from) {
  const float4 x = *reinterpret_cast<const float4 *>(from);
  to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}
template <typename T> __device__ __forceinline__ void loadFour(float *to, const T *from) {
  const uint2 x = *reinterpret_cast<const uint2 *>(from);
  to[0] = widenLow<T>(x.x), to[1] = widenHigh<T>(x.x);
  to[2] = widenLow<T>(x.y), to[3] = widenHigh<T>(x.y);
}
__device__ __forceinline__ void storeFour(float *to, const float *from) {
  *reinterpret_cast<float4 *>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
template <typename T> __device__ __forceinline__ void storeFour(T *to, const float *from) {
  *reinterpret_cast<uint2 *>(to) = make_uint2(pack<T>(from[0], from[1]), pack<T>(from[2], from[3]));
}
__device__ __forceinline__ void loadTwo(float (&to)[2], const float *from) {
  const float2 x = *reinterpret_cast<const float2 *>(from);
  to[0] = x.x, to[1] = x.y;
}
template <typename T> __device__ __forceinline__ void loadTwo(float (&to)[2], const T *from) {
  const uint32 x = *reinterpret_cast<const uint32 *>(from);
  to[0] = widenLow<T>(x), to[1] = widenHigh<T>(x);
}
__device__ __forceinline__ void storeTwo(float *to, float x, float y) {
  *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}
template <typename T> __device__ __forceinline__ void storeTwo(T *to, float x, float y) {
  *reinterpret_cast<uint32 *>(to) = pack<T>(x, y);
}

/// A matrix whose element (i, j) lies at i * Down + j * Across; its rows or columns, whichever lie densely,
/// begin at multiples of `Alignment` bytes.
template <typename T, int Rows, int Columns, int Down, int Across, int Alignment, bool Shared> struct Matrix {
  static constexpr int rows = Rows, columns = Columns;
  static constexpr bool whole = Rows % 16 == 0 && Columns % 16 == 0;
  /// Whether pieces of 8 x 8 numbers can be read as matrices, as they lie or transposed.
  static constexpr bool pieces = Shared && whole && Alignment >= 16 && sizeof(T) == 2;
  static constexpr bool pairs = Across == 1 && whole && Alignment >= 8;
  T *data;
  __device__ __forceinline__ T *at(int i, int j) const { return data + i * Down + j * Across; }
  __device__ __forceinline__ bool inside(int i, int j) const { return whole || (i < Rows && j < Columns); }
  __device__ __forceinline__ T get(int i, int j) const { return inside(i, j) ? *at(i, j) : T{}; }
  /// Elements (i, j) and (i, j + 1) of 16 bits; zeros outside.
  __device__ __forceinline__ uint32 pairAcross(int i, int j) const {
    if constexpr (pairs)
      return *reinterpret_cast<const uint32 *>(at(i, j));
    else
      return bitsOf(get(i, j)) | bitsOf(get(i, j + 1)) << 16;
  }
  /// Four 8 x 8 pieces of the 16 x 16 elements from (i, j), in the lanes as `multiply` takes them: first
  /// the lower or the right neighbour of the first piece.
  template <bool LowerFirst> __device__ __forceinline__ void load(uint32 (&r)[4], int i, int j) const {
    const int lane = threadIdx.x % 32;
    if constexpr (pieces && (Across == 1 || Down == 1)) {
      const int second = lane / 8 % 2 * 8, third = lane / 16 * 8;
      const int lower = LowerFirst ? second : third, right = LowerFirst ? third : second;
      if constexpr (Across == 1)
        loadMatrices(r, at(i + lower + lane % 8, j + right));
      else
        loadTransposed(r, at(i + lower, j + right + lane % 8));
    } else {
      const int group = lane / 4, pair = lane % 4 * 2;
      r[0] = pairAcross(i + group, j + pair);
      r[LowerFirst ? 1 : 2] = pairAcross(i + group + 8, j + pair);
      r[LowerFirst ? 2 : 1] = pairAcross(i + group, j + pair + 8);
      r[3] = pairAcross(i + group + 8, j + pair + 8);
    }
  }
};

/// c = a b, or c + a b: a [M, K], b given as its transpose [N, K]. 16-bit floats by the tensor cores, 16 or
/// 32 x 16 of c for a warp at a time, first for warp `First`; others number by number, with `TF32` rounded to that
/// first.
template <bool Accumulate, int First, bool TF32 = false, typename C, typename A, typename B>
__device__ __forceinline__ void multiplySlice(const C &c, const A &a, const B &b, float *, float *) {
  const auto operand = [](float x) { return TF32 ? roundedToTF32(x) : x; };
  constexpr int M = A::rows, K = A::columns, N = B::rows;
  for (int e = threadIdx.x; e < M * N; e += kLoopThreads) {
    const int m = e / N, n = e % N;
    float sum = Accumulate ? widen(*c.at(m, n)) : 0.0f;
#pragma unroll 8
    for (int k = 0; k < K; ++k)
      sum = fmaf(operand(*a.at(m, k)), operand(*b.at(n, k)), sum);
    assign(*c.at(m, n), sum);
  }
}

/// How many units of 16 or 32 x 16 numbers a matrix [M, N] is cut into, and how they lie.
template <int M, int N> struct Units {
  static constexpr int tall = (M + 15) / 16 % 2 == 0 ? 2 : 1;
  static constexpr int down = (M + 15) / 16 / tall, across = (N + 15) / 16, count = down * across;
};

/// One of them, by one warp: sums in rising order of k.
template <bool Accumulate, typename T, typename C, typename A, typename B>
__device__ __forceinline__ void multiplyUnit(const C &c, const A &a, const B &b, int unit) {
  constexpr int K = A::columns;
  using Parts = Units<A::rows, B::rows>;
  constexpr int tall = Parts::tall;
  const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
  const int m = unit / Parts::across * 16 * tall, n = unit % Parts::across * 16;
  float sums[tall][2][2][2]; // 16 of m, half of n, half of m, neighbours
#pragma unroll
  for (int i = 0; i < 4 * tall; ++i) {
    const int row = m + i / 4 * 16 + group + i % 2 * 8, column = n + i / 2 % 2 * 8 + pair;
    float(&two)[2] = sums[i / 4][i / 2 % 2][i % 2];
    if constexpr (!Accumulate)
      two[0] = two[1] = 0.0f;
    else if constexpr (C::pairs)
      loadTwo(two, c.at(row, column));
    else
      two[0] = widen(c.get(row, column)), two[1] = widen(c.get(row, column + 1));
  }
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    uint32 x[tall][4], y[4];
    b.template load<false>(y, n, k);
#pragma unroll
    for (int t = 0; t < tall; ++t) {
      a.template load<true>(x[t], m + t * 16, k);
      multiply<T>(reinterpret_cast<float(&)[4]>(sums[t][0]), x[t], y[0], y[1]);
      multiply<T>(reinterpret_cast<float(&)[4]>(sums[t][1]), x[t], y[2], y[3]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4 * tall; ++i) {
    const int row = m + i / 4 * 16 + group + i % 2 * 8, column = n + i / 2 % 2 * 8 + pair;
    const float(&two)[2] = sums[i / 4][i / 2 % 2][i % 2];
    if constexpr (C::pairs) {
      storeTwo(c.at(row, column), two[0], two[1]);
    } else {
      if (c.inside(row, column))
        assign(*c.at(row, column), two[0]);
      if (c.inside(row, column + 1))
        assign(*c.at(row, column + 1), two[1]);
    }
  }
}

template <bool Accumulate, int First, typename T, typename C, typename A, typename B>
__device__ __forceinline__ void multiplySlice(const C &c, const A &a, const B &b, T *, T *) {
  constexpr int units = Units<A::rows, B::rows>::count;
  for (int unit = (threadIdx.x / 32 + kLoopWarps - First) % kLoopWarps; unit < units; unit += kLoopWarps)
    multiplyUnit<Accumulate, T>(c, a, b, unit);
}

/// A matrix [M, N] of f32 in the registers of a block: a warp has `units` pieces of 16 x 16 numbers, in the lanes as
/// `multiply` adds them up. A thread has two columns side by side of `count` rows, one row more than once.
template <int M, int N> struct Held {
  static constexpr int across = N / 16, units = M / 16 * across / kLoopWarps, count = units * 4;
  float two[count][2];
  static __device__ __forceinline__ int unit(int i) { return threadIdx.x / 32 + i / 4 * kLoopWarps; }
  static __device__ __forceinline__ int row(int i) {
    return unit(i) / across * 16 + i % 2 * 8 + threadIdx.x % 32 / 4;
  }
  static __device__ __forceinline__ int column(int i) {
    return unit(i) % across * 16 + i / 2 % 2 * 8 + threadIdx.x % 4 * 2;
  }
  __device__ __forceinline__ void load(const float *from) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      loadTwo(two[i], from + row(i) * N + column(i));
  }
  __device__ __forceinline__ void store(float *to) const {
#pragma unroll
    for (int i = 0; i < count; ++i)
      storeTwo(to + row(i) * N + column(i), two[i][0], two[i][1]);
  }
};

/// c + a b, as multiplySlice adds it up.
template <typename T, int M, int N, typename A, typename B>
__device__ __forceinline__ void addProduct(Held<M, N> &c, const A &a, const B &b, T *) {
#pragma unroll
  for (int k = 0; k < A::columns; k += 16) {
    uint32 x[4], y[4];
#pragma unroll
    for (int i = 0; i < c.count; i += 4) {
      const int unit = c.unit(i), m = unit / c.across * 16, n = unit % c.across * 16;
      a.template load<true>(x, m, k);
      if (i == 0 || kLoopWarps % c.across != 0) // else all pieces of a warp have the same columns
        b.template load<false>(y, n, k);
      multiply<T>(reinterpret_cast<float(&)[4]>(c.two[i]), x, y[0], y[1]);
      multiply<T>(reinterpret_cast<float(&)[4]>(c.two[i + 2]), x, y[2], y[3]);
    }
  }
}

/// The pieces of a slice, shared out among the threads of a block: thread t has pieces t, t + kLoopThreads and so on.
/// Where these lie a distance from its first that is the same for all threads (`even`), only the first is looked for.
template <typename... Dims> struct Pieces;
template <> struct Pieces<> {
  static constexpr int64 count = 1, farthest = 0;
  static constexpr bool even = true;
  template <typename Offset> static __device__ __forceinline__ void add(unsigned, Offset &, Offset &) {}
};
/// Dimensions from the outermost to the innermost.
template <typename First, typename... Rest> struct Pieces<First, Rest...> {
  using Inner = Pieces<Rest...>;
  static constexpr int64 count = First::size * Inner::count;
  static constexpr int64 farthest =
      Inner::farthest + (First::size - 1) * (First::to > First::from ? First::to : First::from);
  static constexpr bool even = Inner::even && (kLoopThreads % count == 0 || count % kLoopThreads == 0);
  template <typename Offset> static __device__ __forceinline__ void add(unsigned piece, Offset &to, Offset &from) {
    const unsigned at = piece / unsigned(Inner::count) % unsigned(First::size);
    to += Offset(at) * Offset(First::to);
    from += Offset(at) * Offset(First::from);
    Inner::add(piece, to, from);
  }
};
template <bool Small> struct OffsetType {
  using Type = unsigned;
};
template <> struct OffsetType<false> {
  using Type = int64;
};

/// In how many turns the threads of a block move so many pieces, one at a time.
template <int Count> constexpr int turnsOf = (Count + kLoopThreads - 1) / kLoopThreads;

/// move(to, from, turn) for the piece that a thread moves in each turn from `Begin` to `End`, with its offsets on both
/// sides. Instructions count: the warps of a block take turns in issuing them.
template <int Begin, int End, int Count, typename... Dims, typename Move>
__device__ __forceinline__ void forTurns(Move move) {
  using All = Pieces<Dims...>;
  using Offset = typename OffsetType<(All::farthest < int64(1) << 31)>::Type;
  Offset firstTo = 0, firstFrom = 0;
  All::add(threadIdx.x, firstTo, firstFrom);
#pragma unroll 8
  for (int turn = Begin; turn < End; ++turn) {
    const unsigned piece = threadIdx.x + turn * kLoopThreads;
    Offset to = 0, from = 0;
    if constexpr (All::even) {
      All::add(turn * kLoopThreads, to, from);
      to += firstTo, from += firstFrom;
    } else {
      All::add(piece, to, from);
    }
    if (Count % kLoopThreads == 0 || piece < Count)
      move(to, from, turn);
  }
}

/// Elements of a slice that is moved by all threads of the block: those of some turns. Source and target have nothing
/// in common.
template <int Begin, int End, typename T, int Count, typename... Dims>
__device__ __forceinline__ void copyTurns(T *to, const T *from) {
  if constexpr (End - Begin > 1 && End - Begin <= 4) { // all are read before the first is written
    T pieces[End - Begin];
    forTurns<Begin, End, Count, Dims...>([&](auto, auto offset, int turn) { pieces[turn - Begin] = from[offset]; });
    forTurns<Begin, End, Count, Dims...>([&](auto offset, auto, int turn) { to[offset] = pieces[turn - Begin]; });
  } else {
    forTurns<Begin, End, Count, Dims...>([&](auto toOffset, auto fromOffset, int) { to[toOffset] = from[fromOffset]; });
  }
}
template <typename T, int Count, typename... Dims> __device__ __forceinline__ void copySlice(T *to, const T *from) {
  copyTurns<0, turnsOf<Count>, T, Count, Dims...>(to, from);
}

// Chunks of a slice are fetched while the threads go on: in pieces of 16 bytes by all of them, or, where they lie
// densely on both sides, whole, or row by row where rows are long. The latter two of one iteration end at a barrier in
// shared memory.

__device__ __forceinline__ void prepareFetches(uint32 barrier) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    initBarrier(barrier, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
#endif
}
/// So many bytes are to come whole before the next iteration.
__device__ __forceinline__ void expectFetches(uint32 barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0)
    arriveExpecting(barrier, bytes);
#endif
}
__device__ __forceinline__ void waitForPieces() { asm volatile("cp.async.wait_all;" ::: "memory"); }
/// Until what was fetched for an iteration is there, as far as the thread has asked for it.
__device__ __forceinline__ void waitForFetches(uint32 barrier, int iteration) {
#if __CUDA_ARCH__ >= 900
  waitFor(barrier, iteration & 1);
#else // it came in pieces
  waitForPieces();
#endif
}

template <int Begin, int End, int Count, typename... Dims>
__device__ __forceinline__ void fetchTurns(uint4 *to, const uint4 *from) {
  forTurns<Begin, End, Count, Dims...>(
      [&](auto toOffset, auto fromOffset, int) { copyAsync(to + toOffset, from + fromOffset, true); });
}
template <int Count, typename... Dims>
__device__ __forceinline__ void fetchPieces(uint4 *to, const uint4 *from) {
  fetchTurns<0, turnsOf<Count>, Count, Dims...>(to, from);
}
/// The first thread of `warp` asks for it.
template <int Count> __device__ __forceinline__ void fetchWhole(uint4 *to, const uint4 *from, uint32 barrier, int warp) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == warp * 32)
    copyBulk(sharedAddress(to), from, Count * 16, barrier);
#else
  fetchPieces<Count, Dim<Count, 1, 1>>(to, from);
#endif
}

/// The same of rows of `Row` pieces that lie apart on one side or both: each lane asks for a row.
template <int Row, int Count, typename... Dims>
__device__ __forceinline__ void fetchRows(uint4 *to, const uint4 *from, uint32 barrier, int warp) {
#if __CUDA_ARCH__ >= 900
  const int row = int(threadIdx.x) - warp * 32;
  if (row >= 0 && row < Count / Row) {
    int64 toOffset = 0, fromOffset = 0;
    Offsets<Dims...>::split(row * Row, toOffset, fromOffset);
    copyBulk(sharedAddress(to + toOffset), from + fromOffset, Row * 16, barrier);
  }
#else
  fetchPieces<Count, Dims...>(to, from);
#endif
}

/// Asks for the lines of pieces of 16 bytes that will be copied in the next iteration.
template <int Count, typename... Dims>
__device__ __forceinline__ void prefetchSlice(const uint4 *from) {
  for (int e = threadIdx.x * 8; e < Count; e += kLoopThreads * 8) {
    int64 toOffset = 0, fromOffset = 0;
    Offsets<Dims...>::split(e, toOffset, fromOffset);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from + fromOffset));
  }
}
