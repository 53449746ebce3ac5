// Attention of a call's tokens over those that earlier calls left in slots, on tensor cores: for 16-bit numbers
// whose rows have whole pieces of 16 bytes.
//
// A block has 16 rows of queries (of all heads that share keys, first by call) and a part of the tokens that they
// see; its warps take 16 tokens in turns, and copy keys and values `Stages` times 16 tokens ahead, so no warp waits for
// another. Keys: a piece of one token is parts of two instructions, as queries are, since the order of a sum over
// columns does not matter. Values: of pieces of two tokens side by side every column is a pair; the columns of a piece go
// to eight instructions.
// Warps are joined in their order; parts too, by the block that ends last, which a counter tells; it is zero again
// when the kernel ends. The slots of the call are read from k and v: blocks do not wait for the one that stores them.
//
// Of calls of few tokens (`Late`) rows in slots are asked for before the kernels in front have ended: none of them writes
// there. Then queries and keys may be computed, by each block those of its heads, which keeps them in shared memory. That is
// a launch less for everything that would make them.
//
// Traffic: keys and values of the tokens that are seen, once for each 16 rows of queries. Limit: memory, or how long a
// row of loads takes where few tokens are seen.

/// The number `i` of 8 in a piece of two tokens each, beside each other.
__device__ __forceinline__ uint32 pairOf(const uint4 &first, const uint4 &second, int i) {
  const uint32 a = i < 2 ? first.x : i < 4 ? first.y : i < 6 ? first.z : first.w;
  const uint32 b = i < 2 ? second.x : i < 4 ? second.y : i < 6 ? second.z : second.w;
  return __byte_perm(a, b, i % 2 == 0 ? 0x5410 : 0x7632);
}

template <bool First, typename A, typename B> struct Choice {
  using type = A;
};
template <typename A, typename B> struct Choice<false, A, B> {
  using type = B;
};

/// Rows of `Heads` heads for each token of the call that a block has computed.
template <int Heads, int Width> struct OfBlock {
  static constexpr bool inMemory = false;
  template <typename T> static __device__ __forceinline__ T *at(T *rows, int, int token, int head) {
    return rows + (token * Heads + head % Heads) * Width;
  }
};

/// Where queries and keys lie in memory.
struct GivenOperands {
  __device__ __forceinline__ void operator()() const {}
};

/// Keys and values of a sequence's tokens, of one head: those of the call, from `begin` on, and those in slots.
template <typename T, int Calls, int Slots, int Width, int ValueWidth, typename K, typename V> struct Tokens {
  const T *k, *v, *keys, *values;
  int begin, end, batch, head; // end: behind the last that is wanted

  __device__ __forceinline__ const T *key(int token) const {
    return token >= begin ? K::at(k, batch, min(token - begin, Calls - 1), head) : keys + int64(token % Slots) * Width;
  }
  __device__ __forceinline__ const T *value(int token) const {
    return token >= begin ? V::at(v, batch, min(token - begin, Calls - 1), head)
                          : values + int64(token % Slots) * ValueWidth;
  }
  /// Whether 16 lie beside each other.
  __device__ __forceinline__ bool areRow(int first) const {
    return first + 16 <= begin && first + 16 <= end && first % Slots + 16 <= Slots;
  }
};

