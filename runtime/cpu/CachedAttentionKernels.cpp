// Cached attention on tiles, built once for each CPU level (see CMakeLists.txt).
//
// Computes o = softmax(scale q k^T) v, maybe with a cap on scores, over the tokens that each query
// sees, as AttentionKernels.cpp does: over tiles of slots, with a running maximum. Rows are queries
// of all heads that share keys, first by call, so keys are read once for all of them and what rows
// see never falls from one to the next. Scores stay [query][key], and keys are transposed once for
// all rows of a tile: a call has one query a head, where it decodes.
//
// Traffic: keys and values of the tokens that are seen, once. Limit: memory where a call has few
// tokens, else the rate of multiply-adds.
#include "runtime/cpu/CachedAttention.h"

#include "runtime/cpu/AttentionTiles.h"

namespace hydra::runtime::HYDRA_CPU_LEVEL {
namespace {

HYDRA_INLINE int64_t firstToken(const CachedAttentionShape &shape, int64_t begin, int64_t own) {
  const int64_t ofChunk = shape.chunk > 0 ? own / shape.chunk * shape.chunk : 0;
  const int64_t ofWindow = shape.window > 0 ? own - shape.window + 1 : 0;
  return larger(larger(ofChunk, ofWindow), begin + shape.calls - shape.slots);
}

template <typename T>
HYDRA_INLINE T *slotsOf(T *all, const CachedAttentionShape &shape, int64_t width, int64_t batch,
                        int64_t kvHead) {
  return all + (batch * shape.kvHeads + kvHead) * shape.slots * width;
}

template <typename T>
void remember(const CachedAttentionShape &shape, const CachedAttentionTensors<T> &t, int64_t batch,
              int64_t kvHead) {
  const int64_t begin = static_cast<int64_t>(t.position[batch]);
  if (begin < 0)
    return;
  T *keys = slotsOf(t.keys, shape, shape.headDim, batch, kvHead);
  T *values = slotsOf(t.values, shape, shape.valueDim, batch, kvHead);
  for (int64_t i = 0; i < shape.calls; ++i) {
    const int64_t slot = (begin + i) % shape.slots;
    __builtin_memcpy(keys + slot * shape.headDim, at(t.k, batch, i, kvHead),
                     static_cast<size_t>(shape.headDim) * sizeof(T));
    __builtin_memcpy(values + slot * shape.valueDim, at(t.v, batch, i, kvHead),
                     static_cast<size_t>(shape.valueDim) * sizeof(T));
  }
}

/// The rows of one task, and the keys of one tile.
struct CachedTile {
  int64_t row, rows;    // of the heads that share a key head
  int64_t key, columns; // positions
  Bounds keys;          // of each row, relative to `key`
};

/// One tile of scores [row][key]: new maxima, p in place, sums, and o shrunk by what maxima rose.
template <bool Capped>
void softmaxRows(const CachedAttentionShape &shape, const CachedTile &tile, int64_t ld,
                 float *scores, float *maxima, float *sums, float *o, int64_t width) {
  // A score is `outer` times the product, or under a cap times the tangent of `inner` products.
  const Vec inner = splat(Capped ? static_cast<float>(shape.scale / shape.cap) : 1.0f);
  const Vec outer = splat(static_cast<float>(Capped ? shape.cap : shape.scale));
  IntVec laneNumber;
  for (int32_t l = 0; l < lanes; ++l)
    laneNumber[l] = l;
  for (int64_t i = 0; i < tile.rows; ++i) {
    float *row = scores + i * ld;
    const IntVec begin = splat(tile.keys.begin[i]), end = splat(tile.keys.end[i]);
    const Vec unseen = splat(-__builtin_inff());
    Vec best = unseen;
    for (int64_t j = 0; j < tile.columns; j += lanes) {
      const IntVec key = laneNumber + splat(static_cast<int32_t>(j));
      Vec s = load(row + j);
      if constexpr (Capped)
        s = tanh(s * inner);
      s = ((key >= begin) & (key < end)) ? s * outer : unseen;
      store(row + j, s);
      best = vectorMax(best, s);
    }
    float highest = maxima[i];
    for (int64_t l = 0; l < lanes; ++l)
      highest = larger(highest, best[l]);
    const float base = highest == -__builtin_inff() ? 0.0f : highest; // it has seen nothing yet
    const float factor = exp2(splat((maxima[i] - base) * log2e))[0];
    Vec sum{};
    for (int64_t j = 0; j < tile.columns; j += lanes) {
      const Vec p = exp2((load(row + j) - splat(base)) * splat(log2e));
      store(row + j, p);
      sum += p;
    }
    sums[i] = sums[i] * factor + sumLanes(sum);
    maxima[i] = highest;
    if (factor != 1.0f)
      for (int64_t e = 0; e < width; e += lanes)
        store(o + i * width + e, load(o + i * width + e) * splat(factor));
  }
}

template <typename T>
void attend(const CachedAttentionShape &shape, const CachedAttentionTensors<T> &t, int64_t batch,
            int64_t kvHead, int64_t block, float *scratch) {
  const int64_t side = cachedAttentionTile(shape), hd = shape.headDim, dv = shape.valueDim;
  const int64_t width = roundUp(dv, lanes), group = shape.heads / shape.kvHeads;
  const int64_t most = cachedAttentionRows(shape), begin = static_cast<int64_t>(t.position[batch]);
  CachedTile tile;
  tile.row = block * most;
  tile.rows = smaller(most, shape.calls * group - tile.row);
  const auto call = [&](int64_t i) { return (tile.row + i) / group; };
  const auto head = [&](int64_t i) { return kvHead * group + (tile.row + i) % group; };

  Pieces pieces{scratch};
  float *q = pieces.take(side * hd), *kT = pieces.take(hd * side), *v = pieces.take(side * width);
  float *scores = pieces.take(side * side), *o = pieces.take(side * width);
  float *maxima = pieces.take(side), *sums = pieces.take(side);
  for (int64_t i = 0; i < tile.rows; ++i)
    packRows(at(t.q, batch, call(i), head(i)), 0, 1, hd, hd, q + i * hd);
  fill(o, tile.rows * width, 0.0f);
  fill(maxima, roundUp(tile.rows, lanes), -__builtin_inff());
  fill(sums, roundUp(tile.rows, lanes), 0.0f);

  const T *keys = slotsOf(t.keys, shape, hd, batch, kvHead);
  const T *values = slotsOf(t.values, shape, dv, batch, kvHead);
  const int64_t keysEnd = begin < 0 ? 0 : begin + call(tile.rows - 1) + 1;
  tile.key = begin < 0 ? 0 : larger<int64_t>(0, firstToken(shape, begin, begin + call(0)));
  for (; tile.key < keysEnd; tile.key += tile.columns) {
    const int64_t slot = tile.key % shape.slots; // a tile ends where slots begin again
    tile.columns = smaller(smaller(side, keysEnd - tile.key), shape.slots - slot);
    for (int64_t i = 0; i < tile.rows; ++i) {
      const int64_t own = begin + call(i);
      const auto within = [&](int64_t key) {
        return static_cast<int32_t>(smaller(larger<int64_t>(0, key - tile.key), tile.columns));
      };
      tile.keys.begin[i] = within(firstToken(shape, begin, own));
      tile.keys.end[i] = within(own + 1);
    }
    packTransposed(keys + slot * hd, hd, tile.columns, hd, kT, side);
    packRows(values + slot * dv, dv, tile.columns, dv, width, v);
    matmul<Limit::Columns, false>(tile.rows, roundUp(tile.columns, lanes), hd, q, hd, kT, side,
                                  scores, side, tile.keys);
    (shape.cap > 0 ? softmaxRows<true> : softmaxRows<false>)(shape, tile, side, scores, maxima,
                                                             sums, o, width);
    matmul<Limit::K, false>(tile.rows, width, tile.columns, scores, side, v, width, o, width,
                            tile.keys);
  }

  for (int64_t i = 0; i < tile.rows; ++i) {
    const float inverse = sums[i] > 0.0f ? 1.0f / sums[i] : 0.0f;
    T *row = at(t.o, batch, call(i), head(i));
    for (int64_t e = 0; e < dv; ++e)
      assign(row[e], o[i * width + e] * inverse);
  }
}

} // namespace

const CachedAttentionBuild cachedAttentionBuild = {
    {remember<float>, attend<float>}, {remember<BF16>, attend<BF16>}, {remember<F16>, attend<F16>}};

} // namespace hydra::runtime::HYDRA_CPU_LEVEL
