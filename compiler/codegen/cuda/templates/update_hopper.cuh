// The gradient of a matrix, and what is done with each of its numbers: c = a^T b is not stored; the group behind it (an
// optimizer's update) takes its numbers from the registers that they were summed in, with those at the same place in
// other matrices.
//
// Tiles are 128 rows and `Width` columns of c, taken in turn by as many blocks as there are multiprocessors. One warp
// has the copy engine fill a ring of stages with operands, as in matmul_hopper.cuh. Two warpgroups have a tile each, in
// registers, and take turns: while one multiplies, the other works on pieces of 64 x 32 numbers. A second warp has the
// engine bring what the group reads of a piece, as far ahead as there are buffers; the warpgroup puts the results into
// the same buffer, and a third warp has them stored. So memory is busy with one tile while tensor cores are with the
// next, and neither the sums nor what they are used for cost registers of the other.
//
// What lies outside of c is zero, and is not stored. Every sum has one order: that of k. Results may take the place of
// what is read: a piece has been read when it is stored, and no other block touches it.
//
// Traffic: (128 + Width) numbers of a tile for each of its sums, from the second cache where tiles that run together
// share them; what the group reads and writes, once, past what the caches keep. Limit: wgmma, or memory where there
// are fewer sums than some 4000 at 4 TB/s (26 bytes for a number of AdamW).

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace hopper_update {

using namespace hopper_matmul;

constexpr int kPieceRows = 64, kPieceColumns = 32, kWideBytes = kPieceRows * kPieceColumns * 4,
              kNarrowBytes = kPieceRows * kPieceColumns * 2;

/// Where a group finds what it reads, in f32, and puts what it makes, in f32 or as O. Rows of c are in parts, one
/// behind the other, each with matrices of its own, of as many columns as c. `ends`: of parts, multiples of 64 but for
/// the last.
template <int Parts, int Reads, int Wides, int Narrows, typename O> struct Tensors {
  static constexpr int parts = Parts, reads = Reads, wides = Wides, narrows = Narrows;
  static constexpr int maps = Parts * (Reads + Wides + Narrows), slots = Reads > Wides ? Reads : Wides,
                       bytes = slots * kWideBytes + Narrows * kNarrowBytes; // of a buffer
  using Narrow = O;
  int ends[Parts];
  const float *read[Parts][Reads + 1];
  float *wide[Parts][Wides + 1];
  O *narrow[Parts][Narrows + 1]; // none has no elements, which C++ has no arrays of

  __device__ __forceinline__ int begin(int part) const { // by selection: an index would put all of this into memory
    int row = 0;
#pragma unroll
    for (int i = 0; i + 1 < Parts; ++i)
      row = part > i ? ends[i] : row;
    return row;
  }
  __device__ __forceinline__ int partOf(int row) const {
    int part = 0;
#pragma unroll
    for (int i = 0; i + 1 < Parts; ++i)
      part += row >= ends[i];
    return part;
  }
};

/// A piece that nobody reads soon: the second cache is for operands.
__device__ __forceinline__ uint64 evictFirst() {
  uint64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void copyBoxOnce(uint32 to, const unsigned char *map, int column, int row, uint32 barrier,
                                            uint64 policy) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
               "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
               "l"(map), "r"(column), "r"(row), "r"(0), "r"(barrier), "l"(policy)
               : "memory");
}
/// The same to memory; committed by the caller.
__device__ __forceinline__ void storeBoxOnce(const unsigned char *map, int column, int row, uint32 from,
                                             uint64 policy) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint "
               "[%0, {%1, %2, %3}], [%4], %5;" ::"l"(map),
               "r"(column), "r"(row), "r"(0), "r"(from), "l"(policy)
               : "memory");
}

