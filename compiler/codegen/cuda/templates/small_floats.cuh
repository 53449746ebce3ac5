// Many matmuls of small matrices of f32, c = a b or c + a b, whose batch lies at one distance. Every product is an f32 FMA.
//
// A block makes a tile of one matrix. Panels along k of both operands go to shared memory as they lie in memory (cp.async),
// round a ring; an operand that is dense along k is read from there four k at a time, another one four rows or columns
// at a time, and lines are padded by four numbers so that such reads meet all banks. Of large tiles one panel is asked for
// ahead: more would stall the threads that ask. Of small ones several groups of threads take turns along k.
// Terms are added in rising order of k to what c has; those of groups in the groups' order: results follow from sizes
// and layouts alone. Traffic: a once for each column of tiles and b once for each row of tiles (from the second cache), c
// once or twice. Limit: memory, which FMAs of matrices of 64 x 128 x 64 nearly match.

/// Element (row, column) of matrix i is `i * Batch + row * Row + column * Column` elements behind the first, which lies at a
/// multiple of 16 bytes; Row or Column is 1.
template <int64 Row, int64 Column, int64 Batch> struct FloatMatrices {
  static constexpr int64 row = Row, column = Column, batch = Batch;
  /// Whether lines can be moved 16 bytes at a time.
  static constexpr bool wide = Batch % 4 == 0 && (Row == 1 ? Column : Row) % 4 == 0;
};

/// What a block and a thread of it make of c, k of a panel, panels that are asked for ahead, and groups that take turns along k.
template <int TileM, int TileN, int ThreadM, int ThreadN, int PanelK, int Ahead, int Groups> struct FloatTiling {
  static constexpr int tileM = TileM, tileN = TileN, threadM = ThreadM, threadN = ThreadN;
  static constexpr int panelK = PanelK, ahead = Ahead, groups = Groups;
  static constexpr int threadsM = TileM / ThreadM, threadsN = TileN / ThreadN, threads = threadsM * threadsN * Groups;
};

/// Copies `Width` numbers, of which `exist` are read and the others zeros.
template <int Width> __device__ __forceinline__ void copyFloats(float *to, const float *from, int exist) {
  if constexpr (Width == 4)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAddress(to)), "l"(from), "r"(4 * exist)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(sharedAddress(to)), "l"(from), "r"(4 * exist)
                 : "memory");
}

/// Copies `Lines` lines of `Length` numbers; of fewer, `lines` of `length`, where these are guarded.
template <int Lines, int Length, int Threads, int64 LineStep, bool Wide, bool GuardLines, bool GuardLength>
__device__ __forceinline__ void copyPanel(float *to, const float *from, int lines, int length) {
  constexpr int width = Wide ? 4 : 1, ofLine = Length / width, pieces = Lines * ofLine;
#pragma unroll
  for (int i = 0; i < (pieces + Threads - 1) / Threads; ++i) {
    const int piece = int(threadIdx.x) + i * Threads, line = piece / ofLine, at = piece % ofLine * width;
    if (pieces % Threads != 0 && piece >= pieces)
      continue;
    int exist = GuardLength ? max(0, min(width, length - at)) : width;
    if (GuardLines && line >= lines)
      exist = 0;
    copyFloats<width>(to + line * (Length + 4) + at, exist > 0 ? from + line * LineStep + at : from, exist);
  }
}

/// Which of a tile's rows or columns is number `i` of a thread among `Threads`. Along k neighbours take neighbouring ones;
/// else a thread has four side by side.
template <bool AlongK, int Threads> __device__ __forceinline__ int placeOfFloat(int thread, int i) {
  return AlongK ? thread + i * Threads : (i / 4 * Threads + thread) * 4 + i % 4;
}

/// The thread's numbers of k + step; along k those of four steps at the first of them.
template <bool AlongK, int Count, int Threads, int Pitch>
__device__ __forceinline__ void loadFloats(float (&x)[4][Count], const float *panel, int thread, int k, int step) {
  if constexpr (!AlongK) {
#pragma unroll
    for (int i = 0; i < Count; i += 4)
      loadFour(x[step] + i, panel + (k + step) * Pitch + (i / 4 * Threads + thread) * 4);
  } else if (step == 0) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      float four[4];
      loadFour(four, panel + (thread + i * Threads) * Pitch + k);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        x[j][i] = four[j];
    }
  }
}

