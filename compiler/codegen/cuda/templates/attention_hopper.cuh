// Attention with Hopper's warpgroup matmuls (wgmma): forward, and a backward without atomics.
//
// The same mathematics as attention.cuh. As many blocks as the GPU holds at a time share out the items
// of work: 64 Groups rows of a head (queries, or keys for dk and dv). A block has `Groups` warpgroups,
// each with 64 of these rows, and one more that fetches: an item's rows, and tiles of 64 rows of what
// these are multiplied with; it runs ahead into the next item and cedes its registers to the others.
// Each warpgroup keeps its rows, scores and sums in registers; matmuls read tiles from shared memory.
// While one warpgroup works on exponentials, matmuls of another run, and in the forward pass matmuls
// of its own: the next scores and the last values.
//
// Traffic: k and v once for every 64 Groups queries, from L2. Limit: at width 64 the exponentials, of
// which a tile needs as many cycles as its two matmuls. Layout: the tiles of hopper.cuh. Every sum has a
// fixed order, whichever block does it.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// The items of a block: heads in sections, whose keys stay in L2 where blocks then get as much to do
/// (AttentionItems.h). Every other section begins with its long items and the ones between with their
/// short ones, so that items that follow each other are about as long; blocks take them in turn, there
/// and back. Short ones are the very last. `lastLongest`: the last rows of a head, or of a chunk of it,
/// have most to do, else the first.
template <int Blocks, int Rows, int Heads, int Batch, int Sections> struct Items {
  static constexpr int heads = Heads * Batch, count = Blocks * heads, sections = Sections;
  int chunks, ofChunk; // chunks of a head that begin with a block, and blocks of one
  int row = 0;
  int block, head, batch;

  __device__ __forceinline__ explicit Items(const Mask &mask) {
    bool whole = mask.chunk > 0 && mask.chunk % Rows == 0 && Blocks % (mask.chunk / Rows) == 0;
    ofChunk = whole ? mask.chunk / Rows : Blocks;
    chunks = Blocks / ofChunk;
  }

  __device__ __forceinline__ bool next(bool lastLongest) {
    int item = row * gridDim.x + (row % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    ++row;
    // In an incomplete row the blocks at the other end have none.
    if (item >= count)
      return false;
    int section = ((item / Blocks + 1) * sections - 1) / heads;
    int first = section * heads / sections, size = (section + 1) * heads / sections - first;
    int in = item - first * Blocks, rank = in / size, at = first + in % size;
    bool longFirst = (sections - 1 - section) % 2 == 0;
    block = longFirst == lastLongest ? Blocks - 1 - rank : rank;
    block = block % chunks * ofChunk + block / chunks; // blocks of all chunks that have as much to do
    head = at % Heads;
    batch = at / Heads;
    return true;
  }
};

/// Registers of the threads that fetch: those of addresses and of places in two rings. Sums of gradients of wide
/// keys and values leave fewer, which suffice for most shapes.
template <int Groups, bool Wide = false>
constexpr int kFetchingRegisters = Wide ? kFewRegisters<Groups> : Groups == 2 ? 40 : 32;

/// Begins with empty rings: of a block's own rows, and of the tiles that these are multiplied with.
template <typename Own, typename Tiles>
__device__ __forceinline__ void startRings(const Own &own, const Tiles &tiles) {
  if (threadIdx.x == 0) {
    own.init();
    tiles.init();
  }
  __syncthreads();
}

/// Scores that the mask hides, of queries from `first` and keys from `key`, become `hidden`.
template <int Keys>
__device__ __forceinline__ void hide(float (&s)[kTile / 8][4], const Mask &mask, int first, int row, int lane,
                                     int key, float hidden) {
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int query = first + row + lane / 4 + i / 2 * 8, at = key + n * 8 + lane % 4 * 2 + i % 2;
      if (at >= Keys || !mask.sees(query, at))
        s[n][i] = hidden;
    }
}
/// The same of scores or weights [key][query]. A warpgroup has `rows` keys from `first`.
template <int Queries>
__device__ __forceinline__ void hideTransposed(float (&p)[kTile / 8][4], const Mask &mask, int query, int first,
                                               int rows, int row, int lane, float hidden) {
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int at = query + n * 8 + lane % 4 * 2 + i % 2, key = row + lane / 4 + i / 2 * 8;
      if (at >= Queries || key >= rows || !mask.sees(at, first + key))
        p[n][i] = hidden;
    }
}

