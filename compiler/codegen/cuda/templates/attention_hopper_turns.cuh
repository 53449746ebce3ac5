// Attention forward on Hopper for heads of whole blocks of 64 columns: two or three warpgroups that take turns. Values
// may have more of them than keys.
//
// The same mathematics, items and rings as `hopperForward` of attention_hopper.cuh. What differs is where things are:
//  * Tiles have 128 keys: half as many waits, maxima and factors for a score. The registers for twice as many scores
//    come from queries, which matmuls read from shared memory.
//  * Queries have two stages, so that an item's are there when the item before ends. o leaves through the place of the
//    queries of which it is made, as pieces of 16 bytes.
//  * Keys and values have rings of their own: the place of keys is free when their scores are there, a step before that
//    of their values.
//  * Warpgroups issue the matmuls of a step in turn, each when the one before has issued its own. They else meet at the
//    tensor cores, and then at the exponentials.
//  * A copy announces itself when it ends, so the warpgroup that fetches waits only for room.
//
// Traffic: k and v once for every 64 Groups queries, from L2. Limit: at width 64 the exponentials, at 128 the tensor
// cores. Layout: the tiles of hopper.cuh. Every sum has a fixed order, whichever block does it.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kKeys = 128; // of a tile

/// Warpgroups of a block issue matmuls in turn, by barriers from 1 on: of each, that it may issue. All take as many
/// turns.
template <int Groups> struct MatmulTurns {
  int group;

  /// The first of all turns is group 0's.
  __device__ __forceinline__ void begin() const {
    if (group == Groups - 1)
      pass();
  }
  __device__ __forceinline__ void take() const {
    if constexpr (Groups > 1)
      asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
  }
  __device__ __forceinline__ void pass() const {
    if constexpr (Groups > 1)
      asm volatile("bar.arrive %0, 256;" ::"r"(1 + (group + 1) % Groups) : "memory");
  }
  /// Takes the turn that the last group has passed and nobody needs.
  __device__ __forceinline__ void end() const {
    if (group == 0)
      take();
  }
};
/// Waits for the other warps of a warpgroup.
template <int Groups> __device__ __forceinline__ void meet(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + Groups + group) : "memory");
}

/// The same as `hide`, by the first key of either query of this thread and the key behind the last.
template <int Keys, int N>
__device__ __forceinline__ void hideOutside(float (&s)[N][4], const Mask &mask, int query, int key) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int first = mask.firstKey(query + 8 * half) - key, end = mask.endKey(query + 8 * half, Keys) - key;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (n * 8 + i < first || n * 8 + i >= end)
          s[n][2 * half + i] = -INFINITY;
  }
}

/// Of the two queries of a thread: the maximum of scores that weights are relative to, the sum of weights, and by what
/// the last step has made earlier ones smaller.
struct Softmax {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f}, shrink[2];

  /// From scores / `factor` to weights.
  template <int N> __device__ __forceinline__ void weigh(float (&s)[N][4], float factor) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float even = top[half], odd = -INFINITY;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        even = fmaxf(even, s[n][2 * half]);
        odd = fmaxf(odd, s[n][2 * half + 1]);
      }
      float best = quadMax(fmaxf(even, odd));
      // Weights are relative to a maximum of before as long as they stay below 2^8. A query that has seen no key yet:
      // every score is -inf, and so is the maximum.
      bool rises = (best - top[half]) * factor > 8.0f;
      shrink[half] = rises ? exp2Approx((top[half] - best) * factor) : 1.0f;
      top[half] = rises ? best : top[half];
      float base = top[half] == -INFINITY ? 0.0f : top[half] * factor, part[2] = {0.0f, 0.0f};
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float &x = s[n][2 * half + i];
          x = exp2Approx(fmaf(x, factor, -base));
          part[i] += x;
        }
      sum[half] = sum[half] * shrink[half] + (part[0] + part[1]);
    }
  }
  /// Whether a query of this warp has smaller weights than before.
  __device__ __forceinline__ bool shrinks() const { return __any_sync(~0u, shrink[0] != 1.0f || shrink[1] != 1.0f); }
};

