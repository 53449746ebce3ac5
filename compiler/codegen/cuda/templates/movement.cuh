// Copies between layouts, fills, and the gradient of an embedding table.

/// One dimension of both sides; strides in elements.
template <int64 Size, int64 To, int64 From> struct Dim {
  static constexpr int64 size = Size, to = To, from = From;
};

template <typename... Dims> struct Offsets;
template <> struct Offsets<> {
  static __device__ __forceinline__ int64 split(int64 index, int64 &, int64 &) { return index; }
};
/// Dimensions from the outermost to the innermost.
template <typename First, typename... Rest> struct Offsets<First, Rest...> {
  static __device__ __forceinline__ int64 split(int64 index, int64 &to, int64 &from) {
    int64 outer = Offsets<Rest...>::split(index, to, from);
    int64 at = outer % First::size;
    to += at * First::to;
    from += at * First::from;
    return outer / First::size;
  }
};

/// An element for each thread; T may be several elements side by side.
template <typename T, int64 Count, typename... Dims>
__device__ __forceinline__ void copyElements(T *to, const T *from) {
  int64 index = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= Count)
    return;
  int64 toOffset = 0, fromOffset = 0;
  Offsets<Dims...>::split(index, toOffset, fromOffset);
  to[toOffset] = from[fromOffset];
}

template <typename T, int64 Count, typename... Dims>
__device__ __forceinline__ void fillElements(T *to, T value) {
  int64 index = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= Count)
    return;
  int64 offset = 0, unused = 0;
  Offsets<Dims...>::split(index, offset, unused);
  to[offset] = value;
}

/// grad[v] = sum over t, in rising order, with tokens[t] = v of dx[t]; grad holds zeros. A block for
/// each token; the first block with an id sums all its rows, the others end.
template <int Tokens, int Width, int64 Stride>
__device__ __forceinline__ void embeddingGradient(const int *tokens, const float *dx, float *grad) {
  constexpr int threads = 256, each = (Width + threads - 1) / threads;
  __shared__ uint32 found[threads / 32];
  int self = blockIdx.x, id = tokens[self];
  bool earlier = false;
  for (int t = threadIdx.x; t < self; t += threads)
    earlier |= tokens[t] == id;
  if (__syncthreads_or(earlier))
    return;
  float sum[each];
#pragma unroll
  for (int i = 0; i < each; ++i)
    sum[i] = 0.0f;
  for (int base = self; base < Tokens; base += threads) {
    int t = base + threadIdx.x;
    uint32 mine = __ballot_sync(~0u, t < Tokens && tokens[t] == id);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
      found[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int w = 0; w < threads / 32; ++w)
      for (uint32 rest = found[w]; rest; rest &= rest - 1) {
        const float *row = dx + (base + w * 32 + __ffs(rest) - 1) * Stride;
#pragma unroll
        for (int i = 0; i < each; ++i)
          if (i * threads + threadIdx.x < Width)
            sum[i] += row[i * threads + threadIdx.x];
      }
  }
#pragma unroll
  for (int i = 0; i < each; ++i)
    if (i * threads + threadIdx.x < Width)
      grad[int64(id) * Width + i * threads + threadIdx.x] = sum[i];
}