//===-- Forward -------------------------------------------------------------------------------===//

/// The keys that a block of queries sees, in tiles of `Rows`.
template <int Groups, int Queries, int Keys, int Rows = kTile> struct QueryBlock {
  static constexpr int tiles = (Queries + kTile - 1) / kTile, blocks = (tiles + Groups - 1) / Groups;
  int firstTile, begin, end; // of the queries' tiles, negative where there are none; keys

  __device__ __forceinline__ QueryBlock(const Mask &mask, int block) {
    firstTile = block * Groups - (blocks * Groups - tiles); // the first block is the incomplete one
    int first = max(firstTile, 0) * kTile, last = min((firstTile + Groups) * kTile, Queries) - 1;
    begin = mask.firstKey(first) / Rows * Rows;
    end = mask.endKey(last, Keys);
  }
  __device__ __forceinline__ int steps() const { return max(0, (end - begin + Rows - 1) / Rows); }
};
/// The part of it that a warpgroup needs.
template <int Queries, int Keys, int Rows = kTile> struct OwnSteps {
  int first, rows, skipped, steps;
  __device__ __forceinline__ OwnSteps(const Mask &mask, int tile, int begin, int end) {
    first = tile * kTile;
    rows = tile < 0 ? 0 : min(kTile, Queries - first);
    skipped = 0;
    steps = 0;
    if (rows > 0) {
      skipped = min(mask.firstKey(first) - begin, max(0, end - begin)) / Rows;
      steps = max(0, (mask.endKey(first + rows - 1, Keys) - begin + Rows - 1) / Rows - skipped);
    }
  }
};

/// Fetches the keys and values that a block of queries needs, tile by tile.
template <int Width, int ValueWidth, int Keys, typename K, typename V, typename T, typename Block, typename Tiles>
__device__ __forceinline__ void fetchKeys(const T *k, const T *v, int batch, int keyHead, const Block &block,
                                          T *tiles, Tiles &ring, Announcer &announcer) {
  constexpr int size = kTileSize<Width>, pair = size + kTileSize<ValueWidth>;
  const T *kAt = K::at(k, batch, 0, keyHead), *vAt = V::at(v, batch, 0, keyHead);
  for (int key = block.begin; key < block.end; key += kTile) {
    ring.awaitEmpty(announcer);
    T *to = tiles + ring.stage * pair;
    fetchRows<Width>(to, kAt + key * K::row, K::row, Keys - key);
    fetchRows<ValueWidth>(to + size, vAt + key * V::row, V::row, Keys - key);
    announcer.started(ring.full(ring.stage));
    ring.next();
  }
}

template <int Groups, int Stages, int Batch, int Width, int ValueWidth, int Queries, int Keys, int Heads,
          int KeyHeads, typename Q, typename K, typename V, typename O, int Sections, typename T,
          typename Score>
