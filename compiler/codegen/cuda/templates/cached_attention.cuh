// Attention of a call's tokens over those that earlier calls left in slots, for any element type and width.
//
// As in flash decoding: the tokens that a tile of queries sees are cut into parts, a block each, since one
// sequence has few heads; the block that ends last joins the parts, in their order. Queries of all heads that share
// keys are rows, first by call. A group of lanes reads a row of keys, 16 bytes a lane, and multiplies it with
// all queries of the tile; several rows are in flight. Every group has a running maximum of its own, and
// groups are joined when the part ends. The slots of the call are read from k and v: blocks do not wait
// for the one that stores them.
//
// Traffic: keys and values of the tokens that are seen, once for each tile of queries. Limit: memory, or how
// long a row of loads takes where few tokens are seen.

/// `Lanes` lanes share rows of `Width` numbers, in pieces of `Piece` side by side.
template <typename T, int Width, int Lanes, int Piece> struct LanePart {
  static constexpr int pieces = (Width + Lanes * Piece - 1) / (Lanes * Piece), count = pieces * Piece;
  struct alignas(Piece * sizeof(T)) Numbers {
    T x[Piece];
  };
  static constexpr bool whole = Width % (Lanes * Piece) == 0;

  static __device__ __forceinline__ int column(int piece, int lane) { return (piece * Lanes + lane) * Piece; }
  static __device__ __forceinline__ bool has(int piece, int lane) { return whole || column(piece, lane) < Width; }

  Numbers raw[pieces];

  __device__ __forceinline__ void load(const T *row, int lane, bool exists) {
#pragma unroll
    for (int i = 0; i < pieces; ++i)
      if (exists && has(i, lane))
        raw[i] = *reinterpret_cast<const Numbers *>(row + column(i, lane));
      else
        raw[i] = Numbers{};
  }
  __device__ __forceinline__ float operator[](int i) const { return widen(raw[i / Piece].x[i % Piece]); }
};

/// What rows of queries have come to: e^(s - top) summed, and the same times values.
template <int Count> struct Running {
  float top = -INFINITY, sum = 0.0f, x[Count] = {};

  /// By how much numbers shrink under a new maximum.
  __device__ __forceinline__ float raise(float highest) {
    float factor = highest == -INFINITY ? 1.0f : exp2Approx(top - highest);
    top = highest;
    sum *= factor;
#pragma unroll
    for (int i = 0; i < Count; ++i)
      x[i] *= factor;
    return factor;
  }
};

/// Which tokens see which.
template <int Calls, int Slots> struct SlotMask {
  int chunk, window; // 0: none

  /// The first that the token at `own` sees, of a call from `begin` on.
  __device__ __forceinline__ int first(int begin, int own) const {
    int least = max(0, begin + Calls - Slots);
    if (chunk > 0)
      least = max(least, own / chunk * chunk);
    return window > 0 ? max(least, own - window + 1) : least;
  }
};

/// What rows of queries have come to in several places.
struct Joined {
  float top = -INFINITY, sum = 0.0f, x = 0.0f;

  __device__ __forceinline__ float mean() const { return sum > 0.0f ? x / sum : 0.0f; }
  /// As value `e` of a row.
  __device__ __forceinline__ void store(float *row, int e) const {
    row[2 + e] = x;
    if (e == 0) {
      row[0] = top;
      row[1] = sum;
    }
  }
};
/// Value `e` of a row from `Count` rows at a distance of `stride`: maximum, sum, values. Not through the first cache where
/// other blocks have written them.
template <int Count, bool OfOthers> __device__ __forceinline__ Joined joinRows(const float *first, int stride, int e) {
  auto load = [&](int i, int at) { return OfOthers ? __ldcg(first + i * stride + at) : first[i * stride + at]; };
  constexpr int together = Count < 16 ? Count : 16;
  Joined all;
#pragma unroll 1
  for (int begin = 0; begin < Count; begin += together) {
    float tops[together], sums[together], xs[together], top = all.top;
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const bool is = Count % together == 0 || begin + i < Count;
      tops[i] = is ? load(begin + i, 0) : -INFINITY;
      sums[i] = is ? load(begin + i, 1) : 0.0f;
      xs[i] = is ? load(begin + i, 2 + e) : 0.0f;
      top = fmaxf(top, tops[i]);
    }
    if (top == -INFINITY)
      continue;
    const float factor = exp2Approx(all.top - top);
    all = {top, all.sum * factor, all.x * factor};
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const float of = exp2Approx(tops[i] - top);
      all.sum += of * sums[i];
      all.x += of * xs[i];
    }
  }
  return all;
}

