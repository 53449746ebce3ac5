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

/// An element for each thread; T may be several elements side by side. Here and below `block` is that of the
/// step: a launch can do several.
template <typename T, int64 Count, typename... Dims>
__device__ __forceinline__ void copyElements(uint32 block, T *to, const T *from) {
  int64 index = int64(block) * blockDim.x + threadIdx.x;
  if (index >= Count)
    return;
  int64 toOffset = 0, fromOffset = 0;
  Offsets<Dims...>::split(index, toOffset, fromOffset);
  to[toOffset] = from[fromOffset];
}

constexpr int kSquareSide = 32;
template <typename T> using Square = T[kSquareSide][kSquareSide + 1];
/// For all transpositions of a launch.
template <typename T> __device__ __forceinline__ Square<T> &sharedSquare() {
  __shared__ Square<T> square;
  return square;
}

/// The same where elements lie side by side in another dimension on either side, `To` and `From`: squares
/// of 32 x 32 go through shared memory, so that both sides are met in whole lines. 256 threads.
template <typename T, typename To, typename From, typename... Outer>
__device__ __forceinline__ void copyTransposed(uint32 block, T *to, const T *from) {
  constexpr int side = kSquareSide, rows = 8;
  constexpr int64 across = (From::size + side - 1) / side, down = (To::size + side - 1) / side;
  Square<T> &square = sharedSquare<T>();
  int64 toOffset = 0, fromOffset = 0;
  Offsets<Outer...>::split(block / (across * down), toOffset, fromOffset);
  int64 u = block / across % down * side, v = block % across * side; // along To, From
  int x = threadIdx.x % side, y = threadIdx.x / side;
#pragma unroll
  for (int i = y; i < side; i += rows)
    if (u + i < To::size && v + x < From::size)
      square[i][x] = from[fromOffset + (u + i) * To::from + v + x];
  __syncthreads();
#pragma unroll
  for (int i = y; i < side; i += rows)
    if (u + x < To::size && v + i < From::size)
      to[toOffset + (v + i) * From::to + u + x] = square[x][i];
}

/// Words of two halves or of four bytes as the rows of a matrix: its columns.
__device__ __forceinline__ void transposeWords(uint32 (&rows)[2]) {
  const uint32 first = rows[0];
  rows[0] = __byte_perm(first, rows[1], 0x5410);
  rows[1] = __byte_perm(first, rows[1], 0x7632);
}
__device__ __forceinline__ void transposeWords(uint32 (&rows)[4]) {
  const uint32 low01 = __byte_perm(rows[0], rows[1], 0x5140),
               high01 = __byte_perm(rows[0], rows[1], 0x7362),
               low23 = __byte_perm(rows[2], rows[3], 0x5140),
               high23 = __byte_perm(rows[2], rows[3], 0x7362);
  rows[0] = __byte_perm(low01, low23, 0x5410);
  rows[1] = __byte_perm(low01, low23, 0x7632);
  rows[2] = __byte_perm(high01, high23, 0x5410);
  rows[3] = __byte_perm(high01, high23, 0x7632);
}

template <int Rows> __device__ __forceinline__ uint32 (&sharedWords())[Rows][33] {
  __shared__ uint32 words[Rows][33];
  return words;
}

/// copyTransposed of elements smaller than a word: squares of 32 words on either side, which all sizes, strides
/// and addresses are multiples of. 256 threads.
template <typename T, typename To, typename From, typename... Outer>
__device__ __forceinline__ void copyTransposedWords(uint32 block, T *to, const T *from) {
  constexpr int each = 4 / sizeof(T), side = 32 * each, warps = 8;
  constexpr int64 across = (From::size + side - 1) / side, down = (To::size + side - 1) / side;
  uint32(&square)[side][33] = sharedWords<side>();
  int64 toOffset = 0, fromOffset = 0;
  Offsets<Outer...>::split(block / (across * down), toOffset, fromOffset);
  const int64 u = block / across % down * side, v = block % across * side; // along To, From
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int word = warp; word < 32; word += warps) { // along To
    uint32 rows[each] = {};
    if (u + word * each < To::size && v + lane * each < From::size)
#pragma unroll
      for (int i = 0; i < each; ++i)
        rows[i] = *reinterpret_cast<const uint32 *>(
            from + fromOffset + (u + word * each + i) * To::from + v + lane * each);
    transposeWords(rows);
#pragma unroll
    for (int i = 0; i < each; ++i) // lanes meet 32 banks
      square[lane * each + i][(word + lane * each / 32) % 32] = rows[i];
  }
  __syncthreads();