__device__ __forceinline__ void hopperForward(const T *q, const T *k, const T *v, T *o,
                                              float *lse, Mask mask, Score score) {
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  T *const shared = reinterpret_cast<T *>(blocks1024);
  constexpr int size = kTileSize<Width>, valueSize = kTileSize<ValueWidth>, pair = size + valueSize;
  T *tiles = shared + Groups * size; // after the queries
  using Block = QueryBlock<Groups, Queries, Keys>;
  Ring<Groups, 1, true> queryRing(tiles + Stages * pair);
  Ring<Groups, Stages, false> ring(tiles + Stages * pair + 8);
  Items<Block::blocks, Groups * kTile, Heads, Batch, Sections> items(mask);
  int group = ownGroup();
  startRings(queryRing, ring);

  if (group == Groups) {
    cedeRegisters<Groups, kFetchingRegisters<Groups>>();
    Announcer announcer;
    while (items.next(true)) {
      Block block(mask, items.block);
      int keyHead = items.head / (Heads / KeyHeads);
      queryRing.awaitEmpty(announcer);
      for (int i = max(0, -block.firstTile); i < Groups; ++i) {
        int first = (block.firstTile + i) * kTile;
        fetchRows<Width>(shared + i * size, Q::at(q, items.batch, first, items.head), Q::row,
                         Queries - first);
      }
      announcer.started(queryRing.full(0));
      queryRing.next();
      fetchKeys<Width, ValueWidth, Keys, K, V>(k, v, items.batch, keyHead, block, tiles, ring, announcer);
    }
    announcer.finish();
    return;
  }

  takeRegisters<Groups, kFetchingRegisters<Groups>>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  float factor = score.factor() * kLog2e;
  while (items.next(true)) {
    Block block(mask, items.block);
    OwnSteps<Queries, Keys> own(mask, block.firstTile + group, block.begin, block.end);
    Rows<Width> queries;
    const uint32 zero = uint32(items.batch) >> 20;
    queryRing.awaitFull();
    queries.load(shared + group * size);
    queryRing.release(0);
    queryRing.next();
    float out[ValueWidth / 8][4], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f}, shrink[2];
    clear(out);
    uint32 p[kTile / 16][4];
    auto startScores = [&](float (&s)[kTile / 8][4]) {
      ring.awaitFull();
      beginMatmuls();
      scores<T, Width>(s, queries, sharedAddress(tiles + ring.stage * pair));
      commitMatmuls();
    };
    // From the scores of a step to weights, and the factor of what was summed before.
    auto weigh = [&](float (&s)[kTile / 8][4], int step) {
      int key = block.begin + (own.skipped + step) * kTile;
      forEach(s, [&](float &x, int, int) { x = score.bounded(x); });
      if (isPartial(mask, own.first, own.rows, key, kTile, Keys)) {
        hide<Keys>(s, mask, own.first, row, lane, key, -INFINITY);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float best = top[half];
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
          best = fmaxf(best, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        best = quadMax(best);
        // Weights are relative to a maximum of before as long as they stay below 2^8. A query that has
        // seen no key yet: every score is -inf, and so is the maximum.
        bool rises = (best - top[half]) * factor > 8.0f;
        shrink[half] = rises ? exp2Approx((top[half] - best) * factor) : 1.0f;
        top[half] = rises ? best : top[half];
        float base = top[half] == -INFINITY ? 0.0f : top[half] * factor, part = 0.0f;
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            s[n][i] = exp2Approx(fmaf(s[n][i], factor, -base));
            part += s[n][i];
          }
        sum[half] = sum[half] * shrink[half] + part;
      }
    };
    ring.skip(own.skipped);
    if (own.steps > 0) {
      {
        float s[kTile / 8][4];
        startScores(s);
        waitForMatmuls<0>(s);
        weigh(s, 0);
        packScores<T>(p, s);
      }
      uint32 values = sharedAddress(tiles + ring.stage * pair + size);
      ring.next();
      for (int step = 1; step < own.steps; ++step) {
        float s[kTile / 8][4];
        startScores(s);
        beginMatmuls();
        addMatmul<T, ValueWidth>(out, p, values);
        commitMatmuls();
        waitForMatmuls<1>(s);
        weigh(s, step);
        waitForMatmuls<0>(out);
        queries.keep(zero);
        ring.release(ring.last());
        pin(s); // until then p is in use
        packScores<T>(p, s);
        if (__any_sync(~0u, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
          forEach(out, [&](float &x, int, int i) { x *= shrink[i / 2]; });
        }
        pin(out);
        values = sharedAddress(tiles + ring.stage * pair + size);
        ring.next();
      }
      beginMatmuls();
      addMatmul<T, ValueWidth>(out, p, values);
      commitMatmuls();
      waitForMatmuls<0>(out);
      ring.release(ring.last());
    }
    ring.skip(block.steps() - own.skipped - own.steps);
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = quadSum(sum[half]);
      inverse[half] = all > 0.0f ? 1.0f / all : 0.0f;
      int at = row + lane / 4 + 8 * half;
      if (lse && lane % 4 == 0 && at < own.rows)
        lse[(int64(items.batch) * Heads + items.head) * Queries + own.first + at] =
            all > 0.0f ? top[half] * score.factor() + logf(all) : -INFINITY;
    }
    storeRows<ValueWidth>(O::at(o, items.batch, own.first, items.head), O::row, out, inverse[0], inverse[1],
                     row, own.rows);
  }
}