/// A warp's stages, where every thread copies (cp.async) the pieces that it multiplies itself.
template <int Width, int ValueWidth, int Stages> struct PiecesByThread {
  static constexpr int chunks = (Width + 31) / 32, blocks = (ValueWidth + 63) / 64; // of columns
  static constexpr int bytes = (2 * chunks + 4 * blocks) * 512;                      // of a stage
  uint4 *own;

  __device__ __forceinline__ PiecesByThread(unsigned char *memory)
      : own(reinterpret_cast<uint4 *>(memory) + threadIdx.x / 32 * Stages * (bytes / 16) + threadIdx.x % 32) {}

  template <bool Late, typename Tokens>
  __device__ __forceinline__ void start(const Tokens &tokens, int first, int stage) {
    static_assert(!Late, "threads copy rows of slots and of the call alike");
    const int eighth = threadIdx.x % 32 / 4, fourth = threadIdx.x % 4;
    uint4 *to = own + stage * (bytes / 16);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = first + half * 8 + eighth;
      const auto *row = tokens.key(token);
#pragma unroll
      for (int c = 0; c < chunks; ++c, to += 32) {
        const bool exists = token < tokens.end && c * 32 + fourth * 8 < Width;
        copyAsync(to, reinterpret_cast<const uint4 *>(row + (exists ? c * 32 + fourth * 8 : 0)), exists);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = first + i / 2 * 8 + fourth * 2 + i % 2;
      const auto *row = tokens.value(token);
#pragma unroll
      for (int b = 0; b < blocks; ++b, to += 32) {
        const bool exists = token < tokens.end && b * 64 + eighth * 8 < ValueWidth;
        copyAsync(to, reinterpret_cast<const uint4 *>(row + (exists ? b * 64 + eighth * 8 : 0)), exists);
      }
    }
  }
  /// Behind every start, and where none is left to start.
  __device__ __forceinline__ void started() { commitCopies(); }
  __device__ __forceinline__ void await(int) { waitForCopies<Stages - 1>(); }
  __device__ __forceinline__ uint4 key(int stage, int half, int c) const {
    return own[stage * (bytes / 16) + (half * chunks + c) * 32];
  }
  __device__ __forceinline__ uint4 value(int stage, int i, int b) const {
    return own[stage * (bytes / 16) + (2 * chunks + i * blocks + b) * 32];
  }
};

