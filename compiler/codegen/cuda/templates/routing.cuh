// Which rows are active, and what follows from their number.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long node, unsigned int value);

/// Tells a conditional node of a graph its case: the selector divided by the divisor, rounded up. One thread.
__device__ __forceinline__ void setSwitch(unsigned long long node, const int *selector, int divisor) {
  int scalar = *selector;
  cudaGraphSetConditional(node, scalar < 0 ? ~0u : unsigned((scalar + divisor - 1) / divisor));
}

/// The numbers of the rows whose mask is set, ascending, then -1; where each row stands among them, or -1; and how
/// many there are. One block of 1024 threads, each with neighbouring rows.
template <int64 Rows>
__device__ __forceinline__ void compactRows(const unsigned char *mask, int *index, int *place, int *count) {
  constexpr int threads = 1024, lanes = 32, each = (Rows + threads - 1) / threads;
  __shared__ int ends[lanes]; // of the warps, among the rows that are set
  int first = threadIdx.x * each, lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
  int own = 0;
  for (int i = 0; i < each; ++i)
    own += first + i < Rows && mask[first + i];
  auto sumUpTo = [&](int x) {
#pragma unroll
    for (int d = 1; d < lanes; d *= 2) {
      int before = __shfl_up_sync(~0u, x, d);
      x += lane >= d ? before : 0;
    }
    return x;
  };
  int end = sumUpTo(own);
  if (lane == lanes - 1)
    ends[warp] = end;
  __syncthreads();
  int all = sumUpTo(ends[lane]);
  __syncthreads();
  if (warp == 0)
    ends[lane] = all;
  __syncthreads();
  int at = end - own + (warp > 0 ? ends[warp - 1] : 0);
  for (int i = 0; i < each; ++i)
    if (int row = first + i; row < Rows) {
      bool set = mask[row];
      place[row] = set ? at : -1;
      if (set)
        index[at++] = row;
    }
  for (int i = ends[lanes - 1] + threadIdx.x; i < Rows; i += threads)
    index[i] = -1;
  if (threadIdx.x == 0)
    *count = ends[lanes - 1];
}