//===-- Backward ------------------------------------------------------------------------------===//

/// dq, and delta[b, h, i] = <dO, o>, which the gradients of keys need. `rotation` (rotation.cuh): of dq.
template <int Groups, int Stages, int Batch, int Width, int ValueWidth, int Queries, int Keys, int Heads,
          int KeyHeads, typename Q, typename K, typename V, typename O, typename G, typename DQ, int Sections,
          typename T, typename Score, typename R = Unrotated>
__device__ __forceinline__ void hopperQueryGradients(const T *dO, const T *q, const T *k,
                                                     const T *v, const T *o, const float *lse,
                                                     float *delta, T *dq, Mask mask, Score score, R rotation = {}) {
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  T *const shared = reinterpret_cast<T *>(blocks1024);
  constexpr int size = kTileSize<Width>, valueSize = kTileSize<ValueWidth>, pair = size + valueSize;
  constexpr int ownSize = size + 2 * valueSize; // q, dO and o of a warpgroup
  T *tiles = shared + Groups * ownSize;
  using Block = QueryBlock<Groups, Queries, Keys>;
  Ring<Groups, 1, true> queryRing(tiles + Stages * pair);
  Ring<Groups, Stages, false> ring(tiles + Stages * pair + 8);
  Items<Block::blocks, Groups * kTile, Heads, Batch, Sections> items(mask);
  int group = ownGroup();
  startRings(queryRing, ring);

  if (group == Groups) {
    cedeRegisters<Groups, kFetchingRegisters<Groups>>();
    Announcer announcer;
    while (items.next(true)) {
      Block block(mask, items.block);
      int head = items.head, batch = items.batch, keyHead = head / (Heads / KeyHeads);
      queryRing.awaitEmpty(announcer);
      for (int i = max(0, -block.firstTile); i < Groups; ++i) {
        int first = (block.firstTile + i) * kTile;
        T *to = shared + i * ownSize;
        fetchRows<Width>(to, Q::at(q, batch, first, head), Q::row, Queries - first);
        fetchRows<ValueWidth>(to + size, G::at(dO, batch, first, head), G::row, Queries - first);
        fetchRows<ValueWidth>(to + size + valueSize, O::at(o, batch, first, head), O::row, Queries - first);
      }
      announcer.started(queryRing.full(0));
      queryRing.next();
      fetchKeys<Width, ValueWidth, Keys, K, V>(k, v, batch, keyHead, block, tiles, ring, announcer);
    }
    announcer.finish();
    return;
  }

  takeRegisters<Groups, kFetchingRegisters<Groups>>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  float factor = score.factor() * kLog2e;
  float rest = Score::capped ? 1.0f : score.slope(0.0f); // of the slopes
  while (items.next(true)) {
    Block block(mask, items.block);
    OwnSteps<Queries, Keys> own(mask, block.firstTile + group, block.begin, block.end);
    Rows<Width> queries;
    Rows<ValueWidth> gradients;
    const uint32 zero = uint32(items.batch) >> 20;
    float rowLse[2], rowDelta[2] = {0.0f, 0.0f};
    queryRing.awaitFull();
    const T *rows = shared + group * ownSize;
    queries.load(rows);
    gradients.load(rows + size);
    {
      Rows<ValueWidth> outputs;
      outputs.load(rows + size + valueSize);
      queryRing.release(0);
      queryRing.next();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int k = 0; k < ValueWidth / 16; ++k)
#pragma unroll
          for (int i = half; i < 4; i += 2) {
            uint32 x = gradients.at[k][i], y = outputs.at[k][i];
            rowDelta[half] +=
                widenLow<T>(x) * widenLow<T>(y) + widenHigh<T>(x) * widenHigh<T>(y);
          }
        rowDelta[half] = quadSum(rowDelta[half]);
        int in = row + lane / 4 + 8 * half;
        int64 at = (int64(items.batch) * Heads + items.head) * Queries + own.first + in;
        rowLse[half] = in < own.rows ? lse[at] * kLog2e : 0.0f;
        if (lane % 4 == 0 && in < own.rows)
          delta[at] = rowDelta[half];
      }
    }
    float out[Width / 8][4];
    clear(out);
    ring.skip(own.skipped);
    for (int step = 0; step < own.steps; ++step) {
      int key = block.begin + (own.skipped + step) * kTile;
      uint32 keyTile = sharedAddress(tiles + ring.stage * pair);
      float s[kTile / 8][4], g[kTile / 8][4];
      ring.awaitFull();
      beginMatmuls();
      scores<T, Width>(s, queries, keyTile);
      commitMatmuls();
      scores<T, ValueWidth>(g, gradients, keyTile + size * 2);
      commitMatmuls();
      waitForMatmuls<1>(s);
      // Weights times slopes.
      forEach(s, [&](float &x, int, int i) {
        float bounded = score.bounded(x);
        x = exp2Approx(fmaf(bounded, factor, -rowLse[i / 2]));
        if constexpr (Score::capped)
          x *= score.slope(bounded);
      });
      if (isPartial(mask, own.first, own.rows, key, kTile, Keys)) {
        hide<Keys>(s, mask, own.first, row, lane, key, 0.0f);
      }
      waitForMatmuls<0>(g);
      forEach(g, [&](float &x, int n, int i) { x = s[n][i] * (x - rowDelta[i / 2]) * rest; });
      uint32 p[kTile / 16][4];
      packScores<T>(p, g);
      pin(out);
      beginMatmuls();
      addMatmul<T, Width>(out, p, keyTile);
      commitMatmuls();
      waitForMatmuls<0>(out);
      queries.keep(zero);
      gradients.keep(zero);
      ring.release(ring.stage);
      ring.next();
    }
    ring.skip(block.steps() - own.skipped - own.steps);
    storeRotated<Width>(DQ::at(dq, items.batch, own.first, items.head), DQ::row, out, rotation, items.batch, own.first,
                        row, own.rows);
  }
}