/// A warp's stages, where the multiprocessor copies (cp.async.bulk) keys and values of 16 tokens as they lie.
template <int Width, int ValueWidth, int Warps, int Stages> struct RowsInBulk {
  static constexpr int chunks = (Width + 31) / 32, blocks = (ValueWidth + 63) / 64;
  static constexpr int keyBytes = 2 * Width, valueBytes = 2 * ValueWidth, bytes = 16 * (keyBytes + valueBytes);
  unsigned char *rows;
  uint32 barriers;

  /// By all threads of the block.
  __device__ __forceinline__ RowsInBulk(unsigned char *memory)
      : rows(memory + threadIdx.x / 32 * Stages * bytes) {
    __shared__ __align__(8) unsigned long long all[Warps * Stages];
    barriers = sharedAddress(all + threadIdx.x / 32 * Stages);
    if (threadIdx.x % 32 == 0) {
      for (int i = 0; i < Stages; ++i)
        initBarrier(barriers + 8 * i, 1);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
  }

  /// `Late`: rows of the call are left to `startOfCall` and `finishCall`.
  template <bool Late, typename Tokens>
  __device__ __forceinline__ void start(const Tokens &tokens, int first, int stage) {
    __syncwarp(); // all have read what was there
    const int lane = threadIdx.x % 32, all = min(16, tokens.end - first);
    const int count = Late ? min(all, max(tokens.begin - first, 0)) : all;
    const uint32 barrier = barriers + 8 * stage;
    unsigned char *to = rows + stage * bytes, *toValues = to + 16 * keyBytes;
    if (lane == 0)
      arriveExpecting(barrier, count * (keyBytes + valueBytes));
    __syncwarp();
    if (tokens.areRow(first)) {
      if (lane == 0) {
        copyBulk(sharedAddress(to), tokens.key(first), 16 * keyBytes, barrier);
        copyBulk(sharedAddress(toValues), tokens.value(first), 16 * valueBytes, barrier);
      }
    } else if (lane < count) {
      copyBulk(sharedAddress(to + lane * keyBytes), tokens.key(first + lane), keyBytes, barrier);
      copyBulk(sharedAddress(toValues + lane * valueBytes), tokens.value(first + lane), valueBytes, barrier);
    } else if (lane < 16 && lane >= all) { // behind the last: multiplied by zeros
      for (int e = 0; e < valueBytes; e += 16)
        *reinterpret_cast<uint4 *>(toValues + lane * valueBytes + e) = uint4{};
    }
  }
  /// Rows of the call by all lanes: begins to copy those in memory.
  template <bool KeysInMemory, typename Tokens>
  __device__ __forceinline__ void startOfCall(const Tokens &tokens, int first, int stage) {
    forRowsOfCall<KeysInMemory, true>(tokens, first, stage,
                                      [](uint4 *to, const uint4 *from) { copyAsync(to, from, true); });
    commitCopies();
  }
  /// Copies keys that lie in shared memory, and waits for the others.
  template <bool KeysInMemory, typename Tokens>
  __device__ __forceinline__ void finishCall(const Tokens &tokens, int first, int stage) {
    forRowsOfCall<!KeysInMemory, false>(tokens, first, stage, [](uint4 *to, const uint4 *from) { *to = *from; });
    waitForCopies<0>();
  }
  template <bool Keys, bool Values, typename Tokens, typename Copy>
  __device__ __forceinline__ void forRowsOfCall(const Tokens &tokens, int first, int stage, Copy copy) {
    unsigned char *to = rows + stage * bytes, *toValues = to + 16 * keyBytes;
    auto copyRow = [&](unsigned char *to, const void *from, int bytes) {
      for (int e = threadIdx.x % 32; e < bytes / 16; e += 32)
        copy(reinterpret_cast<uint4 *>(to) + e, static_cast<const uint4 *>(from) + e);
    };
    for (int i = max(tokens.begin - first, 0); i < min(16, tokens.end - first); ++i) {
      if (Keys)
        copyRow(to + i * keyBytes, tokens.key(first + i), keyBytes);
      if (Values)
        copyRow(toValues + i * valueBytes, tokens.value(first + i), valueBytes);
    }
  }
  __device__ __forceinline__ void started() {}
  __device__ __forceinline__ void await(int step) {
    __syncwarp();
    waitFor(barriers + 8 * (step % Stages), step / Stages % 2);
  }
  __device__ __forceinline__ uint4 key(int stage, int half, int c) const {
    const int eighth = threadIdx.x % 32 / 4, column = c * 32 + threadIdx.x % 4 * 8;
    return column < Width ? *reinterpret_cast<const uint4 *>(rows + stage * bytes + (half * 8 + eighth) * keyBytes + 2 * column)
                          : uint4{};
  }
  __device__ __forceinline__ uint4 value(int stage, int i, int b) const {
    const int token = i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2, column = b * 64 + threadIdx.x % 32 / 4 * 8;
    return column < ValueWidth ? *reinterpret_cast<const uint4 *>(rows + stage * bytes + 16 * keyBytes + token * valueBytes + 2 * column)
                               : uint4{};
  }
};

/// `form` is for powers of 2. `partial` [.., Parts, rows, 2 + ValueWidth]: maximum, sum, values; `counters`: one for
/// each tile of queries; of one part both are unused. `compute`, called by all threads, writes what q and k are of a block.
template <typename T, int Calls, int Heads, int KeyHeads, int Width, int ValueWidth, int Slots, int Parts, int Warps,
          int Stages, bool Bulk, bool Late, typename Q, typename K, typename V, typename O,
          typename Score, typename Compute = GivenOperands>
__device__ __forceinline__ void cachedAttentionTiles(const T *q, const T *k, const T *v, const float *position, T *o,
                                                     T *keys, T *values, float *partial, uint32 *counters,
                                                     SlotMask<Calls, Slots> mask, Score form, Compute compute = {}) {
  constexpr int group = Heads / KeyHeads, all = Calls * group, tiles = (all + 15) / 16, rows = all < 16 ? all : 16;
  constexpr int chunks = (Width + 31) / 32, blocks = (ValueWidth + 63) / 64; // of columns
  constexpr int threads = Warps * 32;
  const int part = blockIdx.x % Parts, tile = blockIdx.x / Parts, keyHead = blockIdx.y, batch = blockIdx.z;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, eighth = lane / 4, fourth = lane % 4;
  const int begin = int(position[batch]), firstRow = tile * 16;
  keys += (int64(batch) * KeyHeads + keyHead) * Slots * Width;
  values += (int64(batch) * KeyHeads + keyHead) * Slots * ValueWidth;

  const int callOfLast = min(firstRow + 16, all) - 1;
  const int from = begin < 0 ? 0 : mask.first(begin, begin + firstRow / group);
  const int to = begin < 0 ? 0 : begin + callOfLast / group + 1;
  const int each = ((to - from + Parts - 1) / Parts + 15) / 16 * 16;
  const int start = from + part * each, end = min(to, start + each);
  const int steps = (max(end - start, 0) + 15) / 16, mine = (steps - warp + Warps - 1) / Warps;

  extern __shared__ __align__(128) unsigned char memory[];
  typename Choice<Bulk, RowsInBulk<Width, ValueWidth, Warps, Stages>,
                  PiecesByThread<Width, ValueWidth, Stages>>::type stages(memory);
  const Tokens<T, Calls, Slots, Width, ValueWidth, K, V> tokens{k, v, keys, values, begin, end, batch, keyHead};
  auto tokenOf = [&](int step) { return start + (step * Warps + warp) * 16; };
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    if (stage < mine)
      stages.template start<Late>(tokens, tokenOf(stage), stage);
    stages.started();
  }
  if constexpr (Late) {
    waitForEarlier();
    for (int stage = 0; stage < min(Stages, mine); ++stage)
      stages.template startOfCall<K::inMemory>(tokens, tokenOf(stage), stage);
    compute();
    __syncthreads();
    for (int stage = 0; stage < min(Stages, mine); ++stage)
      stages.template finishCall<K::inMemory>(tokens, tokenOf(stage), stage);
  }

  // Two rows of queries a thread, and which tokens they see. Wide ones are read again for every 16 tokens.
  constexpr bool held = Width <= 128;
  const T *query[2];
  uint4 pieceOf[held ? chunks : 1][2];
  int firstSeen[2], lastSeen[2];
  auto load = [&](int c, int half) {
    const bool exists = lastSeen[half] >= 0 && c * 32 + fourth * 8 < Width;
    return exists ? *reinterpret_cast<const uint4 *>(query[half] + c * 32) : uint4{};
  };
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = firstRow + half * 8 + eighth;
    const bool exists = begin >= 0 && row < all;
    const int call = exists ? row / group : 0;
    query[half] = Q::at(q, batch, call, keyHead * group + (exists ? row % group : 0)) + fourth * 8;
    firstSeen[half] = exists ? mask.first(begin, begin + call) : 0;
    lastSeen[half] = exists ? begin + call : -1;
#pragma unroll
    for (int c = 0; c < (held ? chunks : 0); ++c)
      pieceOf[c][half] = load(c, half);
  }

  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {}, out[blocks * 8][4] = {};
  for (int step = 0, stage = 0; step < mine; ++step, stage = stage + 1 == Stages ? 0 : stage + 1) {
    stages.await(step);
    float score[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        const uint4 key = stages.key(stage, half, c), low = held ? pieceOf[held ? c : 0][0] : load(c, 0);
        const uint4 high = held ? pieceOf[held ? c : 0][1] : load(c, 1);
        multiply<T>(score[half], {low.x, high.x, low.y, high.y}, key.x, key.y);
        multiply<T>(score[half], {low.z, high.z, low.w, high.w}, key.z, key.w);
      }
    const int token = tokenOf(step) + fourth * 2;
    uint32 p[4];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float highest = top[row];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int of = token + i / 2 * 8 + i % 2;
        float &x = score[i / 2][row * 2 + i % 2];
        x = of < end && of >= firstSeen[row] && of <= lastSeen[row] ? form.bounded(x) * form.factor() : -INFINITY;
        highest = fmaxf(highest, x);
      }
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
      const bool sees = highest != -INFINITY;
      const float factor = sees ? exp2Approx(top[row] - highest) : 1.0f;
      top[row] = highest;
      sum[row] *= factor;