/// Whether all other parts have been stored. By all threads of a block, behind its own; the counter is zero before the
/// first part and behind the last.
__device__ __forceinline__ bool isLastPart(uint32 *counter, int parts) {
  __shared__ bool isLast;
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32 before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(parts - 1)
                 : "memory");
    isLast = before == parts - 1;
  }
  __syncthreads();
  return isLast;
}

/// A block for each part of what a tile of `Rows` queries of a key head sees. `form` is for powers of 2. `partial`
/// [.., Parts, Rows, 2 + ValueWidth]: maximum, sum, values; `counters`: one for each tile; of one part both are unused.
template <typename T, int Calls, int Heads, int KeyHeads, int Width, int ValueWidth, int Slots, int Parts, int Rows,
          int Lanes, int Piece, int Threads, int Flight, typename Q, typename K, typename V, typename O,
          typename Score>
__device__ __forceinline__ void cachedAttention(const T *q, const T *k, const T *v, const float *position, T *o,
                                                T *keys, T *values, float *partial, uint32 *counters,
                                                SlotMask<Calls, Slots> mask, Score form) {
  using Key = LanePart<T, Width, Lanes, Piece>;
  using Value = LanePart<T, ValueWidth, Lanes, Piece>;
  constexpr int group = Heads / KeyHeads, all = Calls * group, tiles = (all + Rows - 1) / Rows;
  constexpr int groups = Threads / Lanes, warps = Threads / 32;
  const int part = blockIdx.x % Parts, tile = blockIdx.x / Parts, keyHead = blockIdx.y, batch = blockIdx.z;
  const int lane = threadIdx.x % Lanes, own = threadIdx.x / Lanes;
  const int begin = int(position[batch]), firstRow = tile * Rows;
  keys += (int64(batch) * KeyHeads + keyHead) * Slots * Width;
  values += (int64(batch) * KeyHeads + keyHead) * Slots * ValueWidth;
  const int callOfLast = min(firstRow + Rows, all) - 1;

  if (begin >= 0 && blockIdx.x == 0)
    for (int i = threadIdx.x / 32; i < Calls; i += warps) {
      int slot = (begin + i) % Slots;
      for (int e = threadIdx.x % 32; e < Width; e += 32)
        keys[int64(slot) * Width + e] = K::at(k, batch, i, keyHead)[e];
      for (int e = threadIdx.x % 32; e < ValueWidth; e += 32)
        values[int64(slot) * ValueWidth + e] = V::at(v, batch, i, keyHead)[e];
    }

  Key query[Rows];
  int first[Rows], last[Rows]; // of the tokens that a row sees
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    int row = firstRow + r;
    bool exists = begin >= 0 && row < all;
    int call = exists ? row / group : 0;
    query[r].load(Q::at(q, batch, call, keyHead * group + (exists ? row % group : 0)), lane, exists);
    last[r] = exists ? begin + call : -1;
    first[r] = exists ? mask.first(begin, begin + call) : 0;
  }
  const int from = begin < 0 ? 0 : mask.first(begin, begin + firstRow / group);
  const int to = begin < 0 ? 0 : begin + callOfLast / group + 1;
  constexpr int step = groups * Flight;
  const int each = ((to - from + Parts - 1) / Parts + step - 1) / step * step;
  const int start = from + part * each, end = min(to, start + each);

  Running<Value::count> running[Rows];
  for (int block = start; block < end; block += step) { // as often for all lanes of a warp
    const int t = block + own;
    Key key[Flight];
    Value value[Flight];
#pragma unroll
    for (int u = 0; u < Flight; ++u) {
      int token = t + u * groups;
      bool exists = token < end;
      const T *keyRow = token >= begin ? K::at(k, batch, exists ? token - begin : 0, keyHead)
                                       : keys + int64(token % Slots) * Width;
      const T *valueRow = token >= begin ? V::at(v, batch, exists ? token - begin : 0, keyHead)
                                         : values + int64(token % Slots) * ValueWidth;
      key[u].load(keyRow, lane, exists);
      value[u].load(valueRow, lane, exists);
    }
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      float score[Flight], highest = running[r].top;
#pragma unroll
      for (int u = 0; u < Flight; ++u) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < Key::count; ++i)
          sum += query[r][i] * key[u][i];
