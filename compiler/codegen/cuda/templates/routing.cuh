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

/// What one of a block's 1024 threads counts, summed over those before it; `all`: over all of them.
__device__ __forceinline__ int countBefore(int own, int &all) {
  constexpr int lanes = 32;
  __shared__ int ends[lanes];
  int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
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
  int warps = sumUpTo(ends[lane]);
  all = __shfl_sync(~0u, warps, lanes - 1);
  int before = __shfl_sync(~0u, warps, warp > 0 ? warp - 1 : 0);
  __syncthreads(); // ends are free again
  return end - own + (warp > 0 ? before : 0);
}

/// The groups of each row, at most K, in rising order, then -1. A thread for each row.
template <int Rows, int Groups, int K>
__device__ __forceinline__ void listGroups(const unsigned char *mask, int *groups) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= Rows)
    return;
  int count = 0;
  for (int e = 0; e < Groups && count < K; ++e)
    if (mask[int64(row) * Groups + e])
      groups[int64(row) * K + count++] = e;
  for (; count < K; ++count)
    groups[int64(row) * K + count] = -1;
}

/// Rows sorted by groups, in rising order within each, from the list of their groups: a block of 1024
/// threads for a group, which counts what comes before it and then numbers its own rows.
template <int Rows, int Groups, int K>
__device__ __forceinline__ void routeRows(const int *groups, int *index, int *group, int *place, int *offsets) {
  constexpr int threads = 1024, entries = Rows * K;
  const int own = blockIdx.x;
  int less = 0, equal = 0, begin, count;
  for (int i = threadIdx.x; i < entries; i += threads) {
    int e = groups[i];
    less += e >= 0 && e < own;
    equal += e == own;
  }
  countBefore(less, begin);
  countBefore(equal, count);
  if (threadIdx.x == 0)
    offsets[own] = begin;
  for (int base = 0, at = begin; base < entries; base += threads) {
    int i = base + threadIdx.x, e = i < entries ? groups[i] : Groups, all;
    int before = countBefore(e == own, all);
    if (e == own) {
      index[at + before] = i / K;
      group[at + before] = own;
      place[i] = at + before;
    }
    at += all;
    if (own == 0 && e == -1)
      place[i] = -1;
  }
  if (own != Groups - 1)
    return;
  if (threadIdx.x == 0)
    offsets[Groups] = begin + count;
  for (int i = begin + count + threadIdx.x; i < entries; i += threads) {
    index[i] = -1;
    group[i] = 0;
  }
}