#pragma unroll
      for (int n = 0; n < blocks * 8; ++n) {
        out[n][row * 2] *= factor;
        out[n][row * 2 + 1] *= factor;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float a = sees ? exp2Approx(score[half][row * 2] - highest) : 0.0f;
        const float b = sees ? exp2Approx(score[half][row * 2 + 1] - highest) : 0.0f;
        sum[row] += a + b;
        p[half * 2 + row] = pack<T>(a, b);
      }
    }
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
      const uint4 v0 = stages.value(stage, 0, b), v1 = stages.value(stage, 1, b);
      const uint4 v2 = stages.value(stage, 2, b), v3 = stages.value(stage, 3, b);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        multiply<T>(out[b * 8 + i], p, pairOf(v0, v1, i), pairOf(v2, v3, i));
    }
    if (step + Stages < mine) {
      stages.template start<Late>(tokens, tokenOf(step + Stages), stage);
      if constexpr (Late) {
        stages.template startOfCall<K::inMemory>(tokens, tokenOf(step + Stages), stage);
        stages.template finishCall<K::inMemory>(tokens, tokenOf(step + Stages), stage);
      }
    }
    stages.started();
  }
  waitForCopies<0>();
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    sum[row] += __shfl_xor_sync(~0u, sum[row], 1);
    sum[row] += __shfl_xor_sync(~0u, sum[row], 2);
  }

  // Warps, in their order. A row: maximum, sum, values.
  constexpr int row = 2 + ValueWidth;
  float *ofWarps = reinterpret_cast<float *>(memory);
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = half * 8 + eighth;
    float *to = ofWarps + (warp * rows + r) * row;
    if (r >= rows)
      continue;
    if (fourth == 0) {
      to[0] = top[half];
      to[1] = sum[half];
    }