#pragma unroll
        for (int distance = Lanes / 2; distance > 0; distance /= 2)
          sum += __shfl_xor_sync(~0u, sum, distance, Lanes);
        int token = t + u * groups;
        score[u] = token < end && token >= first[r] && token <= last[r] ? form.boundedExactly(sum) * form.factor() : -INFINITY;
        highest = fmaxf(highest, score[u]);
      }
      running[r].raise(highest);
#pragma unroll
      for (int u = 0; u < Flight; ++u) {
        float p = highest == -INFINITY ? 0.0f : exp2Approx(score[u] - highest);
        running[r].sum += p;
#pragma unroll
        for (int i = 0; i < Value::count; ++i)
          running[r].x[i] += p * value[u][i];
      }
    }
  }

  // Groups of a warp, then warps, in their order.
  __shared__ float tops[warps][Rows], sums[warps][Rows], outputs[warps][Rows][ValueWidth];
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    Running<Value::count> &mine = running[r];
#pragma unroll
    for (int distance = Lanes; distance < 32; distance *= 2) {
      float other = __shfl_xor_sync(~0u, mine.top, distance);
      mine.raise(fmaxf(mine.top, other));
      mine.sum += __shfl_xor_sync(~0u, mine.sum, distance);
#pragma unroll
      for (int i = 0; i < Value::count; ++i)
        mine.x[i] += __shfl_xor_sync(~0u, mine.x[i], distance);
    }
    if (threadIdx.x % 32 < Lanes) {
      int warp = threadIdx.x / 32;
      if (lane == 0) {
        tops[warp][r] = mine.top;
        sums[warp][r] = mine.sum;
      }
#pragma unroll
      for (int i = 0; i < Value::count; ++i)
        if (Value::has(i / Piece, lane))
          outputs[warp][r][Value::column(i / Piece, lane) + i % Piece] = mine.x[i];
    }
  }
  __syncthreads();
  const int number = (batch * KeyHeads + keyHead) * tiles + tile;
  constexpr int stride = 2 + ValueWidth;
  float *parts = partial + int64(number) * Parts * Rows * stride;
  auto write = [&](int r, int e, float x) {
    if (int row = firstRow + r; row < all)
      assign(O::at(o, batch, row / group, keyHead * group + row % group)[e], x);
  };
  for (int i = threadIdx.x; i < Rows * ValueWidth; i += Threads) {
    int r = i / ValueWidth, e = i % ValueWidth;
    Joined of;
#pragma unroll
    for (int w = 0; w < warps; ++w)
      of.top = fmaxf(of.top, tops[w][r]);
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      float factor = of.top == -INFINITY ? 0.0f : exp2Approx(tops[w][r] - of.top);
      of.sum += factor * sums[w][r];
      of.x += factor * outputs[w][r][e];
    }
    if (Parts == 1)
      write(r, e, of.mean());
    else
      of.store(parts + (part * Rows + r) * stride, e);
  }
  if (Parts > 1 && isLastPart(&counters[number], Parts))
    for (int i = threadIdx.x; i < Rows * ValueWidth; i += Threads)
      write(i / ValueWidth, i % ValueWidth,
            joinRows<Parts, true>(parts + i / ValueWidth * stride, Rows * stride, i % ValueWidth).mean());
}
