// Attention on tensor cores: forward, and a backward without atomics.
//
// As in Dao, "FlashAttention-2" (2023), models.md section 1.3. Forward: a block of 4 warps has 64
// queries, 16 a warp, and walks over the key tiles that they see with a running maximum. Backward:
// one kernel has 64 keys and walks over queries for dk and dv; another has 64 queries and walks over
// keys for dq. Each recomputes p = e^(scale s - lse). Every sum has a fixed order.
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

constexpr int kTile = 64;     // queries, and keys, of a tile
constexpr int kThreads = 128; // 4 warps of 16 rows

/// Starts copying `kTile` rows of `Width` numbers into rows of `Width` + 8.
template <int Width>
__device__ __forceinline__ void fetchTile(bf16 *to, const bf16 *from, int64 stride, int rows) {
  constexpr int pieces = Width / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kTile * pieces; i += kThreads) {
    int row = i / pieces, piece = i % pieces;
    bool exists = row < rows;
    copyAsync(to + row * (Width + 8) + piece * 8, from + (exists ? row : 0) * stride + piece * 8,
              exists);
  }
}

/// Rows 16 w … of a tile as the left operand, columns 16 k ….
template <int Width>
__device__ __forceinline__ void leftOperand(uint32 (&a)[4], const bf16 *tile, int row, int k) {
  int lane = threadIdx.x % 32;
  loadMatrices(a, tile + (row + lane % 16) * (Width + 8) + k * 16 + lane / 16 * 8);
}

/// c[16 x 64] += a[16 x 16] times columns 16 k … of the tile, transposed.
template <int Width>
__device__ __forceinline__ void timesColumns(float (&c)[8][4], const uint32 (&a)[4],
                                             const bf16 *tile, int k) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < 8; n += 2) {
    uint32 b[4];
    loadMatrices(b, tile + (n * 8 + lane / 16 * 8 + lane % 8) * (Width + 8) + k * 16 +
                        lane / 8 % 2 * 8);
    multiply(c[n], a, b[0], b[1]);
    multiply(c[n + 1], a, b[2], b[3]);
  }
}

/// c[16 x 64] += rows 16 w … of one tile times the other, transposed.
template <int Width>
__device__ __forceinline__ void timesTransposed(float (&c)[8][4], const bf16 *rows,
                                                const bf16 *tile) {
#pragma unroll
  for (int k = 0; k < Width / 16; ++k) {
    uint32 a[4];
    leftOperand<Width>(a, rows, threadIdx.x / 32 * 16, k);
    timesColumns<Width>(c, a, tile, k);
  }
}

/// c[16 x Width] += p[16 x 64] tile, with p rounded to bf16.
template <int Width>
__device__ __forceinline__ void timesTile(float (&c)[Width / 8][4], const float (&p)[8][4],
                                          const bf16 *tile) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    uint32 a[4] = {pack(p[2 * k][0], p[2 * k][1]), pack(p[2 * k][2], p[2 * k][3]),
                   pack(p[2 * k + 1][0], p[2 * k + 1][1]), pack(p[2 * k + 1][2], p[2 * k + 1][3])};
#pragma unroll
    for (int n = 0; n < Width / 8; n += 2) {
      uint32 b[4];
      loadTransposed(b, tile + (k * 16 + lane / 8 % 2 * 8 + lane % 8) * (Width + 8) + n * 8 +
                            lane / 16 * 8);
      multiply(c[n], a, b[0], b[1]);
      multiply(c[n + 1], a, b[2], b[3]);
    }
  }
}