#pragma unroll
  for (int row = warp; row < side; row += warps)
    if (v + row < From::size && u + lane * each < To::size)
      *reinterpret_cast<uint32 *>(to + toOffset + (v + row) * From::to + u + lane * each) =
          square[row][(lane + row / 32) % 32];
}

template <int Rows> __device__ __forceinline__ uint32 (&sharedVectors())[Rows][32] {
  __shared__ __align__(16) uint32 words[Rows][32];
  return words;
}

/// The same where 16 bytes can be met at a time. A thread has 16 bytes of as many rows as a word has elements;
/// blocks side by side write neighbouring pieces of the same rows. 256 threads.
template <typename T, typename To, typename From, typename... Outer>
__device__ __forceinline__ void copyTransposedVectors(uint32 block, T *to, const T *from) {
  constexpr int each = 4 / sizeof(T), side = 32 * each, vector = 4 * each, across = 8;
  constexpr int64 down = (To::size + side - 1) / side, right = (From::size + side - 1) / side;
  uint32(&square)[side][32] = sharedVectors<side>();
  int64 toOffset = 0, fromOffset = 0;
  Offsets<Outer...>::split(block / (down * right), toOffset, fromOffset);
  const int64 u = block % down * side, v = block / down % right * side; // along To, From
  // Words of a row lie where no two lanes meet a bank, neither here, where they have eight vectors of four
  // groups of rows, nor below, where they have vectors side by side.
  const auto place = [](int row, int word) { return word ^ (row / vector % across * 4); };
  const int column = threadIdx.x % across * vector, group = threadIdx.x / across;
  uint4 rows[each] = {};
  if (u + group * each < To::size && v + column < From::size)
#pragma unroll
    for (int i = 0; i < each; ++i)
      rows[i] = *reinterpret_cast<const uint4 *>(from + fromOffset + (u + group * each + i) * To::from + v + column);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    uint32 words[each];
#pragma unroll
    for (int i = 0; i < each; ++i)
      words[i] = (&rows[i].x)[j];
    transposeWords(words);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int row = column + j * each + i;
      square[row][place(row, group)] = words[i];
    }
  }
  __syncthreads();
#pragma unroll
  for (int row = threadIdx.x / across; row < side; row += 256 / across) {
    const int word = threadIdx.x % across * 4;
    if (v + row < From::size && u + word * each < To::size)
      *reinterpret_cast<uint4 *>(to + toOffset + (v + row) * From::to + u + word * each) =
          *reinterpret_cast<const uint4 *>(&square[row][place(row, word)]);
  }
}

template <typename T, int64 Count, typename... Dims>
__device__ __forceinline__ void fillElements(uint32 block, T *to, T value) {
  int64 index = int64(block) * blockDim.x + threadIdx.x;
  if (index >= Count)
    return;
  int64 offset = 0, unused = 0;
  Offsets<Dims...>::split(index, offset, unused);
  to[offset] = value;
}

