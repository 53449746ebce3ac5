// Attention on tensor cores: forward, and a backward without atomics.
//
// As in Dao, "FlashAttention-2" (2023), models.md section 1.3. Forward: a block of 4 warps has 64 M
// queries, 16 M a warp, and loops over the key tiles that they see with a running maximum. Backward:
// one kernel has 64 M keys and loops over queries for dk and dv; another has 64 M queries and loops
// over keys for dq. Each recomputes p = e^(score - lse). Every sum has a fixed order. With M = 2
// what is read from shared memory serves two matmuls; M = 1 makes more blocks of short sequences and
// needs fewer registers for wide heads. Those wider than 128 have tiles of 32, for shared memory, and dk and
// dv from two kernels, for registers.
//
// Traffic: k and v once for every 64 queries, from L2. Limit: the rate of mma.sync, about two thirds
// of what wgmma reaches. Layout: tiles in shared memory with rows padded by 16 bytes, so that ldmatrix
// meets no bank twice; the next tile is fetched (cp.async) while one is worked on. Assumes widths that
// are multiples of 16, and rows at multiples of 16 bytes.

template <int64 Batch, int64 Row, int64 Head> struct Layout {
  template <typename T> static __device__ __forceinline__ T *at(T *base, int64 b, int64 row, int64 head) {
    return base + b * Batch + row * Row + head * Head;
  }
  static constexpr int64 row = Row;
  static constexpr bool inMemory = true;
};

struct Mask {
  bool causal;
  int chunk, window; // 0: none

  __device__ __forceinline__ bool sees(int i, int j) const {
    return (!causal || j <= i) && (chunk == 0 || i / chunk == j / chunk) &&
           (window == 0 || i - j < window);
  }
  __device__ __forceinline__ int firstKey(int i) const {
    int first = chunk > 0 ? i / chunk * chunk : 0;
    return window > 0 ? max(first, i - window + 1) : first;
  }
  __device__ __forceinline__ int endKey(int i, int keys) const {
    int end = chunk > 0 ? (i / chunk + 1) * chunk : keys;
    return min(causal ? min(end, i + 1) : end, keys);
  }
  __device__ __forceinline__ int firstQuery(int j) const {
    int first = chunk > 0 ? j / chunk * chunk : 0;
    return causal ? max(first, j) : first;
  }
  __device__ __forceinline__ int endQuery(int j, int queries) const {
    int end = chunk > 0 ? (j / chunk + 1) * chunk : queries;
    return min(window > 0 ? min(end, j + window) : end, queries);
  }
};

constexpr int kThreads = 128; // 4 warps

/// Starts copying `Rows` rows of `Width` numbers into rows of `Width` + 8.
template <int Width, int Rows, typename T>
__device__ __forceinline__ void fetchTile(T *to, const T *from, int64 stride, int rows) {
  constexpr int pieces = Width / 8;
#pragma unroll
  for (int i = threadIdx.x; i < Rows * pieces; i += kThreads) {
    int row = i / pieces, piece = i % pieces;
    bool exists = row < rows;
    copyAsync(to + row * (Width + 8) + piece * 8, from + (exists ? row : 0) * stride + piece * 8,
              exists);
  }
}