/// Tiles of c, and their pieces.
template <int Rows, int Columns, int Width> struct Tiles {
  static constexpr int height = (Rows + kHeight - 1) / kHeight, width = (Columns + Width - 1) / Width,
                       count = height * width;
  int row, column;

  __device__ __forceinline__ explicit Tiles(int number) {
    const Raster raster(number, height, width);
    row = raster.row * kHeight;
    column = raster.column * Width;
  }
  __device__ __forceinline__ bool has(int i, int j) const { return row + i < Rows && column + j < Columns; }
  __device__ __forceinline__ int pieces() const {
    return min(kHeight / kPieceRows, (Rows - row + kPieceRows - 1) / kPieceRows) *
           min(Width / kPieceColumns, (Columns - column + kPieceColumns - 1) / kPieceColumns);
  }
};

/// The pieces of all tiles of this block, in the order in which they are worked on.
template <int Rows, int Columns, int Width> class Pieces {
public:
  __device__ __forceinline__ Pieces() : number(blockIdx.x), tile(number) {}
  __device__ __forceinline__ bool isEnd() const { return number >= Tiles<Rows, Columns, Width>::count; }
  __device__ __forceinline__ int row() const { return tile.row + i; }
  __device__ __forceinline__ int column() const { return tile.column + j; }
  __device__ __forceinline__ void next() {
    i += kPieceRows;
    if (i == kHeight || !tile.has(i, j)) {
      i = 0;
      j += kPieceColumns;
    }
    if (j == Width || !tile.has(i, j)) {
      j = 0;
      number += gridDim.x;
      tile = Tiles<Rows, Columns, Width>(number);
    }
  }

private:
  int number, i = 0, j = 0;
  Tiles<Rows, Columns, Width> tile;
};