/// grad[v] = sum over t, in rising order, with tokens[t] = v of dx[t]: a block for `Each` rows of the
/// table. It lists the tokens that name one of them, and sums row by row. Rows that more than Most tokens
/// name are left to `frequentEmbeddingGradient`: frequent[0] counts them, and they are listed behind it.
template <int Tokens, int Table, int Width, int64 Stride, int Each, int Most>
__device__ __forceinline__ void embeddingGradient(const int *tokens, const float *dx, float *grad, int *frequent,
                                                  int *frequentRows) {
  constexpr int threads = 256, warps = threads / 32, columns = (Width + threads - 1) / threads;
  constexpr int capacity = 2048;
  static_assert(Most <= capacity);
  __shared__ int listed[capacity];
  __shared__ unsigned char rowOf[capacity];
  __shared__ int counts[warps];
  // Ids that lie side by side may all be frequent: no block has two of them.
  constexpr int step = (Table + Each - 1) / Each; // blocks
  const int first = blockIdx.x, rows = (Table - first + step - 1) / step;
  int count = 0;
  auto leave = [&](int row, int number) {
    if (threadIdx.x > 0)
      return;
    const int at = atomicAdd(frequent, number);
    for (int i = 0; i < number; ++i)
      frequentRows[at + i] = first + (row + i) * step;
  };
  for (int base = 0; base < Tokens; base += threads) {
    int t = base + threadIdx.x;
    int id = t < Tokens ? tokens[t] - first : -1, row = Each > 1 ? id / step : 0;
    bool mine = id == row * step && row >= 0 && row < rows;
    uint32 ballot = __ballot_sync(~0u, mine);
    if (!__syncthreads_or(mine))
      continue;
    if (Tokens > capacity && count + threads > capacity) {
      leave(0, rows);
      return;
    }
    if (threadIdx.x % 32 == 0)
      counts[threadIdx.x / 32] = __popc(ballot);
    __syncthreads();
    int before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      before += w < threadIdx.x / 32 ? counts[w] : 0;
      all += counts[w];
    }
    if (mine) {
      int at = count + before + __popc(ballot & ((1u << threadIdx.x % 32) - 1));
      listed[at] = t;
      rowOf[at] = row;
    }
    count += all;
    __syncthreads();
  }
  for (int row = 0; row < rows; ++row) {
    if (Tokens > Most && count > Most) {
      int own = 0;
      for (int n = 0; n < count; n += threads)
        own += __syncthreads_count(n + threadIdx.x < count && rowOf[n + threadIdx.x] == row);
      if (own > Most) {
        leave(row, 1);
        continue;
      }
    }
    float *to = grad + int64(first + int64(row) * step) * Width;
    float sum[columns] = {};
    for (int n = 0; n < count; ++n) {
      if (Each > 1 && rowOf[n] != row)
        continue;
      const float *from = dx + listed[n] * Stride;
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        int c = i * threads + threadIdx.x;
        if (c < Width)
          sum[i] += from[c];
      }
    }
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      int c = i * threads + threadIdx.x;
      if (c < Width)
        to[c] = sum[i];
    }
  }
}

/// The rows that `embeddingGradient` has left: blocks take some columns of a row each. Of a sixteenth of all tokens, in their
/// order, a warp sums those that name the row; then the sums of warps are added up, in theirs. The last block leaves both
/// counters as zeros. Of 32 columns times Vector a lane has those side by side.
template <int Tokens, int Width, int64 Stride, int Vector>
__device__ __forceinline__ void frequentEmbeddingGradient(const int *tokens, const float *dx, float *grad, int *frequent,
                                                          const int *frequentRows) {
  constexpr int warps = 16, columns = 32 * Vector, tiles = (Width + columns - 1) / columns;
  constexpr int range = (Tokens + 32 * warps - 1) / (32 * warps) * 32, words = 4, together = 4;
  struct alignas(4 * Vector) Numbers {
    float x[Vector];
  };
  __shared__ Numbers sums[warps][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int begin = warp * range, end = min(begin + range, Tokens), items = frequent[0] * tiles;
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    const int row = frequentRows[item / tiles], column = item % tiles * columns + lane * Vector;
    Numbers sum = {};
    for (int base = begin; base < end; base += 32 * words) {
      int ids[words];
#pragma unroll
      for (int k = 0; k < words; ++k) {
        const int t = base + k * 32 + lane;
        ids[k] = t < end ? tokens[t] : -1;
      }
#pragma unroll
      for (int k = 0; k < words; ++k) {
        uint32 named = __ballot_sync(~0u, ids[k] == row);
        while (named != 0) {
          Numbers more[together];
          bool exists[together];
#pragma unroll
          for (int j = 0; j < together; ++j) {
            exists[j] = named != 0 && column < Width;
            if (exists[j])
              more[j] = *reinterpret_cast<const Numbers *>(dx + (base + k * 32 + __ffs(named) - 1) * Stride + column);
            named &= named - 1;
          }
#pragma unroll
          for (int j = 0; j < together; ++j)
            if (exists[j])
#pragma unroll
              for (int i = 0; i < Vector; ++i)
                sum.x[i] += more[j].x[i];
        }
      }
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < Width) {
      for (int w = 1; w < warps; ++w)
#pragma unroll
        for (int i = 0; i < Vector; ++i)
          sum.x[i] += sums[w][lane].x[i];
      *reinterpret_cast<Numbers *>(grad + int64(row) * Width + column) = sum;
    }
    __syncthreads();
  }
  // A block with items has read their number by now; one without finds none behind the last block either.
  if (threadIdx.x == 0 && atomicAdd(frequent + 1, 1) == gridDim.x - 1)
    frequent[0] = frequent[1] = 0;
}