/// A place in shared memory of 64 rows: its `piece`-th eight columns of a row.
template <typename T> __device__ __forceinline__ T *pieceOf(T *tile, int row, int piece) {
  return tile + piece / 8 * kTile * kBlock + row * kBlock + (piece % 8 ^ row % 8) * 8;
}

/// Writes the 16 rows of a warp from `row`, times `factor` of the row's half, through `tile`.
template <int Width, typename T>
__device__ __forceinline__ void storeThrough(T *tile, T *to, int64 stride, const float (&c)[Width / 8][4],
                                             const float (&factor)[2], int row, int rows) {
  constexpr int pieces = Width / 8;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < pieces; n += 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     sharedAddress(pieceOf(tile, row + lane % 16, n + lane / 16))),
                 "r"(pack<T>(c[n][0] * factor[0], c[n][1] * factor[0])),
                 "r"(pack<T>(c[n][2] * factor[1], c[n][3] * factor[1])),
                 "r"(pack<T>(c[n + 1][0] * factor[0], c[n + 1][1] * factor[0])),
                 "r"(pack<T>(c[n + 1][2] * factor[1], c[n + 1][3] * factor[1]))
                 : "memory");
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * pieces; i += 32) {
    int r = row + i / pieces, piece = i % pieces;
    if (r < rows)
      *reinterpret_cast<uint4 *>(to + r * stride + piece * 8) =
          *reinterpret_cast<const uint4 *>(pieceOf(tile, r, piece));
  }
}

template <int Groups, int Stages, int Batch, int Width, int ValueWidth, int Queries, int Keys, int Heads,
          int KeyHeads, typename Q, typename K, typename V, typename O, int Sections, typename T,
          typename Score>
