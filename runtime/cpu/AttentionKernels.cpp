// Attention on tiles, built once for each CPU level (see CMakeLists.txt).
//
// Computes o = softmax(scale q k^T + mask) v, maybe with a cap on scores, with lse, and dq, dk, dv,
// as in Dao, "FlashAttention-2" (2023), models.md section 1.3. Forward: for 64 queries, over all
// key tiles they see, with a running maximum. Backward: for 64 keys, over all query tiles that see
// them; p = exp(s - lse) is recomputed.
//
// Traffic: forward reads k and v once for every 64 queries, backward reads q, dO and reads and
// writes dq once for every 64 keys: tiles of one head stay in the L2 cache, so memory sees each
// tensor about once. Arithmetic: 4 S Sk hd (half of it when causal) forward, 10 backward, plus an
// exp2 each (15 operations against 2 hd multiply-adds). Limit: the rate of multiply-adds.
//
// Layout: tiles are packed row-major, padded to 16 columns. Forward keeps scores transposed, [key]
// [query], so that maximum and sum over keys need nothing across lanes and only q, once for many
// key tiles, is transposed. Backward keeps [query][key] with k and v transposed once for many query
// tiles.
//
// Assumes checkAttentionShape, no overlap of outputs and inputs, and what the masks have in common:
// the keys that query i sees are a range [begin(i), end(i)) neither end of which falls as i rises.
#include "runtime/cpu/AttentionKernels.h"

#include "runtime/cpu/AttentionTiles.h"