#pragma unroll
    for (int n = 0; n < blocks * 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (const int e = n / 8 * 64 + (fourth * 2 + i) * 8 + n % 8; e < ValueWidth)
          to[2 + e] = out[n][half * 2 + i];
  }
  __syncthreads();
  auto write = [&](int r, int e, float x) {
    if (const int query = firstRow + r; query < all)
      assign(O::at(o, batch, query / group, keyHead * group + query % group)[e], x);
  };
  const int number = (batch * KeyHeads + keyHead) * tiles + tile;
  float *parts = partial + int64(number) * Parts * rows * row;
  for (int i = threadIdx.x; i < rows * ValueWidth; i += threads) {
    const int r = i / ValueWidth, e = i % ValueWidth;
    const Joined of = joinRows<Warps, false>(ofWarps + r * row, rows * row, e);
    if (Parts == 1)
      write(r, e, of.mean());
    else
      of.store(parts + (part * rows + r) * row, e);
  }
  if (Parts > 1 && isLastPart(&counters[number], Parts))
    for (int i = threadIdx.x; i < rows * ValueWidth; i += threads)
      write(i / ValueWidth, i % ValueWidth, joinRows<Parts, true>(parts + i / ValueWidth * row, rows * row, i % ValueWidth).mean());

  if (begin >= 0 && blockIdx.x == 0)
    for (int i = warp; i < Calls; i += Warps) {
      const int slot = (begin + i) % Slots;
      for (int e = lane; e < Width; e += 32)
        keys[int64(slot) * Width + e] = K::at(k, batch, i, keyHead)[e];
      for (int e = lane; e < ValueWidth; e += 32)
        values[int64(slot) * ValueWidth + e] = V::at(v, batch, i, keyHead)[e];
    }

}