/// c [M, N] of a [M, K] and b [K, N]; the columns of c lie side by side.
template <int M, int N, int K, bool Accumulate, typename Tiling, typename A, typename B, typename C>
__device__ __forceinline__ void multiplyFloats(const float *a, const float *b, float *c) {
  constexpr bool aAlongK = A::column == 1, bAlongK = B::row == 1 && B::column != 1;
  constexpr int tileM = Tiling::tileM, tileN = Tiling::tileN, threadM = Tiling::threadM, threadN = Tiling::threadN;
  constexpr int threadsM = Tiling::threadsM, threadsN = Tiling::threadsN, threads = Tiling::threads;
  constexpr int panelK = Tiling::panelK, ahead = Tiling::ahead, groups = Tiling::groups;
  constexpr int panels = (K + panelK - 1) / panelK, stages = ahead < panels ? ahead + 1 : panels;
  constexpr int pitchA = (aAlongK ? panelK : tileM) + 4, pitchB = (bAlongK ? panelK : tileN) + 4;
  constexpr int numbersA = (aAlongK ? tileM : panelK) * pitchA, stage = numbersA + (bAlongK ? tileN : panelK) * pitchB;
  constexpr int joined = groups > 1 ? groups * tileM * tileN : 0;
  constexpr bool guardM = M % tileM != 0, guardN = N % tileN != 0, guardK = K % panelK != 0;
  constexpr int tilesN = (N + tileN - 1) / tileN, tiles = (M + tileM - 1) / tileM * tilesN;
  static_assert(C::column == 1 && ahead >= 1 && ahead <= panels && panelK / 4 % groups == 0);

  __shared__ __align__(16) float shared[stages * stage > joined ? stages * stage : joined];
  const int tile = blockIdx.x % tiles, tileRow = tile / tilesN * tileM, tileColumn = tile % tilesN * tileN;
  const int64 matrix = blockIdx.x / tiles;
  a += matrix * A::batch + tileRow * A::row;
  b += matrix * B::batch + tileColumn * B::column;
  c += matrix * C::batch + tileRow * C::row + tileColumn;

  auto copy = [&](int panel) {
    float *toA = shared + panel % stages * stage, *toB = toA + numbersA;
    const float *fromA = a + panel * (panelK * A::column), *fromB = b + panel * (panelK * B::row);
    const int k = K - panel * panelK, rows = M - tileRow, columns = N - tileColumn; // that exist
    if constexpr (aAlongK)
      copyPanel<tileM, panelK, threads, A::row, A::wide, guardM, guardK>(toA, fromA, rows, k);
    else
      copyPanel<panelK, tileM, threads, A::column, A::wide, guardK, guardM>(toA, fromA, k, rows);
    if constexpr (bAlongK)
      copyPanel<tileN, panelK, threads, B::column, B::wide, guardN, guardK>(toB, fromB, columns, k);
    else
      copyPanel<panelK, tileN, threads, B::row, B::wide, guardK, guardN>(toB, fromB, k, columns);
    commitCopies();
  };
#pragma unroll
  for (int panel = 0; panel < ahead; ++panel)
    copy(panel);

  const int group = groups == 1 ? 0 : threadIdx.x / (threadsM * threadsN);
  const int threadRow = threadIdx.x / threadsN % threadsM, threadColumn = threadIdx.x % threadsN;
  // Calls `f` with the row, the column and the place of each sum of the thread, or of each four.
  constexpr bool fours = C::wide && N % 4 == 0 && !bAlongK;
  auto forSums = [&](auto f) {
#pragma unroll
    for (int i = 0; i < threadM; ++i)
#pragma unroll
      for (int j = 0; j < threadN; j += fours ? 4 : 1) {
        const int row = placeOfFloat<aAlongK, threadsM>(threadRow, i);
        const int column = placeOfFloat<bAlongK, threadsN>(threadColumn, j);
        if ((!guardM || tileRow + row < M) && (!guardN || tileColumn + column < N))
          f(row, column, i, j);
      }
  };
  float sums[threadM][threadN] = {};
  if constexpr (Accumulate && groups == 1)
    forSums([&](int row, int column, int i, int j) {
      if constexpr (fours)
        loadFour(sums[i] + j, c + row * C::row + column);
      else
        sums[i][j] = c[row * C::row + column];
    });

#pragma unroll 1
  for (int panel = 0; panel < panels; ++panel) {
    waitForCopies<ahead - 1>();
    __syncthreads(); // all are done with the panel in front, whose place is filled now
    if (panel + ahead < panels)
      copy(panel + ahead);
    else
      commitCopies();
    const float *ofA = shared + panel % stages * stage, *ofB = ofA + numbersA;
#pragma unroll 2
    for (int k = 4 * group; k < panelK; k += 4 * groups) {
      float x[4][threadM], y[4][threadN];
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        loadFloats<aAlongK, threadM, threadsM, pitchA>(x, ofA, threadRow, k, step);
        loadFloats<bAlongK, threadN, threadsN, pitchB>(y, ofB, threadColumn, k, step);
#pragma unroll
        for (int i = 0; i < threadM; ++i)
#pragma unroll
          for (int j = 0; j < threadN; ++j)
            sums[i][j] = __fmaf_rn(x[step][i], y[step][j], sums[i][j]);
      }
    }
  }

  if constexpr (groups == 1) {
    forSums([&](int row, int column, int i, int j) {
      if constexpr (fours)
        storeFour(c + row * C::row + column, sums[i] + j);
      else
        c[row * C::row + column] = sums[i][j];
    });
    return;
  }
  // The sums of groups meet in shared memory.
  __syncthreads();
#pragma unroll
  for (int i = 0; i < threadM; ++i)
#pragma unroll
    for (int j = 0; j < threadN; ++j)
      shared[(group * tileM + placeOfFloat<aAlongK, threadsM>(threadRow, i)) * tileN +
             placeOfFloat<bAlongK, threadsN>(threadColumn, j)] = sums[i][j];
  __syncthreads();
  for (int place = threadIdx.x; place < tileM * tileN; place += threads) {
    const int row = place / tileN, column = place % tileN;
    if ((guardM && tileRow + row >= M) || (guardN && tileColumn + column >= N))
      continue;
    float *to = c + row * C::row + column, total = Accumulate ? *to : 0.0f;
#pragma unroll
    for (int part = 0; part < groups; ++part)
      total = __fadd_rn(total, shared[part * tileM * tileN + place]);
    *to = total;
  }
}