namespace hydra::runtime::HYDRA_CPU_LEVEL {
namespace {

HYDRA_INLINE int64_t firstKey(const AttentionShape &shape, int64_t query) {
  const int64_t ofChunk = shape.chunk > 0 ? query / shape.chunk * shape.chunk : 0;
  const int64_t ofWindow = shape.window > 0 ? query - shape.window + 1 : 0;
  return smaller(larger(ofChunk, ofWindow), shape.keys);
}

HYDRA_INLINE int64_t endKey(const AttentionShape &shape, int64_t query) {
  const int64_t ofChunk = shape.chunk > 0 ? (query / shape.chunk + 1) * shape.chunk : shape.keys;
  return smaller(shape.causal ? query + 1 : ofChunk, shape.keys);
}

/// Rows and keys of one tile: queries [query, query + rows), keys [key, key + columns).
struct Tile {
  int64_t query, rows, key, columns;
  Bounds keys;    // of each query, relative to `key`; also for the lanes beyond the last query
  Bounds queries; // of each key, relative to `query`
  bool partial;   // some query of the tile does not see some key of it
};

void describeTile(const AttentionShape &shape, Tile &tile) {
  tile.partial = false;
  const auto within = [&](int64_t key) {
    return static_cast<int32_t>(smaller(larger<int64_t>(0, key - tile.key), tile.columns));
  };
  for (int64_t i = 0; i < tile.rows; ++i) {
    tile.keys.begin[i] = within(firstKey(shape, tile.query + i));
    tile.keys.end[i] = within(endKey(shape, tile.query + i));
    tile.partial |= tile.keys.begin[i] > 0 || tile.keys.end[i] < tile.columns;
  }
  for (int64_t i = tile.rows; i < roundUp(tile.rows, lanes); ++i) {
    tile.keys.begin[i] = tile.keys.begin[tile.rows - 1];
    tile.keys.end[i] = tile.keys.end[tile.rows - 1];
  }
  int32_t begin = 0, end = 0; // queries with end > key, queries with begin <= key
  for (int64_t j = 0; j < tile.columns; ++j) {
    while (begin < tile.rows && tile.keys.end[begin] <= j)
      ++begin;
    while (end < tile.rows && tile.keys.begin[end] <= j)
      ++end;
    tile.queries.begin[j] = begin;
    tile.queries.end[j] = end;
  }
}

//---- Forward -----------------------------------------------------------------------------------

/// One tile of scores [key][query]: new maxima, p in place, sums, and by what the old sums shrink.
/// Scores are as in gradientTile, <q, k> to the bit and scaled in one operation with the
/// difference: then their rounding is in lse too and cancels there.
void softmaxTile(const Tile &tile, int64_t ld, Vec scale, float *scores, float *maxima, float *sums,
                 float *shrink) {
  for (int64_t lane = 0; lane < tile.rows; lane += lanes) {
    if (tile.partial) {
      const IntVec begin = loadInts(tile.keys.begin + lane), end = loadInts(tile.keys.end + lane);
      for (int64_t j = 0; j < tile.columns; ++j) {
        const IntVec key = splat(static_cast<int32_t>(j));
        float *row = scores + j * ld + lane;
        store(row, ((key >= begin) & (key < end)) ? load(row) : splat(-__builtin_inff()));
      }
    }
    Vec best[4];
    for (Vec &b : best)
      b = splat(-__builtin_inff());
    int64_t j = 0;
    for (; j + 4 <= tile.columns; j += 4)
      for (int64_t u = 0; u < 4; ++u)
        best[u] = vectorMax(best[u], scale * load(scores + (j + u) * ld + lane));
    for (; j < tile.columns; ++j)
      best[0] = vectorMax(best[0], scale * load(scores + j * ld + lane));
    const Vec old = load(maxima + lane);
    const Vec highest =
        vectorMax(vectorMax(vectorMax(best[0], best[1]), vectorMax(best[2], best[3])), old);
    // A query that has seen no key yet: every score is -inf, and so is the maximum.
    const Vec base = highest == splat(-__builtin_inff()) ? Vec{} : highest;
    const Vec factor = exp2((old - base) * splat(log2e));
    Vec sum = load(sums + lane) * factor;
    for (j = 0; j < tile.columns; ++j) {
      const Vec p = exp2((load(scores + j * ld + lane) * scale - base) * splat(log2e));
      store(scores + j * ld + lane, p);
      sum += p;
    }
    store(maxima + lane, highest);
    store(sums + lane, sum);
    store(shrink + lane, factor);
  }
}

/// Scores in the place of products, where they have a cap.
void capTile(const AttentionShape &shape, const Tile &tile, int64_t ld, float *scores) {
  const Vec inner = splat(static_cast<float>(shape.scale / shape.cap)),
            cap = splat(static_cast<float>(shape.cap));
  for (int64_t j = 0; j < tile.columns; ++j)
    for (int64_t lane = 0; lane < tile.rows; lane += lanes) {
      float *s = scores + j * ld + lane;
      store(s, tanh(load(s) * inner) * cap);
    }
}

template <typename T>
void forward(const AttentionShape &shape, const AttentionForward<T> &t, int64_t batch, int64_t head,
             int64_t block, float *scratch) {
  const int64_t side = attentionBlock(shape), hd = shape.headDim, dv = shape.valueDim;
  const int64_t width = roundUp(dv, lanes), kvHead = head / (shape.heads / shape.kvHeads);
  Tile tile;
  tile.query = block * side;
  tile.rows = smaller(side, shape.queries - tile.query);

  Pieces pieces{scratch};
  float *q = pieces.take(hd * side), *k = pieces.take(side * hd), *v = pieces.take(side * width);
  float *scores = pieces.take(side * side), *o = pieces.take(side * width);
  float *maxima = pieces.take(side), *sums = pieces.take(side), *shrink = pieces.take(side);
  packTransposed(at(t.q, batch, tile.query, head), t.q.rowStride, tile.rows, hd, q, side);
  fill(o, tile.rows * width, 0.0f);
  fill(maxima, roundUp(tile.rows, lanes), -__builtin_inff());
  fill(sums, roundUp(tile.rows, lanes), 0.0f);

  const Vec scale = splat(shape.cap > 0 ? 1.0f : static_cast<float>(shape.scale));
  const int64_t keysEnd = endKey(shape, tile.query + tile.rows - 1);
  tile.key = firstKey(shape, tile.query) / side * side;
  for (; tile.key < keysEnd; tile.key += side) {
    tile.columns = smaller(side, shape.keys - tile.key);
    describeTile(shape, tile);
    packRows(at(t.k, batch, tile.key, kvHead), t.k.rowStride, tile.columns, hd, hd, k);
    packRows(at(t.v, batch, tile.key, kvHead), t.v.rowStride, tile.columns, dv, width, v);
    if (tile.partial)
      fill(scores, tile.columns * side, 0.0f); // what matmul leaves out is masked anyway
    matmul<Limit::Columns, false>(tile.columns, roundUp(tile.rows, lanes), hd, k, hd, q, side,
                                  scores, side, tile.queries);
    if (shape.cap > 0)
      capTile(shape, tile, side, scores);
    softmaxTile(tile, side, scale, scores, maxima, sums, shrink);
    for (int64_t i = 0; i < tile.rows; ++i)
      if (shrink[i] != 1.0f)
        for (int64_t e = 0; e < width; e += lanes)
          store(o + i * width + e, load(o + i * width + e) * splat(shrink[i]));
    matmul<Limit::K, true>(tile.rows, width, tile.columns, scores, side, v, width, o, width,
                           tile.keys);
  }

  for (int64_t i = 0; i < tile.rows; ++i) {
    const float inverse = sums[i] > 0.0f ? 1.0f / sums[i] : 0.0f;
    T *row = at(t.o, batch, tile.query + i, head);
    for (int64_t e = 0; e < dv; ++e)
      assign(row[e], o[i * width + e] * inverse);
  }
  if (t.lse)
    for (int64_t i = 0; i < tile.rows; ++i)
      t.lse[(batch * shape.heads + head) * shape.queries + tile.query + i] =
          sums[i] > 0.0f ? static_cast<float>(double(maxima[i]) + __builtin_log(double(sums[i])))
                         : -__builtin_inff();
}

//---- Backward ----------------------------------------------------------------------------------

/// Where a part adds to dq: rows of `width` floats.
struct QueryGradient {
  float *rows;
  int64_t stride;
};

HYDRA_INLINE bool partsWriteDq(const AttentionShape &shape) {
  return attentionBackwardParts(shape) == 1 && shape.headDim % lanes == 0;
}

HYDRA_INLINE int64_t headRows(const AttentionShape &shape) {
  return shape.batch * shape.heads * shape.queries;
}

/// The sums of one part and head in the workspace, behind delta.
template <typename T>
float *partSums(const AttentionShape &shape, const AttentionBackward<T> &t, int64_t batch,
                int64_t head, int64_t part) {
  const int64_t width = roundUp(shape.headDim, lanes);
  return static_cast<float *>(t.workspace) + roundUp(headRows(shape), lanes) +
         (part * headRows(shape) + (batch * shape.heads + head) * shape.queries) * width;
}

template <typename T>
QueryGradient queryGradient(const AttentionShape &shape, const AttentionBackward<T> &t,
                            int64_t batch, int64_t head, int64_t part) {
  if constexpr (sizeof(T) == sizeof(float))
    if (partsWriteDq(shape))
      return {at(t.dq, batch, 0, head), t.dq.rowStride};
  return {partSums(shape, t, batch, head, part), roundUp(shape.headDim, lanes)};
}

template <typename T>
void delta(const AttentionShape &shape, const AttentionBackward<T> &t, int64_t batch, int64_t head,
           int64_t block) {
  const int64_t side = attentionBlock(shape), dv = shape.valueDim, whole = dv / lanes * lanes;
  const int64_t last = smaller(shape.queries, (block + 1) * side);
  float *out = static_cast<float *>(t.workspace) + (batch * shape.heads + head) * shape.queries;
  for (int64_t i = block * side; i < last; ++i) {
    const T *dO = at(t.dO, batch, i, head), *o = at(t.o, batch, i, head);
    Vec sum = Vec{};
    for (int64_t e = 0; e < whole; e += lanes)
      sum += load(dO + e) * load(o + e);
    float rest = 0.0f;
    for (int64_t e = whole; e < dv; ++e)
      rest += widen(dO[e]) * widen(o[e]);
    out[i] = sumLanes(sum) + rest;
  }
}

/// From products and dP, [query][key]: p in place of the products, and dS = scale p (dP - delta) in
/// place of dP. Under a cap a score is cap t, and dS has the factor 1 - t² too.
template <bool Capped>
void gradientTile(const AttentionShape &shape, const Tile &tile, int64_t ld, const float *lse,
                  const float *delta, float *scores, float *dP) {
  const Vec scale = splat(static_cast<float>(shape.scale));
  const Vec inner = splat(Capped ? static_cast<float>(shape.scale / shape.cap) : 0.0f);
  const Vec cap = splat(static_cast<float>(shape.cap));
  IntVec laneNumber;
  for (int32_t l = 0; l < lanes; ++l)
    laneNumber[l] = l;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const Vec rowLse = splat(lse[i]), rowDelta = splat(delta[i]);
    const IntVec begin = splat(tile.keys.begin[i]), end = splat(tile.keys.end[i]);
    for (int64_t j = 0; j < tile.columns; j += lanes) {
      float *s = scores + i * ld + j, *d = dP + i * ld + j;
      Vec x = load(s), slope = scale;
      if constexpr (Capped) {
        x = tanh(x * inner);
        slope = scale - scale * x * x;
      }
      Vec p = exp2((x * (Capped ? cap : scale) - rowLse) * splat(log2e));
      if (tile.partial) {
        const IntVec key = laneNumber + splat(static_cast<int32_t>(j));
        p = ((key >= begin) & (key < end)) ? p : Vec{};
      }
      store(s, p);
      store(d, p * (load(d) - rowDelta) * slope);
    }
  }
}

/// Scratch of one worker in the backward.
struct BackwardTiles {
  float *kT, *vT; // [width][key]
  float *k;       // [key][width]
  float *q, *dO;  // [query][width]
  float *p, *dS;  // [query][key]
  float *dk, *dv; // [key][width]
};

/// What the queries of one tile add to dk, dv and dq.
template <typename T>
void backwardTile(const AttentionShape &shape, const AttentionBackward<T> &t, int64_t batch,
                  int64_t head, const Tile &tile, const QueryGradient &dq,
                  const BackwardTiles &tiles) {
  const int64_t side = attentionBlock(shape), hd = shape.headDim, dv = shape.valueDim;
  const int64_t qWidth = roundUp(hd, lanes), vWidth = roundUp(dv, lanes);
  const int64_t firstRow = (batch * shape.heads + head) * shape.queries + tile.query;
  packRows(at(t.q, batch, tile.query, head), t.q.rowStride, tile.rows, hd, qWidth, tiles.q);
  packRows(at(t.dO, batch, tile.query, head), t.dO.rowStride, tile.rows, dv, vWidth, tiles.dO);
  if (tile.partial) {
    fill(tiles.p, tile.rows * side, 0.0f);
    fill(tiles.dS, tile.rows * side, 0.0f);
  }
  const int64_t columns = roundUp(tile.columns, lanes);
  matmul<Limit::Columns, false>(tile.rows, columns, hd, tiles.q, qWidth, tiles.kT, side, tiles.p,
                                side, tile.keys);
  matmul<Limit::Columns, false>(tile.rows, columns, dv, tiles.dO, vWidth, tiles.vT, side, tiles.dS,
                                side, tile.keys);
  (shape.cap > 0 ? gradientTile<true>
                 : gradientTile<false>)(shape, tile, side, t.lse + firstRow,
                                        static_cast<const float *>(t.workspace) + firstRow, tiles.p,
                                        tiles.dS);
  matmul<Limit::K, true>(tile.columns, vWidth, tile.rows, tiles.p, side, tiles.dO, vWidth, tiles.dv,
                         vWidth, tile.queries);
  matmul<Limit::K, true>(tile.columns, qWidth, tile.rows, tiles.dS, side, tiles.q, qWidth, tiles.dk,
                         qWidth, tile.queries);
  matmul<Limit::K, false>(tile.rows, qWidth, tile.columns, tiles.dS, side, tiles.k, qWidth,
                          dq.rows + tile.query * dq.stride, dq.stride, tile.keys);
}

/// First query that sees `key` or a later key, and the end of those that see `lastKey` or an
/// earlier one, by bisection over the bounds' monotony.
template <typename Predicate> int64_t firstQuery(int64_t queries, Predicate reached) {
  int64_t low = 0, high = queries;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (reached(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <typename T>
void backward(const AttentionShape &shape, const AttentionBackward<T> &t, int64_t batch,
              int64_t kvHead, int64_t part, float *scratch) {
  const int64_t side = attentionBlock(shape), hd = shape.headDim, dv = shape.valueDim;
  const int64_t qWidth = roundUp(hd, lanes), vWidth = roundUp(dv, lanes);
  const int64_t group = shape.heads / shape.kvHeads, parts = attentionBackwardParts(shape);
  const int64_t blocks = (shape.keys + side - 1) / side;
  Pieces pieces{scratch};
  BackwardTiles tiles;
  tiles.kT = pieces.take(hd * side);
  tiles.vT = pieces.take(dv * side);
  tiles.k = pieces.take(side * qWidth);
  tiles.q = pieces.take(side * qWidth);
  tiles.dO = pieces.take(side * vWidth);
  tiles.p = pieces.take(side * side);
  tiles.dS = pieces.take(side * side);
  tiles.dk = pieces.take(side * qWidth);
  tiles.dv = pieces.take(side * vWidth);

  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) {
    const QueryGradient dq = queryGradient(shape, t, batch, head, part);
    for (int64_t i = 0; i < shape.queries; ++i)
      fill(dq.rows + i * dq.stride, qWidth, 0.0f);
  }
  // Parts take blocks in turn, forth and back, since causal blocks shrink towards the last.
  for (int64_t round = 0; round * parts < blocks; ++round) {
    const int64_t block = round * parts + (round % 2 == 0 ? part : parts - 1 - part);
    if (block >= blocks)
      continue;
    Tile tile;
    tile.key = block * side;
    tile.columns = smaller(side, shape.keys - tile.key);
    const T *k = at(t.k, batch, tile.key, kvHead), *v = at(t.v, batch, tile.key, kvHead);
    packTransposed(k, t.k.rowStride, tile.columns, hd, tiles.kT, side);
    packTransposed(v, t.v.rowStride, tile.columns, dv, tiles.vT, side);
    packRows(k, t.k.rowStride, tile.columns, hd, qWidth, tiles.k);
    fill(tiles.dk, tile.columns * qWidth, 0.0f);
    fill(tiles.dv, tile.columns * vWidth, 0.0f);

    const int64_t queriesBegin =
        firstQuery(shape.queries, [&](int64_t i) { return endKey(shape, i) > tile.key; });
    const int64_t queriesEnd = firstQuery(
        shape.queries, [&](int64_t i) { return firstKey(shape, i) >= tile.key + tile.columns; });
    for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) {
      const QueryGradient dq = queryGradient(shape, t, batch, head, part);
      for (tile.query = queriesBegin / side * side; tile.query < queriesEnd; tile.query += side) {
        tile.rows = smaller(side, shape.queries - tile.query);
        describeTile(shape, tile);
        backwardTile(shape, t, batch, head, tile, dq, tiles);
      }
    }
    for (int64_t j = 0; j < tile.columns; ++j) {
      T *dk = at(t.dk, batch, tile.key + j, kvHead), *dvRow = at(t.dv, batch, tile.key + j, kvHead);
      for (int64_t e = 0; e < hd; ++e)
        assign(dk[e], tiles.dk[j * qWidth + e]);
      for (int64_t e = 0; e < dv; ++e)
        assign(dvRow[e], tiles.dv[j * vWidth + e]);
    }
  }
}

template <typename T>
void gather(const AttentionShape &shape, const AttentionBackward<T> &t, int64_t batch, int64_t head,
            int64_t block) {
  const int64_t side = attentionBlock(shape), width = roundUp(shape.headDim, lanes);
  const int64_t parts = attentionBackwardParts(shape);
  const int64_t last = smaller(shape.queries, (block + 1) * side);
  for (int64_t i = block * side; i < last; ++i) {
    T *dq = at(t.dq, batch, i, head);
    for (int64_t first = 0; first < shape.headDim; first += lanes) {
      Vec sum = load(partSums(shape, t, batch, head, 0) + i * width + first);
      for (int64_t part = 1; part < parts; ++part)
        sum += load(partSums(shape, t, batch, head, part) + i * width + first);
      for (int64_t e = first; e < smaller(first + lanes, shape.headDim); ++e)
        assign(dq[e], sum[e - first]);
    }
  }
}

} // namespace

const AttentionBuild attentionBuild = {
    HYDRA_CPU_LEVEL_NAME,
    {forward<float>, delta<float>, backward<float>, gather<float>},
    {forward<BF16>, delta<BF16>, backward<BF16>, gather<BF16>},
    {forward<F16>, delta<F16>, backward<F16>, gather<F16>}};

} // namespace hydra::runtime::HYDRA_CPU_LEVEL