/// What a block has in shared memory: stages, buffers of pieces, images of maps, barriers.
template <int Width, int Stages, int Buffers, typename Tensors> struct Block {
  static constexpr int fetched = (Width + kBlock - 1) / kBlock * kBlock, aBytes = kHeight * kDepth * 2,
                       stageBytes = aBytes + fetched * kDepth * 2, helpers = 3;
  uint32 stages, pieces, images, barriers;

  __device__ __forceinline__ explicit Block(const void *shared) {
    stages = sharedAddress(shared);
    pieces = stages + Stages * stageBytes;
    images = pieces + Buffers * Tensors::bytes;
    barriers = images + helpers * kMapBytes;
  }
  /// Of operands; of what the engine brings for pieces and has stored.
  __device__ __forceinline__ Turns<Stages> ring() const { return Turns<Stages>(barriers); }
  __device__ __forceinline__ Turns<Buffers> buffers() const { return Turns<Buffers>(barriers + Turns<Stages>::bytes); }
  /// Whether a warpgroup has put the results into a buffer; whether it may multiply, and work on pieces.
  __device__ __forceinline__ uint32 updated(int which) const {
    return barriers + Turns<Stages>::bytes + Turns<Buffers>::bytes + 8 * which;
  }
  __device__ __forceinline__ uint32 mayMultiply(int group) const { return updated(Buffers) + 8 * group; }
  __device__ __forceinline__ uint32 mayUpdate(int group) const { return mayMultiply(kGroups) + 8 * group; }
  __device__ __forceinline__ uint32 piece(int which) const { return pieces + which * Tensors::bytes; }
  __device__ __forceinline__ uint32 image(int helper) const { return images + helper * kMapBytes; }

  /// Before all roles begin.
  __device__ __forceinline__ void init() const {
    if (threadIdx.x == 0) {
      ring().init(1, 4); // a thread of each warp
      buffers().init(1, 1);
      for (int i = 0; i < Buffers; ++i)
        initBarrier(updated(i), 128);
      for (int group = 0; group < kGroups; ++group) {
        initBarrier(mayMultiply(group), 4);
        initBarrier(mayUpdate(group), 4);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
};

/// The warp that has operands fetched.
template <int Rows, int Columns, int Sums, int Width, typename Block, typename T>
__device__ __forceinline__ void fetchOperands(const Block &block, const T *a, const T *b, unsigned char *maps) {
  using Tiles = Tiles<Rows, Columns, Width>;
  writeMap<2>(block.image(0), maps, Matrices{a, Rows, Sums, 1, Rows * sizeof(T)}, kDepth);
  writeMap<2>(block.image(0), maps + kMapBytes, Matrices{b, Columns, Sums, 1, Columns * sizeof(T)}, kDepth);
  auto ring = block.ring();
  for (int number = blockIdx.x; threadIdx.x % 32 == 0 && number < Tiles::count; number += gridDim.x) {
    const Tiles tile(number);
    for (int k = 0; k < Sums; k += kDepth, ring.next()) {
      ring.awaitEmpty();
      const uint32 to = block.stages + ring.stage * Block::stageBytes;
      arriveExpecting(ring.full(), Block::stageBytes);
#pragma unroll
      for (int i = 0; i < kHeight; i += kBlock)
        copyBox(to + i * kDepth * 2, maps, tile.row + i, k, 0, ring.full());
#pragma unroll
      for (int i = 0; i < Block::fetched; i += kBlock)
        copyBox(to + Block::aBytes + i * kDepth * 2, maps + kMapBytes, tile.column + i, k, 0, ring.full());
    }
  }
}

/// The warp that has brought what the group reads.
template <int Rows, int Columns, int Width, typename Block, typename Tensors>
__device__ __forceinline__ void fetchPieces(const Block &block, const Tensors &tensors, unsigned char *maps) {
#pragma unroll
  for (int part = 0; part < Tensors::parts; ++part)
#pragma unroll
    for (int i = 0; i < Tensors::reads; ++i)
      writeMap<4>(block.image(1), maps + (part * Tensors::reads + i) * kMapBytes,
                  Matrices{tensors.read[part][i], Columns, uint32(tensors.ends[part] - tensors.begin(part)), 1,
                           Columns * sizeof(float)},
                  kPieceRows);
  if (threadIdx.x % 32 != 0)
    return;
  const uint64 policy = evictFirst();
  auto buffers = block.buffers();
  for (Pieces<Rows, Columns, Width> piece; !piece.isEnd(); piece.next(), buffers.next()) {
    buffers.awaitEmpty();
    arriveExpecting(buffers.full(), Tensors::reads * kWideBytes);
    const int part = tensors.partOf(piece.row());
#pragma unroll
    for (int i = 0; i < Tensors::reads; ++i)
      copyBoxOnce(block.piece(buffers.stage) + i * kWideBytes, maps + (part * Tensors::reads + i) * kMapBytes,
                  piece.column(), piece.row() - tensors.begin(part), buffers.full(), policy);
  }
}

/// The warp that has results stored.
template <int Rows, int Columns, int Width, typename Block, typename Tensors>
__device__ __forceinline__ void storePieces(const Block &block, const Tensors &tensors, unsigned char *maps) {
  constexpr int each = Tensors::wides + Tensors::narrows;
#pragma unroll
  for (int part = 0; part < Tensors::parts; ++part) {
    const uint32 rows = tensors.ends[part] - tensors.begin(part);
#pragma unroll
    for (int i = 0; i < Tensors::wides; ++i)
      writeMap<4>(block.image(2), maps + (part * each + i) * kMapBytes,
                  Matrices{tensors.wide[part][i], Columns, rows, 1, Columns * sizeof(float)}, kPieceRows);
#pragma unroll
    for (int i = 0; i < Tensors::narrows; ++i)
      writeMap<2, 64>(block.image(2), maps + (part * each + Tensors::wides + i) * kMapBytes,
                      Matrices{tensors.narrow[part][i], Columns, rows, 1, Columns * 2}, kPieceRows);
  }
  if (threadIdx.x % 32 != 0)
    return;
  const uint64 policy = evictFirst();
  auto buffers = block.buffers();
  for (Pieces<Rows, Columns, Width> piece; !piece.isEnd(); piece.next(), buffers.next()) {
    waitFor(block.updated(buffers.stage), buffers.phase);
    const uint32 from = block.piece(buffers.stage);
    const int part = tensors.partOf(piece.row());
#pragma unroll
    for (int i = 0; i < each; ++i)
      storeBoxOnce(maps + (part * each + i) * kMapBytes, piece.column(), piece.row() - tensors.begin(part),
                   from + (i < Tensors::wides ? i * kWideBytes
                                              : Tensors::slots * kWideBytes + (i - Tensors::wides) * kNarrowBytes),
                   policy);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    waitForStores<0>();
    arrive(buffers.empty(buffers.stage));
  }
}

__device__ __forceinline__ void loadPair(float &x, float &y, uint32 from) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(from) : "memory");
}
__device__ __forceinline__ void storePair(uint32 to, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

/// x / y and the square root of x, without the branches of __fdiv_rn and __fsqrt_rn, behind which nothing of the next
/// number could begin: an approximation and one step of Newton's. The approximation is kept where the step meets
/// infinities or 0 / 0.
__device__ __forceinline__ float quotient(float x, float y) {
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(y));
  const float near = __fmul_rn(x, r), better = __fmaf_rn(__fmaf_rn(-near, y, x), r, near);
  return better == better ? better : near;
}
__device__ __forceinline__ float root(float x) {
  float near, r;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(near) : "f"(x));
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  const float better = __fmaf_rn(__fmaf_rn(-near, near, x), 0.5f * r, near);
  return better == better ? better : near;
}