__device__ __forceinline__ void hopperForwardInTurns(const T *q, const T *k, const T *v, T *o, float *lse, Mask mask,
                                                     Score score) {
  static_assert(Width % kBlock == 0 && ValueWidth % kBlock == 0, "o leaves as whole blocks");
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  T *const shared = reinterpret_cast<T *>(blocks1024);
  // o leaves through the place of the queries.
  constexpr int size = kTileSize<(Width > ValueWidth ? Width : ValueWidth)>, keysSize = kTileSize<Width, kKeys>,
                valuesSize = kTileSize<ValueWidth, kKeys>, fetching = kFetchingRegisters<Groups>;
  T *keyTiles = shared + 2 * Groups * size, *valueTiles = keyTiles + Stages * keysSize;
  using Block = QueryBlock<Groups, Queries, Keys, kKeys>;
  T *barriers = valueTiles + Stages * valuesSize;
  Ring<Groups, 2, true> queryRing(barriers);
  Ring<Groups, Stages, false> keyRing(barriers + 2 * 8), valueRing(barriers + 2 * 8 + Stages * 8);
  Items<Block::blocks, Groups * kTile, Heads, Batch, Sections> items(mask);
  int group = ownGroup();
  if (threadIdx.x == 0)
    queryRing.init();
  startRings(keyRing, valueRing);

  if (group == Groups) {
    cedeRegisters<Groups, fetching>();
    while (items.next(true)) {
      Block block(mask, items.block);
      queryRing.awaitEmpty();
      for (int i = max(0, -block.firstTile); i < Groups; ++i) {
        int first = (block.firstTile + i) * kTile;
        fetchRows<Width>(shared + (queryRing.stage * Groups + i) * size, Q::at(q, items.batch, first, items.head),
                         Q::row, Queries - first);
      }
      announceCopies(queryRing.full(queryRing.stage));
      queryRing.next();
      int keyHead = items.head / (Heads / KeyHeads);
      const T *kAt = K::at(k, items.batch, 0, keyHead), *vAt = V::at(v, items.batch, 0, keyHead);
      for (int key = block.begin; key < block.end; key += kKeys) {
        keyRing.awaitEmpty();
        fetchRows<Width, kKeys>(keyTiles + keyRing.stage * keysSize, kAt + key * K::row, K::row, Keys - key);
        announceCopies(keyRing.full(keyRing.stage));
        keyRing.next();
        valueRing.awaitEmpty();
        fetchRows<ValueWidth, kKeys>(valueTiles + valueRing.stage * valuesSize, vAt + key * V::row, V::row, Keys - key);
        announceCopies(valueRing.full(valueRing.stage));
        valueRing.next();
      }
    }
    return;
  }

  takeRegisters<Groups, fetching>();
  MatmulTurns<Groups> turns{group};
  turns.begin();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  const float factor = score.factor() * kLog2e;
  while (items.next(true)) {
    Block block(mask, items.block);
    OwnSteps<Queries, Keys, kKeys> own(mask, block.firstTile + group, block.begin, block.end);
    const int queryStage = queryRing.stage;
    T *queries = shared + (queryStage * Groups + group) * size;
    queryRing.awaitFull();
    queryRing.next();
    shareWithMatmuls();
    Softmax softmax;
    float out[ValueWidth / 8][4];
    clear(out);
    uint32 p[kKeys / 16][4];
    auto startScores = [&](float (&s)[kKeys / 8][4]) {
      keyRing.awaitFull();
      shareWithMatmuls();
      turns.take();
      beginMatmuls();
      scores<T, Width>(s, sharedAddress(queries), sharedAddress(keyTiles + keyRing.stage * keysSize));
      commitMatmuls();
    };
    auto addValues = [&] {
      valueRing.awaitFull();
      shareWithMatmuls();
      beginMatmuls();
      addMatmul<T, ValueWidth>(out, p, sharedAddress(valueTiles + valueRing.stage * valuesSize));
      commitMatmuls();
    };
    auto releaseAndNext = [](auto &ring) {
      ring.release(ring.stage);
      ring.next();
    };
    auto weigh = [&](float (&s)[kKeys / 8][4], int step) {
      int key = block.begin + (own.skipped + step) * kKeys;
      forEach(s, [&](float &x, int, int) { x = score.bounded(x); });
      if (isPartial(mask, own.first, own.rows, key, kKeys, Keys))
        hideOutside<Keys>(s, mask, own.first + row + lane / 4, key + lane % 4 * 2);
      softmax.weigh(s, factor);
    };
    auto skip = [&](int steps) {
      for (int i = 0; i < steps; ++i) {
        turns.take();
        turns.pass();
        keyRing.skip(1);
        valueRing.skip(1);
      }
    };
    skip(own.skipped);
    if (own.steps > 0) {
      {
        float s[kKeys / 8][4];
        startScores(s);
        turns.pass();
        waitForMatmuls<0>(s);
        releaseAndNext(keyRing);
        weigh(s, 0);
        packScores<T>(p, s);
      }
      for (int step = 1; step < own.steps; ++step) {
        float s[kKeys / 8][4];
        startScores(s);
        addValues();
        turns.pass();
        waitForMatmuls<1>(s);
        releaseAndNext(keyRing);
        weigh(s, step);
        waitForMatmuls<0>(out);
        releaseAndNext(valueRing);
        pin(s); // until then p is in use
        packScores<T>(p, s);
        if (softmax.shrinks()) {
          forEach(out, [&](float &x, int, int i) { x *= softmax.shrink[i / 2]; });
        }
        pin(out);
      }
      addValues();
      waitForMatmuls<0>(out);
      releaseAndNext(valueRing);
    }
    skip(block.steps() - own.skipped - own.steps);
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = quadSum(softmax.sum[half]);
      inverse[half] = all > 0.0f ? 1.0f / all : 0.0f;
      int at = row + lane / 4 + 8 * half;
      if (lse && lane % 4 == 0 && at < own.rows)
        lse[(int64(items.batch) * Heads + items.head) * Queries + own.first + at] =
            all > 0.0f ? softmax.top[half] * score.factor() + logf(all) : -INFINITY;
    }
    meet<Groups>(group); // until then matmuls of other warps may read queries
    storeThrough<ValueWidth>(queries, O::at(o, items.batch, own.first, items.head), O::row, out, inverse, row,
                             own.rows);
    queryRing.release(queryStage);
  }
  turns.end();
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
