// Attention without tensor cores: any element type and any width, a warp for each row. For f32, and
// for shapes that the tiled kernels do not take. Limit: arithmetic, and rows read again from L2.

constexpr int kLanes = 32;
template <int Width> struct Row {
  static constexpr int count = (Width + kLanes - 1) / kLanes;
  float x[count];

  template <typename T> __device__ __forceinline__ void load(const T *from) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      int e = i * kLanes + threadIdx.x % kLanes;
      x[i] = e < Width ? widen(from[e]) : 0.0f;
    }
  }
  template <typename T> __device__ __forceinline__ void store(T *to, float factor) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      int e = i * kLanes + threadIdx.x % kLanes;
      if (e < Width)
        assign(to[e], x[i] * factor);
    }
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < count; ++i)
      x[i] = 0.0f;
  }
  __device__ __forceinline__ void add(const Row &y, float factor) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      x[i] += y.x[i] * factor;
  }
  __device__ __forceinline__ float dot(const Row &y) const {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < count; ++i)
      sum += x[i] * y.x[i];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, distance);
    return sum;
  }
};

template <typename T, int Width, int ValueWidth, int Queries, int Keys, int Heads, int KeyHeads,
          typename Q, typename K, typename V, typename O, typename Score>
__device__ __forceinline__ void plainForward(const T *q, const T *k, const T *v, T *o, float *lse,
                                             Mask mask, Score score) {
  int row = blockIdx.x * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  int head = blockIdx.y, batch = blockIdx.z, keyHead = head / (Heads / KeyHeads);
  if (row >= Queries)
    return;
  Row<Width> query, key;
  Row<ValueWidth> value, out;
  query.load(Q::at(q, batch, row, head));
  out.clear();
  float top = -INFINITY, sum = 0.0f;
  for (int j = mask.firstKey(row); j < mask.endKey(row, Keys); ++j) {
    key.load(K::at(k, batch, j, keyHead));
    value.load(V::at(v, batch, j, keyHead));
    float s = score.boundedExactly(query.dot(key)) * score.factor(), best = fmaxf(top, s);
    float shrink = expf(top - best), p = expf(s - best);
#pragma unroll
    for (int i = 0; i < Row<ValueWidth>::count; ++i)
      out.x[i] = out.x[i] * shrink + value.x[i] * p;
    sum = sum * shrink + p;
    top = best;
  }
  out.store(O::at(o, batch, row, head), sum > 0.0f ? 1.0f / sum : 0.0f);
  if (lse && threadIdx.x % kLanes == 0)
    lse[(int64(batch) * Heads + head) * Queries + row] = sum > 0.0f ? top + logf(sum) : -INFINITY;
}

template <typename T, int Width, int ValueWidth, int Queries, int Keys, int Heads, int KeyHeads,
          typename Q, typename K, typename V, typename G, typename DK, typename DV, typename Score>
__device__ __forceinline__ void plainKeyGradients(const T *dO, const T *q, const T *k, const T *v,
                                                  const float *lse, const float *delta, T *dk,
                                                  T *dv, Mask mask, Score score) {
  int row = blockIdx.x * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  int keyHead = blockIdx.y, batch = blockIdx.z;
  if (row >= Keys)
    return;
  Row<Width> key, query, dKey;
  Row<ValueWidth> value, gradient, dValue;
  key.load(K::at(k, batch, row, keyHead));
  value.load(V::at(v, batch, row, keyHead));
  dKey.clear();
  dValue.clear();
  constexpr int group = Heads / KeyHeads;
  for (int head = keyHead * group; head < (keyHead + 1) * group; ++head)
    for (int i = mask.firstQuery(row); i < mask.endQuery(row, Queries); ++i) {
      int64 at = (int64(batch) * Heads + head) * Queries + i;
      query.load(Q::at(q, batch, i, head));
      gradient.load(G::at(dO, batch, i, head));
      float bounded = score.boundedExactly(query.dot(key)), p = expf(bounded * score.factor() - lse[at]);
      float ds = p * (gradient.dot(value) - delta[at]) * score.slope(bounded);
      dValue.add(gradient, p);
      dKey.add(query, ds);
    }
  dKey.store(DK::at(dk, batch, row, keyHead), 1.0f);
  dValue.store(DV::at(dv, batch, row, keyHead), 1.0f);
}

template <typename T, int Width, int ValueWidth, int Queries, int Keys, int Heads, int KeyHeads,
          typename Q, typename K, typename V, typename G, typename DQ, typename Score>
__device__ __forceinline__ void plainQueryGradients(const T *dO, const T *q, const T *k, const T *v,
                                                    const float *lse, const float *delta, T *dq,
                                                    Mask mask, Score score) {
  int row = blockIdx.x * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  int head = blockIdx.y, batch = blockIdx.z, keyHead = head / (Heads / KeyHeads);
  if (row >= Queries)
    return;
  int64 at = (int64(batch) * Heads + head) * Queries + row;
  Row<Width> query, key, out;
  Row<ValueWidth> value, gradient;
  query.load(Q::at(q, batch, row, head));
  gradient.load(G::at(dO, batch, row, head));
  out.clear();
  for (int j = mask.firstKey(row); j < mask.endKey(row, Keys); ++j) {
    key.load(K::at(k, batch, j, keyHead));
    value.load(V::at(v, batch, j, keyHead));
    float bounded = score.boundedExactly(query.dot(key)), p = expf(bounded * score.factor() - lse[at]);
    out.add(key, p * (gradient.dot(value) - delta[at]) * score.slope(bounded));
  }
  out.store(DQ::at(dq, batch, row, head), 1.0f);
}