/// The group for the numbers of a warpgroup's piece, c[0] and on. What it reads of eight numbers is on its way
/// before the first is worked on.
template <typename Tensors, int N, typename Update>
__device__ __forceinline__ void updatePiece(uint32 piece, const Update &update, const float (&c)[N][4]) {
  constexpr int together = 4; // pairs of numbers
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 % 4 * 16;
  const int row = warpRow + lane / 4, at = lane % 4 * 8;
  const auto whereIs = [&](int pair) {
    return piece + (row + pair % 2 * 8) * 128 + ((pair / 2 * 2 + at / 16) ^ (row % 8)) * 16 + at % 16;
  };
  uint32 narrow[Tensors::narrows + 1][8];
#pragma unroll
  for (int begin = 0; begin < 8; begin += together) {
    float in[together][2][Tensors::reads + 1];
#pragma unroll
    for (int p = 0; p < together; ++p)
#pragma unroll
      for (int i = 0; i < Tensors::reads; ++i)
        loadPair(in[p][0][i], in[p][1][i], whereIs(begin + p) + i * kWideBytes);
    float wide[together][2][Tensors::wides + 1], rounded[together][2][Tensors::narrows + 1];
#pragma unroll
    for (int p = 0; p < together; ++p)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        update(c[(begin + p) / 2][2 * (p % 2) + j], in[p][j], wide[p][j], rounded[p][j]);
#pragma unroll
    for (int p = 0; p < together; ++p) {
#pragma unroll
      for (int i = 0; i < Tensors::wides; ++i)
        storePair(whereIs(begin + p) + i * kWideBytes, wide[p][0][i], wide[p][1][i]);
#pragma unroll
      for (int i = 0; i < Tensors::narrows; ++i)
        narrow[i][begin + p] = pack<typename Tensors::Narrow>(rounded[p][0][i], rounded[p][1][i]);
    }
  }
  const int narrowRow = warpRow + lane % 16;
#pragma unroll
  for (int i = 0; i < Tensors::narrows; ++i)
#pragma unroll
    for (int pair = 0; pair < 8; pair += 4)
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       piece + Tensors::slots * kWideBytes + i * kNarrowBytes + narrowRow * 64 +
                       ((pair / 2 + lane / 16) ^ (narrowRow / 2 % 4)) * 16),
                   "r"(narrow[i][pair]), "r"(narrow[i][pair + 1]), "r"(narrow[i][pair + 2]), "r"(narrow[i][pair + 3])
                   : "memory");
}