template <int Width> __device__ __forceinline__ void clear(float (&c)[Width][4]) {
#pragma unroll
  for (int n = 0; n < Width; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      c[n][i] = 0.0f;
}

/// Writes 16 rows of a warp, times `factor` of the row's half.
template <int Width>
__device__ __forceinline__ void storeRows(bf16 *to, int64 stride, const float (&c)[Width / 8][4],
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
          pack(c[n][2 * half] * factor, c[n][2 * half + 1] * factor);
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
__device__ __forceinline__ bool isPartial(const Mask &mask, int row, int rows, int key, int keys) {
  int last = row + rows - 1;
  return key + kTile > keys || mask.firstKey(last) > key || mask.endKey(row, keys) < key + kTile;
}

template <int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q, typename K,
          typename V, typename O>
__device__ __forceinline__ void attentionForward(const bf16 *q, const bf16 *k, const bf16 *v,
                                                 bf16 *o, float *lse, Mask mask, float scale) {
  extern __shared__ __align__(16) bf16 shared[];
  constexpr int size = kTile * (Width + 8);
  bf16 *queries = shared, *tiles = shared + size; // then k and v, twice
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // The last blocks of a causal head have most to do: they start first.
  int block = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  int keyHead = head / (Heads / KeyHeads), first = block * kTile;
  int rows = min(kTile, Queries - first);
  int begin = mask.firstKey(first) / kTile * kTile, end = mask.endKey(first + rows - 1, Keys);
  const bf16 *kHead = K::at(k, batch, 0, keyHead), *vHead = V::at(v, batch, 0, keyHead);

  fetchTile<Width>(queries, Q::at(q, batch, first, head), Q::row, rows);
  auto fetch = [&](int key, int stage) {
    bf16 *to = tiles + stage * 2 * size;
    fetchTile<Width>(to, kHead + key * K::row, K::row, Keys - key);
    fetchTile<Width>(to + size, vHead + key * V::row, V::row, Keys - key);
  };
  if (begin < end)
    fetch(begin, 0);
  commitCopies();

  uint32 a[Width / 16][4];
  float out[Width / 8][4], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
  clear(out);
  float factor = scale * kLog2e;
  for (int key = begin, stage = 0; key < end; key += kTile, stage ^= 1) {
    if (key + kTile < end)
      fetch(key + kTile, stage ^ 1);
    commitCopies();
    waitForCopies<1>();
    __syncthreads();
    if (key == begin)
#pragma unroll
      for (int i = 0; i < Width / 16; ++i)
        leftOperand<Width>(a[i], queries, warp * 16, i);
    const bf16 *tile = tiles + stage * 2 * size;
    float s[8][4];
    clear(s);
#pragma unroll
    for (int i = 0; i < Width / 16; ++i)
      timesColumns<Width>(s, a[i], tile, i);
    if (isPartial(mask, first, rows, key, Keys)) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          int query = first + warp * 16 + lane / 4 + i / 2 * 8;
          int at = key + n * 8 + lane % 4 * 2 + i % 2;
          if (at >= Keys || !mask.sees(query, at))
            s[n][i] = -INFINITY;
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float best = top[half];
#pragma unroll
      for (int n = 0; n < 8; ++n)
        best = fmaxf(best, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      best = quadMax(best);
      // A query that has seen no key yet: every score is -inf, and so is the maximum.
      float base = best == -INFINITY ? 0.0f : best * factor;
      float shrink = exp2Approx(top[half] * factor - base);
      top[half] = best;
      float part = 0.0f;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          s[n][i] = exp2Approx(fmaf(s[n][i], factor, -base));
          part += s[n][i];
        }
      sum[half] = sum[half] * shrink + part;
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) {
        out[n][2 * half] *= shrink;
        out[n][2 * half + 1] *= shrink;
      }
    }
    timesTile<Width>(out, s, tile + size);
    __syncthreads();
  }
  waitForCopies<0>();
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float all = quadSum(sum[half]);
    inverse[half] = all > 0.0f ? 1.0f / all : 0.0f;
    int row = warp * 16 + lane / 4 + 8 * half;
    if (lse && lane % 4 == 0 && row < rows)
      lse[(int64(batch) * Heads + head) * Queries + first + row] =
          all > 0.0f ? top[half] * scale + logf(all) : -INFINITY;
  }
  storeRows<Width>(O::at(o, batch, first, head), O::row, out, inverse[0], inverse[1], warp * 16,
                   rows);
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
template <int Width, int Queries, int Heads, typename O, typename G>
__device__ __forceinline__ void attentionDeltaTiled(const bf16 *dO, const bf16 *o, float *delta) {
  constexpr int lanes = Width <= 64 ? 8 : 16;
  int row = blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes, piece = threadIdx.x % lanes;
  int head = blockIdx.y, batch = blockIdx.z;
  float sum = 0.0f;
  if (row < Queries && piece * 8 < Width) {
    uint4 x = *reinterpret_cast<const uint4 *>(G::at(dO, batch, row, head) + piece * 8);
    uint4 y = *reinterpret_cast<const uint4 *>(O::at(o, batch, row, head) + piece * 8);
    const uint32 *xs = &x.x, *ys = &y.x;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum += widen(bf16(xs[i])) * widen(bf16(ys[i])) +
             widen(bf16(xs[i] >> 16)) * widen(bf16(ys[i] >> 16));
  }
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(~0u, sum, distance);
  if (row < Queries && piece == 0)
    delta[(int64(batch) * Heads + head) * Queries + row] = sum;
}