/// c[M][16 x 8 N] += rows 16 M w ... of one tile times the other, transposed.
template <int Width, int M, int N, typename T>
__device__ __forceinline__ void timesTransposed(float (&c)[M][N][4], const T *rows,
                                                const T *tile) {
  int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16 * M;
#pragma unroll
  for (int k = 0; k < Width / 16; ++k) {
    uint32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
      loadMatrices(a[m], rows + (first + m * 16 + lane % 16) * (Width + 8) + k * 16 + lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32 b[4];
      loadMatrices(b, tile + (n * 8 + lane / 16 * 8 + lane % 8) * (Width + 8) + k * 16 +
                          lane / 8 % 2 * 8);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply<T>(c[m][n], a[m], b[0], b[1]);
        multiply<T>(c[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// c[M][16 x Width] += p[M][16 x 8 N] tile, with p rounded to T.
template <int Width, int M, int N, typename T>
__device__ __forceinline__ void timesTile(float (&c)[M][Width / 8][4], const float (&p)[M][N][4],
                                          const T *tile) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < N / 2; ++k) {
    uint32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      a[m][0] = pack<T>(p[m][2 * k][0], p[m][2 * k][1]);
      a[m][1] = pack<T>(p[m][2 * k][2], p[m][2 * k][3]);
      a[m][2] = pack<T>(p[m][2 * k + 1][0], p[m][2 * k + 1][1]);
      a[m][3] = pack<T>(p[m][2 * k + 1][2], p[m][2 * k + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < Width / 8; n += 2) {
      uint32 b[4];
      loadTransposed(b, tile + (k * 16 + lane / 8 % 2 * 8 + lane % 8) * (Width + 8) + n * 8 +
                            lane / 16 * 8);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply<T>(c[m][n], a[m], b[0], b[1]);
        multiply<T>(c[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

template <int M, int N> __device__ __forceinline__ void clear(float (&c)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        c[m][n][i] = 0.0f;
}

/// Products become what kernels keep of them (scores.cuh).
template <int M, int N, typename Score>
__device__ __forceinline__ void bound(float (&c)[M][N][4], Score score) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        c[m][n][i] = score.bounded(c[m][n][i]);
}

/// Writes 16 rows of a warp, times `factor` of the row's half.
template <int Width, typename T>
__device__ __forceinline__ void storeRows(T *to, int64 stride, const float (&c)[Width / 8][4],
                                          float low, float high, int row, int rows) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int r = row + lane / 4 + 8 * half;
    if (r >= rows)
      continue;
    float factor = half ? high : low;
#pragma unroll
    for (int n = 0; n < Width / 8; ++n)
      *reinterpret_cast<uint32 *>(to + r * stride + n * 8 + lane % 4 * 2) =
          pack<T>(c[n][2 * half] * factor, c[n][2 * half + 1] * factor);
  }
}

__device__ __forceinline__ float quadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quadSum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

/// Whether some query of rows [row, row + rows) does not see some key of the tile.
__device__ __forceinline__ bool isPartial(const Mask &mask, int row, int rows, int key, int tile,
                                          int keys) {
  int last = row + rows - 1;
  return key + tile > keys || mask.firstKey(last) > key || mask.endKey(row, keys) < key + tile;
}

template <int M, int Tile, int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q, typename K,
          typename V, typename O, typename T, typename Score>
__device__ __forceinline__ void attentionForward(const T *q, const T *k, const T *v,
                                                 T *o, float *lse, Mask mask, Score score) {
  extern __shared__ __align__(16) unsigned short shared16[];
  T *const shared = reinterpret_cast<T *>(shared16);
  constexpr int tileRows = 64 * M, tile = Tile, N = tile / 8, size = tile * (Width + 8);
  T *queries = shared, *tiles = shared + tileRows * (Width + 8); // then k and v, twice
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // The last blocks of a causal head have most to do: they start first.
  int block = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  int keyHead = head / (Heads / KeyHeads), first = block * tileRows;
  int rows = min(tileRows, Queries - first);
  int begin = mask.firstKey(first) / tile * tile, end = mask.endKey(first + rows - 1, Keys);
  const T *kHead = K::at(k, batch, 0, keyHead), *vHead = V::at(v, batch, 0, keyHead);

  fetchTile<Width, tileRows>(queries, Q::at(q, batch, first, head), Q::row, rows);
  auto fetch = [&](int key, int stage) {
    T *to = tiles + stage * 2 * size;
    fetchTile<Width, tile>(to, kHead + key * K::row, K::row, Keys - key);
    fetchTile<Width, tile>(to + size, vHead + key * V::row, V::row, Keys - key);
  };
  if (begin < end)
    fetch(begin, 0);
  commitCopies();

  float out[M][Width / 8][4], top[M][2], sum[M][2];
  clear(out);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      top[m][half] = -INFINITY;
      sum[m][half] = 0.0f;
    }
  float factor = score.factor() * kLog2e;
  for (int key = begin, stage = 0; key < end; key += tile, stage ^= 1) {
    if (key + tile < end)
      fetch(key + tile, stage ^ 1);
    commitCopies();
    waitForCopies<1>();
    __syncthreads();
    const T *kTile = tiles + stage * 2 * size;
    float s[M][N][4];
    clear(s);
    timesTransposed<Width>(s, queries, kTile);
    bound(s, score);
    if (isPartial(mask, first, rows, key, tile, Keys)) {
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            int query = first + (warp * M + m) * 16 + lane / 4 + i / 2 * 8;
            int at = key + n * 8 + lane % 4 * 2 + i % 2;
            if (at >= Keys || !mask.sees(query, at))
              s[m][n][i] = -INFINITY;
          }
    }
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float best = top[m][half];
#pragma unroll
        for (int n = 0; n < N; ++n)
          best = fmaxf(best, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
        best = quadMax(best);
        // A query that has seen no key yet: every score is -inf, and so is the maximum.
        float base = best == -INFINITY ? 0.0f : best * factor;
        float shrink = exp2Approx(top[m][half] * factor - base);
        top[m][half] = best;
        float part = 0.0f;
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            s[m][n][i] = exp2Approx(fmaf(s[m][n][i], factor, -base));
            part += s[m][n][i];
          }
        sum[m][half] = sum[m][half] * shrink + part;
#pragma unroll
        for (int n = 0; n < Width / 8; ++n) {
          out[m][n][2 * half] *= shrink;
          out[m][n][2 * half + 1] *= shrink;
        }
      }
    timesTile<Width>(out, s, kTile + size);
    __syncthreads();
  }
  waitForCopies<0>();
#pragma unroll
  for (int m = 0; m < M; ++m) {
    float inverse[2];
    int row = (warp * M + m) * 16;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = quadSum(sum[m][half]);
      inverse[half] = all > 0.0f ? 1.0f / all : 0.0f;
      int own = row + lane / 4 + 8 * half;
      if (lse && lane % 4 == 0 && own < rows)
        lse[(int64(batch) * Heads + head) * Queries + first + own] =
            all > 0.0f ? top[m][half] * score.factor() + logf(all) : -INFINITY;
    }
    storeRows<Width>(O::at(o, batch, first, head), O::row, out[m], inverse[0], inverse[1], row,
                     rows);
  }
}

/// delta[b, h, i] = <dO, o>: a warp for each row.
template <int Width, int Queries, int Heads, typename T, typename O, typename G>
__device__ __forceinline__ void attentionDelta(const T *dO, const T *o, float *delta) {
  int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int head = blockIdx.y, batch = blockIdx.z;
  if (row >= Queries)
    return;
  const T *x = G::at(dO, batch, row, head), *y = O::at(o, batch, row, head);
  float sum = 0.0f;
  for (int e = lane; e < Width; e += 32)
    sum += widen(x[e]) * widen(y[e]);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(~0u, sum, distance);
  if (lane == 0)
    delta[(int64(batch) * Heads + head) * Queries + row] = sum;
}

/// The same for rows of 16-byte pieces: a piece for each lane, several rows a warp.
template <int Width, int Queries, int Heads, typename O, typename G, typename T>
__device__ __forceinline__ void attentionDeltaTiled(const T *dO, const T *o, float *delta) {
  constexpr int lanes = Width <= 64 ? 8 : Width <= 128 ? 16 : 32;
  int row = blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes, piece = threadIdx.x % lanes;
  int head = blockIdx.y, batch = blockIdx.z;
  float sum = 0.0f;
  if (row < Queries && piece * 8 < Width) {
    uint4 x = *reinterpret_cast<const uint4 *>(G::at(dO, batch, row, head) + piece * 8);
    uint4 y = *reinterpret_cast<const uint4 *>(O::at(o, batch, row, head) + piece * 8);
    const uint32 *xs = &x.x, *ys = &y.x;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum += widenLow<T>(xs[i]) * widenLow<T>(ys[i]) + widenHigh<T>(xs[i]) * widenHigh<T>(ys[i]);
  }
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(~0u, sum, distance);
  if (row < Queries && piece == 0)
    delta[(int64(batch) * Heads + head) * Queries + row] = sum;
}

/// dk and dv of 64 M keys, or one of the two: of wide heads the sums of both are more than a thread has
/// registers. Scores are transposed, [key][query], so that both matmuls read them from registers.
template <int M, int Tile, bool OfKeys, bool OfValues, int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q, typename K,
          typename V, typename G, typename DK, typename DV, typename T, typename Score>
__device__ __forceinline__ void attentionKeyGradients(const T *dO, const T *q, const T *k,
                                                      const T *v, const float *lse,
                                                      const float *delta, T *dk, T *dv,
                                                      Mask mask, Score score) {
  extern __shared__ __align__(16) unsigned short shared16[];
  T *const shared = reinterpret_cast<T *>(shared16);
  constexpr int tileRows = 64 * M, tile = Tile, N = tile / 8, size = tile * (Width + 8);
  T *keys = shared, *values = keys + tileRows * (Width + 8);
  T *tiles = values + tileRows * (Width + 8);                  // q and dO, twice
  auto *statistics = reinterpret_cast<float *>(tiles + 4 * size); // lse and delta, twice
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int first = blockIdx.x * tileRows, keyHead = blockIdx.y, batch = blockIdx.z;
  int rows = min(tileRows, Keys - first), last = first + rows - 1;
  int begin = mask.firstQuery(first) / tile * tile, end = mask.endQuery(last, Queries);
  constexpr int group = Heads / KeyHeads;

  fetchTile<Width, tileRows>(keys, K::at(k, batch, first, keyHead), K::row, rows);
  if constexpr (OfKeys)
    fetchTile<Width, tileRows>(values, V::at(v, batch, first, keyHead), V::row, rows);
  int steps = end > begin ? (end - begin + tile - 1) / tile : 0;
  auto fetch = [&](int step, int stage) {
    int head = keyHead * group + step / steps, query = begin + step % steps * tile;
    T *to = tiles + stage * 2 * size;
    fetchTile<Width, tile>(to, Q::at(q, batch, query, head), Q::row, Queries - query);
    fetchTile<Width, tile>(to + size, G::at(dO, batch, query, head), G::row, Queries - query);
    int64 row = (int64(batch) * Heads + head) * Queries + query;
    if (threadIdx.x < tile) {
      bool exists = query + int(threadIdx.x) < Queries;
      float *at = statistics + stage * 2 * tile + threadIdx.x;
      at[0] = exists ? lse[row + threadIdx.x] * kLog2e : 0.0f;
      if constexpr (OfKeys)
        at[tile] = exists ? delta[row + threadIdx.x] : 0.0f;
    }
  };
  if (steps > 0)
    fetch(0, 0);
  commitCopies();

  float dkOut[M][Width / 8][4], dvOut[M][Width / 8][4];
  clear(dkOut);
  clear(dvOut);
  float factor = score.factor() * kLog2e;
  for (int step = 0, stage = 0; step < steps * group; ++step, stage ^= 1) {
    if (step + 1 < steps * group)
      fetch(step + 1, stage ^ 1);
    commitCopies();
    waitForCopies<1>();
    __syncthreads();
    const T *qTile = tiles + stage * 2 * size, *gTile = qTile + size;
    const float *lseTile = statistics + stage * 2 * tile, *deltaTile = lseTile + tile;
    int query = begin + step % steps * tile;
    float p[M][N][4], g[M][N][4];
    clear(p);
    clear(g);
    timesTransposed<Width>(p, keys, qTile);
    if constexpr (OfKeys)
      timesTransposed<Width>(g, values, gTile);
    bool partial = query + tile > Queries || rows < tileRows ||
                   isPartial(mask, query, min(tile, Queries - query), first, tileRows, Keys);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          int column = n * 8 + lane % 4 * 2 + i % 2;
          int row = (warp * M + m) * 16 + lane / 4 + i / 2 * 8;
          float bounded = score.bounded(p[m][n][i]);
          float x = exp2Approx(fmaf(bounded, factor, -lseTile[column]));
          if (partial && (query + column >= Queries || row >= rows ||
                          !mask.sees(query + column, first + row)))
            x = 0.0f;
          p[m][n][i] = x;
          if constexpr (OfKeys)
            g[m][n][i] = x * (g[m][n][i] - deltaTile[column]) * score.slope(bounded);
        }
    if constexpr (OfValues)
      timesTile<Width>(dvOut, p, gTile);
    if constexpr (OfKeys)
      timesTile<Width>(dkOut, g, qTile);
    __syncthreads();
  }
  waitForCopies<0>();
#pragma unroll
  for (int m = 0; m < M; ++m) {
    int row = (warp * M + m) * 16;
    if constexpr (OfKeys)
      storeRows<Width>(DK::at(dk, batch, first, keyHead), DK::row, dkOut[m], 1.0f, 1.0f, row, rows);
    if constexpr (OfValues)
      storeRows<Width>(DV::at(dv, batch, first, keyHead), DV::row, dvOut[m], 1.0f, 1.0f, row, rows);
  }
}

/// dq of 64 M queries.
template <int M, int Tile, int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q, typename K,
          typename V, typename G, typename DQ, typename T, typename Score>
__device__ __forceinline__ void attentionQueryGradients(const T *dO, const T *q,
                                                        const T *k, const T *v,
                                                        const float *lse, const float *delta,
                                                        T *dq, Mask mask, Score score) {
  extern __shared__ __align__(16) unsigned short shared16[];
  T *const shared = reinterpret_cast<T *>(shared16);
  constexpr int tileRows = 64 * M, tile = Tile, N = tile / 8, size = tile * (Width + 8);
  T *queries = shared, *gradients = queries + tileRows * (Width + 8);
  T *tiles = gradients + tileRows * (Width + 8);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int block = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  int keyHead = head / (Heads / KeyHeads), first = block * tileRows;
  int rows = min(tileRows, Queries - first);
  int begin = mask.firstKey(first) / tile * tile, end = mask.endKey(first + rows - 1, Keys);
  const T *kHead = K::at(k, batch, 0, keyHead), *vHead = V::at(v, batch, 0, keyHead);

  fetchTile<Width, tileRows>(queries, Q::at(q, batch, first, head), Q::row, rows);
  fetchTile<Width, tileRows>(gradients, G::at(dO, batch, first, head), G::row, rows);
  auto fetch = [&](int key, int stage) {
    T *to = tiles + stage * 2 * size;
    fetchTile<Width, tile>(to, kHead + key * K::row, K::row, Keys - key);
    fetchTile<Width, tile>(to + size, vHead + key * V::row, V::row, Keys - key);
  };
  if (begin < end)
    fetch(begin, 0);
  commitCopies();
  float rowLse[M][2], rowDelta[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = min((warp * M + m) * 16 + lane / 4 + 8 * half, rows - 1);
      int64 at = (int64(batch) * Heads + head) * Queries + first + row;
      rowLse[m][half] = lse[at] * kLog2e;
      rowDelta[m][half] = delta[at];
    }
  float out[M][Width / 8][4];
  clear(out);
  float factor = score.factor() * kLog2e;
  for (int key = begin, stage = 0; key < end; key += tile, stage ^= 1) {
    if (key + tile < end)
      fetch(key + tile, stage ^ 1);
    commitCopies();
    waitForCopies<1>();
    __syncthreads();
    const T *kTile = tiles + stage * 2 * size, *vTile = kTile + size;
    float p[M][N][4], g[M][N][4];
    clear(p);
    clear(g);
    timesTransposed<Width>(p, queries, kTile);
    timesTransposed<Width>(g, gradients, vTile);
    bool partial = isPartial(mask, first, rows, key, tile, Keys);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          int query = first + (warp * M + m) * 16 + lane / 4 + i / 2 * 8;
          int at = key + n * 8 + lane % 4 * 2 + i % 2;
          float bounded = score.bounded(p[m][n][i]);
          float x = exp2Approx(fmaf(bounded, factor, -rowLse[m][i / 2]));
          if (partial && (at >= Keys || !mask.sees(query, at)))
            x = 0.0f;
          g[m][n][i] = x * (g[m][n][i] - rowDelta[m][i / 2]) * score.slope(bounded);
        }
    timesTile<Width>(out, g, kTile);
    __syncthreads();
  }
  waitForCopies<0>();
#pragma unroll
  for (int m = 0; m < M; ++m)
    storeRows<Width>(DQ::at(dq, batch, first, head), DQ::row, out[m], 1.0f, 1.0f,
                     (warp * M + m) * 16, rows);
}