/// A warpgroup: every second tile of the block is its own.
template <int Rows, int Columns, int Sums, int Width, typename T, typename Tensors, typename Block, typename Update>
__device__ __forceinline__ void multiplyAndUpdate(const Block &block, const Update &update, int group) {
  using Tiles = Tiles<Rows, Columns, Width>;
  constexpr int steps = (Sums + kDepth - 1) / kDepth, halves = kHeight / kPieceRows;
  auto ring = block.ring();
  auto buffers = block.buffers();
  int turn = 0;
  for (int number = blockIdx.x; number < Tiles::count; number += gridDim.x, ++turn) {
    const Tiles tile(number);
    if (turn % kGroups != group) {
      ring.skip(steps);
      buffers.skip(tile.pieces());
      continue;
    }
    // A barrier tells apart this phase and the last: nobody waits for a stage before the other group is through.
    const int phase = (turn - 1) / kGroups & 1;
    if (turn > 0)
      waitFor(block.mayMultiply(group), phase);
    float c[halves][Width / 8][4];
    // Few steps, unrolled, would be ordered anew, and then sums are spilled.
#pragma unroll 1
    for (int step = 0; step < steps; ++step, ring.next()) {
      ring.awaitFull();
      const uint32 a = block.stages + ring.stage * Block::stageBytes, b = a + Block::aBytes;
      beginMatmuls();
#pragma unroll
      for (int k = 0; k < kDepth / 16; ++k)
#pragma unroll
        for (int half = 0; half < halves; ++half)
          WideMatmul<T, Width>::template run<true, true>(c[half], rowsSummed(a + half * kBlockBytes, k),
                                                         rowsSummed(b, k), step > 0 || k > 0);
      commitMatmuls();
      // The matmuls of the stage before are done.
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (step > 0 && threadIdx.x % 32 == 0)
        arrive(ring.empty(ring.last()));
    }
    if (threadIdx.x % 32 == 0)
      arrive(block.mayMultiply(group ^ 1));
    waitForMatmuls<0>(c[0]);
    pin(c[1]);
    if (threadIdx.x % 32 == 0)
      arrive(ring.empty(ring.last()));
    if (turn > 0)
      waitFor(block.mayUpdate(group), phase);
    // One text for all columns, whose sums move to where it expects them: were each to have its own, the multiprocessor
    // would wait for instructions.
#pragma unroll 1
    for (int column = 0; column < Width && tile.has(0, column); column += kPieceColumns) {
#pragma unroll
      for (int half = 0; half < halves; ++half)
        if (tile.has(half * kPieceRows, column)) {
          buffers.awaitFull();
          updatePiece<Tensors>(block.piece(buffers.stage), update, c[half]);
          shareWithMatmuls(); // and with the engine
          arrive(block.updated(buffers.stage));
          buffers.next();
        }
#pragma unroll
      for (int half = 0; half < halves; ++half)
#pragma unroll
        for (int n = 0; n + kPieceColumns / 8 < Width / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            c[half][n][i] = c[half][n + kPieceColumns / 8][i];
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(block.mayUpdate(group ^ 1));
  }
}

} // namespace hopper_update

/// c = a^T b: [Rows, Columns], summed over `Sums` rows of a and b. update(number, read, wide, narrow) takes a number of
/// c and those at its place that `tensors` reads, and gives those that it writes. `scratch`: 2 + Tensors::maps maps of
/// 128 bytes for each block.
template <int Rows, int Columns, int Sums, int Width, int Stages, int Buffers, typename T, typename Tensors,
          typename Update>
__device__ __forceinline__ void updateHopper(const T *a, const T *b, const Tensors &tensors, unsigned char *scratch,
                                             const Update &update) {
  using namespace hopper_update;
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  const hopper_update::Block<Width, Stages, Buffers, Tensors> block(blocks1024);
  block.init();
  unsigned char *maps = scratch + int64(blockIdx.x) * (2 + Tensors::maps) * kMapBytes,
                *readMaps = maps + 2 * kMapBytes, *writeMaps = readMaps + Tensors::parts * Tensors::reads * kMapBytes;
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4;
  if (group == kGroups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 0)
      fetchOperands<Rows, Columns, Sums, Width>(block, a, b, maps);
    else if (warp == 1)
      fetchPieces<Rows, Columns, Width>(block, tensors, readMaps);
    else if (warp == 2)
      storePieces<Rows, Columns, Width>(block, tensors, writeMaps);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    multiplyAndUpdate<Rows, Columns, Sums, Width, T, Tensors>(block, update, group);
  }
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