/// dk and dv of 64 keys. Scores are transposed, [key][query], so that both products read them from
/// registers.
template <int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q, typename K,
          typename V, typename G, typename DK, typename DV>
__device__ __forceinline__ void attentionKeyGradients(const bf16 *dO, const bf16 *q, const bf16 *k,
                                                      const bf16 *v, const float *lse,
                                                      const float *delta, bf16 *dk, bf16 *dv,
                                                      Mask mask, float scale) {
  extern __shared__ __align__(16) bf16 shared[];
  constexpr int size = kTile * (Width + 8);
  bf16 *keys = shared, *values = keys + size, *tiles = values + size; // then q and dO, twice
  auto *statistics = reinterpret_cast<float *>(tiles + 4 * size);     // lse and delta, twice
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int first = blockIdx.x * kTile, keyHead = blockIdx.y, batch = blockIdx.z;
  int rows = min(kTile, Keys - first), last = first + rows - 1;
  int begin = mask.firstQuery(first) / kTile * kTile, end = mask.endQuery(last, Queries);
  constexpr int group = Heads / KeyHeads;

  fetchTile<Width>(keys, K::at(k, batch, first, keyHead), K::row, rows);
  fetchTile<Width>(values, V::at(v, batch, first, keyHead), V::row, rows);
  int steps = end > begin ? (end - begin + kTile - 1) / kTile : 0;
  auto fetch = [&](int step, int stage) {
    int head = keyHead * group + step / steps, query = begin + step % steps * kTile;
    bf16 *to = tiles + stage * 2 * size;
    fetchTile<Width>(to, Q::at(q, batch, query, head), Q::row, Queries - query);
    fetchTile<Width>(to + size, G::at(dO, batch, query, head), G::row, Queries - query);
    int64 row = (int64(batch) * Heads + head) * Queries + query;
    if (threadIdx.x < kTile) {
      bool exists = query + int(threadIdx.x) < Queries;
      float *to = statistics + stage * 2 * kTile + threadIdx.x;
      to[0] = exists ? lse[row + threadIdx.x] * kLog2e : 0.0f;
      to[kTile] = exists ? delta[row + threadIdx.x] : 0.0f;
    }
  };
  if (steps > 0)
    fetch(0, 0);
  commitCopies();

  float dkOut[Width / 8][4], dvOut[Width / 8][4];
  clear(dkOut);
  clear(dvOut);
  float factor = scale * kLog2e;
  for (int step = 0, stage = 0; step < steps * group; ++step, stage ^= 1) {
    if (step + 1 < steps * group)
      fetch(step + 1, stage ^ 1);
    commitCopies();
    waitForCopies<1>();
    __syncthreads();
    const bf16 *qTile = tiles + stage * 2 * size, *gTile = qTile + size;
    const float *lseTile = statistics + stage * 2 * kTile, *deltaTile = lseTile + kTile;
    int query = begin + step % steps * kTile;
    float p[8][4], g[8][4];
    clear(p);
    clear(g);
    timesTransposed<Width>(p, keys, qTile);
    timesTransposed<Width>(g, values, gTile);
    bool partial = query + kTile > Queries || rows < kTile ||
                   isPartial(mask, query, min(kTile, Queries - query), first, Keys);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int column = n * 8 + lane % 4 * 2 + i % 2, row = warp * 16 + lane / 4 + i / 2 * 8;
        p[n][i] = exp2Approx(fmaf(p[n][i], factor, -lseTile[column]));
        if (partial && (query + column >= Queries || row >= rows ||
                        !mask.sees(query + column, first + row)))
          p[n][i] = 0.0f;
        g[n][i] = p[n][i] * (g[n][i] - deltaTile[column]) * scale;
      }
    timesTile<Width>(dvOut, p, gTile);
    timesTile<Width>(dkOut, g, qTile);
    __syncthreads();
  }
  waitForCopies<0>();
  storeRows<Width>(DK::at(dk, batch, first, keyHead), DK::row, dkOut, 1.0f, 1.0f, warp * 16, rows);
  storeRows<Width>(DV::at(dv, batch, first, keyHead), DV::row, dvOut, 1.0f, 1.0f, warp * 16, rows);
}