/// dk and dv. Scores are transposed, [key][query], so that both matmuls read them from registers.
/// Narrow rows of keys stay in registers, wide ones in shared memory. `rotation`: of dk.
template <int Groups, int Stages, int Batch, int Width, int ValueWidth, int Queries, int Keys, int Heads,
          int KeyHeads, typename Q, typename K, typename V, typename G, typename DK, typename DV, int Sections,
          typename T, typename Score, typename R = Unrotated>
__device__ __forceinline__ void hopperKeyGradients(const T *dO, const T *q, const T *k,
                                                   const T *v, const float *lse, const float *delta,
                                                   T *dk, T *dv, Mask mask, Score score, R rotation = {}) {
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  T *const shared = reinterpret_cast<T *>(blocks1024);
  constexpr int size = kTileSize<Width>, valueSize = kTileSize<ValueWidth>, pair = size + valueSize;
  constexpr int blockRows = kTile * Groups, blocks = (Keys + blockRows - 1) / blockRows;
  constexpr int headsOfKey = Heads / KeyHeads;
  constexpr bool inRegisters = Width <= 80 && ValueWidth <= 80;
  constexpr int fetching = kFetchingRegisters<Groups, (Width > 80 && ValueWidth > 80)>;
  T *tiles = shared + Groups * pair; // after k and v of each warpgroup
  float *statistics = reinterpret_cast<float *>(tiles + Stages * pair); // lse, delta of a stage
  Ring<Groups, 1, true> keyRing(statistics + 2 * Stages * kTile);
  Ring<Groups, Stages, true> ring(statistics + 2 * Stages * kTile + 4);
  Items<blocks, blockRows, KeyHeads, Batch, Sections> items(mask);
  int group = ownGroup();
  startRings(keyRing, ring);
  // The queries of a block of keys, from its first to its last.
  auto rangeOf = [&](int block, int &begin) {
    int first = block * blockRows, last = min(first + blockRows, Keys) - 1;
    begin = mask.firstQuery(first) / kTile * kTile;
    return max(0, mask.endQuery(last, Queries) - begin + kTile - 1) / kTile;
  };

  if (group == Groups) {
    cedeRegisters<Groups, fetching>();
    Announcer announcer;
    while (items.next(false)) {
      int begin, steps = rangeOf(items.block, begin), batch = items.batch, keyHead = items.head;
      keyRing.awaitEmpty(announcer);
      for (int i = 0; i < Groups; ++i) {
        int first = items.block * blockRows + i * kTile;
        if (first < Keys) {
          T *to = shared + i * pair;
          fetchRows<Width>(to, K::at(k, batch, first, keyHead), K::row, Keys - first);
          fetchRows<ValueWidth>(to + size, V::at(v, batch, first, keyHead), V::row, Keys - first);
        }
      }
      announcer.started(keyRing.full(0));
      keyRing.next();
      for (int head = keyHead * headsOfKey; head < (keyHead + 1) * headsOfKey; ++head)
        for (int step = 0; step < steps; ++step) {
          int query = begin + step * kTile, in = threadIdx.x % kTile;
          ring.awaitEmpty(announcer);
          T *to = tiles + ring.stage * pair;
          fetchRows<Width>(to, Q::at(q, batch, query, head), Q::row, Queries - query);
          fetchRows<ValueWidth>(to + size, G::at(dO, batch, query, head), G::row, Queries - query);
          bool exists = query + in < Queries, second = threadIdx.x % 128 >= kTile;
          int64 at = (int64(batch) * Heads + head) * Queries + query;
          copyNumber(statistics + (ring.stage * 2 + second) * kTile + in,
                     (second ? delta : lse) + at + (exists ? in : 0), exists);
          announcer.started(ring.full(ring.stage));
          ring.next();
        }
    }
    announcer.finish();
    return;
  }

  takeRegisters<Groups, fetching>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  float factor = score.factor() * kLog2e;
  float rest = Score::capped ? 1.0f : score.slope(0.0f); // of the slopes
  while (items.next(false)) {
    int begin, all = rangeOf(items.block, begin);
    int first = items.block * blockRows + group * kTile, rows = min(kTile, Keys - first);
    int skipped = 0, steps = 0;
    if (rows > 0) {
      skipped = (mask.firstQuery(first) - begin) / kTile;
      steps = max(0, (mask.endQuery(first + rows - 1, Queries) - begin + kTile - 1) / kTile - skipped);
    }
    Rows<inRegisters ? Width : 16> keys;
    Rows<inRegisters ? ValueWidth : 16> values;
    const uint32 zero = uint32(items.batch) >> 20;
    const T *ownKeys = shared + group * pair;
    keyRing.awaitFull();
    if constexpr (inRegisters) {
      keys.load(ownKeys);
      values.load(ownKeys + size);
      keyRing.release(0);
    }
    float dkOut[Width / 8][4], dvOut[ValueWidth / 8][4];
    clear(dkOut);
    clear(dvOut);
    for (int head = 0; head < headsOfKey; ++head) {
      ring.skip(skipped);
      for (int step = 0; step < steps; ++step) {
        int query = begin + (skipped + step) * kTile;
        uint32 qTile = sharedAddress(tiles + ring.stage * pair), gTile = qTile + size * 2;
        const float *columns = statistics + ring.stage * 2 * kTile + lane % 4 * 2;
        float p[kTile / 8][4], g[kTile / 8][4];
        ring.awaitFull();
        beginMatmuls();
        if constexpr (inRegisters)
          scores<T, Width>(p, keys, qTile);
        else
          scores<T, Width>(p, sharedAddress(ownKeys), qTile);
        commitMatmuls();
        if constexpr (inRegisters)
          scores<T, ValueWidth>(g, values, gTile);
        else
          scores<T, ValueWidth>(g, sharedAddress(ownKeys + size), gTile);
        commitMatmuls();
        waitForMatmuls<1>(p);
        // What is not hidden needs no mask.
        auto hideSome = [&](float hidden) {
          if (query + kTile > Queries || rows < kTile ||
              isPartial(mask, query, min(kTile, Queries - query), first, kTile, Keys)) {
            hideTransposed<Queries>(p, mask, query, first, rows, row, lane, hidden);
          }
        };
        uint32 packed[kTile / 16][4], packedG[kTile / 16][4];
        if constexpr (Score::capped) {
          // Slopes need the tangents: weights are packed first, and then have slopes as factors.
          constexpr float none = 2.0f; // no tangent: hidden
          forEach(p, [&](float &x, int, int) { x = score.bounded(x); });
          hideSome(none);
          auto split = [&](int n, int i) {
            float bounded = p[n][i], x = exp2Approx(fmaf(bounded, factor, -columns[n * 8 + i % 2] * kLog2e));
            x = bounded == none ? 0.0f : x;
            p[n][i] = x * score.slope(bounded);
            return x;
          };
#pragma unroll
          for (int k = 0; k < kTile / 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              float low = split(2 * k + i / 2, i % 2 * 2), high = split(2 * k + i / 2, i % 2 * 2 + 1);
              packed[k][i] = pack<T>(low, high);
            }
        } else {
          forEach(p, [&](float &x, int n, int i) {
            x = exp2Approx(fmaf(x, factor, -columns[n * 8 + i % 2] * kLog2e));
          });
          hideSome(0.0f);
          packScores<T>(packed, p);
        }
        waitForMatmuls<0>(g);
        pin(dvOut);
        beginMatmuls();
        addMatmul<T, ValueWidth>(dvOut, packed, gTile);
        commitMatmuls();
        forEach(g, [&](float &x, int n, int i) {
          x = p[n][i] * (x - columns[kTile + n * 8 + i % 2]) * rest;
        });
        packScores<T>(packedG, g);
        pin(dkOut);
        beginMatmuls();
        addMatmul<T, Width>(dkOut, packedG, qTile);
        commitMatmuls();
        waitForMatmuls<0>(dkOut);
        pin(dvOut);
        if constexpr (inRegisters) {
          keys.keep(zero);
          values.keep(zero);
        }
        ring.release(ring.stage);
        ring.next();
      }
      ring.skip(all - skipped - steps);
    }
    if constexpr (!inRegisters)
      keyRing.release(0);
    keyRing.next();
    if (rows > 0) {
      storeRows<ValueWidth>(DV::at(dv, items.batch, first, items.head), DV::row, dvOut, 1.0f, 1.0f, row, rows);
      storeRotated<Width>(DK::at(dk, items.batch, first, items.head), DK::row, dkOut, rotation, items.batch, first, row,
                          rows);
    }
  }
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
