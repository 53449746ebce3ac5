// Attention of a call's tokens over those that earlier calls left in slots, on tensor cores: for 16-bit numbers
// whose rows have whole pieces of 16 bytes.
//
// A block has 16 rows of queries (of all heads that share keys, first by call) and a part of the tokens that they
// see; its warps take 16 tokens in turns. A thread copies (cp.async) the pieces of keys and values that it multiplies
// itself, `Stages` times 16 tokens ahead, so no thread waits for the copies of another. Keys: a piece of one
// token is parts of two instructions, as queries are, since the order of a sum over columns does not matter.
// Values: of pieces of two tokens side by side every column is a pair; the columns of a piece go to eight instructions.
// Warps are joined in their order; parts too, by the block that ends last, which a counter tells; it is zero again
// when the kernel ends. The slots of the call are read from k and v: blocks do not wait for the one that stores them.
//
// Traffic: keys and values of the tokens that are seen, once for each 16 rows of queries. Limit: memory, or how long a
// row of loads takes where few tokens are seen.

/// The number `i` of 8 in a piece of two tokens each, beside each other.
__device__ __forceinline__ uint32 pairOf(const uint4 &first, const uint4 &second, int i) {
  const uint32 a = i < 2 ? first.x : i < 4 ? first.y : i < 6 ? first.z : first.w;
  const uint32 b = i < 2 ? second.x : i < 4 ? second.y : i < 6 ? second.z : second.w;
  return __byte_perm(a, b, i % 2 == 0 ? 0x5410 : 0x7632);
}

/// `scale` is for powers of 2. `partial` [.., Parts, rows, 2 + ValueWidth]: maximum, sum, values; `counters`: one for
/// each tile of queries; of one part both are unused.
template <typename T, int Calls, int Heads, int KeyHeads, int Width, int ValueWidth, int Slots, int Parts, int Warps,
          int Stages, typename Q, typename K, typename V, typename O>
__device__ __forceinline__ void cachedAttentionTiles(const T *q, const T *k, const T *v, const float *position, T *o,
                                                     T *keys, T *values, float *partial, uint32 *counters,
                                                     SlotMask<Calls, Slots> mask, float scale) {
  constexpr int group = Heads / KeyHeads, all = Calls * group, tiles = (all + 15) / 16, rows = all < 16 ? all : 16;
  constexpr int chunks = (Width + 31) / 32, blocks = (ValueWidth + 63) / 64; // of columns
  constexpr int pieces = 2 * chunks + 4 * blocks, threads = Warps * 32;
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

  extern __shared__ __align__(16) uint4 slots[];
  uint4 *own = slots + warp * Stages * pieces * 32 + lane;
  auto tokenOf = [&](int step) { return start + (step * Warps + warp) * 16; };
  auto copy = [&](int step, int stage) {
    const int first = tokenOf(step);
    uint4 *to = own + stage * pieces * 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = first + half * 8 + eighth;
      const T *row = token >= begin ? K::at(k, batch, min(token - begin, Calls - 1), keyHead)
                                    : keys + int64(token % Slots) * Width;
#pragma unroll
      for (int c = 0; c < chunks; ++c, to += 32) {
        const bool exists = token < end && c * 32 + fourth * 8 < Width;
        copyAsync(to, reinterpret_cast<const uint4 *>(row + (exists ? c * 32 + fourth * 8 : 0)), exists);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = first + i / 2 * 8 + fourth * 2 + i % 2;
      const T *row = token >= begin ? V::at(v, batch, min(token - begin, Calls - 1), keyHead)
                                    : values + int64(token % Slots) * ValueWidth;
#pragma unroll
      for (int b = 0; b < blocks; ++b, to += 32) {
        const bool exists = token < end && b * 64 + eighth * 8 < ValueWidth;
        copyAsync(to, reinterpret_cast<const uint4 *>(row + (exists ? b * 64 + eighth * 8 : 0)), exists);
      }
    }
  };
#pragma unroll
  for (int stage = 0; stage < Stages; ++stage) {
    if (stage < mine)
      copy(stage, stage);
    commitCopies();
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
    waitForCopies<Stages - 1>();
    const uint4 *at = own + stage * pieces * 32;
    float score[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int c = 0; c < chunks; ++c, at += 32) {
        const uint4 key = *at, low = held ? pieceOf[held ? c : 0][0] : load(c, 0);
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
        x = of < end && of >= firstSeen[row] && of <= lastSeen[row] ? x * scale : -INFINITY;
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
      const uint4 v0 = at[b * 32], v1 = at[(blocks + b) * 32], v2 = at[(2 * blocks + b) * 32], v3 = at[(3 * blocks + b) * 32];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        multiply<T>(out[b * 8 + i], p, pairOf(v0, v1, i), pairOf(v2, v3, i));
    }
    if (step + Stages < mine)
      copy(step + Stages, stage);
    commitCopies();
  }
  waitForCopies<0>();
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    sum[row] += __shfl_xor_sync(~0u, sum[row], 1);
    sum[row] += __shfl_xor_sync(~0u, sum[row], 2);
  }

  // Warps, in their order. A row: maximum, sum, values.
  constexpr int row = 2 + ValueWidth;
  float *ofWarps = reinterpret_cast<float *>(slots);
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