/// dq of 64 queries.
template <int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q, typename K,
          typename V, typename G, typename DQ>
__device__ __forceinline__ void attentionQueryGradients(const bf16 *dO, const bf16 *q,
                                                        const bf16 *k, const bf16 *v,
                                                        const float *lse, const float *delta,
                                                        bf16 *dq, Mask mask, float scale) {
  extern __shared__ __align__(16) bf16 shared[];
  constexpr int size = kTile * (Width + 8);
  bf16 *queries = shared, *gradients = queries + size, *tiles = gradients + size;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int block = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  int keyHead = head / (Heads / KeyHeads), first = block * kTile;
  int rows = min(kTile, Queries - first);
  int begin = mask.firstKey(first) / kTile * kTile, end = mask.endKey(first + rows - 1, Keys);
  const bf16 *kHead = K::at(k, batch, 0, keyHead), *vHead = V::at(v, batch, 0, keyHead);

  fetchTile<Width>(queries, Q::at(q, batch, first, head), Q::row, rows);
  fetchTile<Width>(gradients, G::at(dO, batch, first, head), G::row, rows);
  auto fetch = [&](int key, int stage) {
    bf16 *to = tiles + stage * 2 * size;
    fetchTile<Width>(to, kHead + key * K::row, K::row, Keys - key);
    fetchTile<Width>(to + size, vHead + key * V::row, V::row, Keys - key);
  };
  if (begin < end)
    fetch(begin, 0);
  commitCopies();
  float rowLse[2], rowDelta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int row = min(warp * 16 + lane / 4 + 8 * half, rows - 1);
    int64 at = (int64(batch) * Heads + head) * Queries + first + row;
    rowLse[half] = lse[at] * kLog2e;
    rowDelta[half] = delta[at];
  }
  float out[Width / 8][4];
  clear(out);
  float factor = scale * kLog2e;
  for (int key = begin, stage = 0; key < end; key += kTile, stage ^= 1) {
    if (key + kTile < end)
      fetch(key + kTile, stage ^ 1);
    commitCopies();
    waitForCopies<1>();
    __syncthreads();
    const bf16 *kTileRows = tiles + stage * 2 * size, *vTileRows = kTileRows + size;
    float p[8][4], g[8][4];
    clear(p);
    clear(g);
    timesTransposed<Width>(p, queries, kTileRows);
    timesTransposed<Width>(g, gradients, vTileRows);
    bool partial = isPartial(mask, first, rows, key, Keys);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int query = first + warp * 16 + lane / 4 + i / 2 * 8;
        int at = key + n * 8 + lane % 4 * 2 + i % 2;
        float x = exp2Approx(fmaf(p[n][i], factor, -rowLse[i / 2]));
        if (partial && (at >= Keys || !mask.sees(query, at)))
          x = 0.0f;
        g[n][i] = x * (g[n][i] - rowDelta[i / 2]) * scale;
      }
    timesTile<Width>(out, g, kTileRows);
    __syncthreads();
  }
  waitForCopies<0>();
  storeRows<Width>(DQ::at(dq, batch, first, head), DQ::row, out, 1.0f, 1.0f, warp * 16, rows);
}
