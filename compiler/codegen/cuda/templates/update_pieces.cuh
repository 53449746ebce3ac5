// What blocks of update_hopper.cuh have in shared memory, and the warps that have it filled and emptied: operands for sums,
// and pieces of the matrices that a group reads and writes.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace hopper_update {

using namespace hopper_matmul;

constexpr int kPieceRows = 64, kPieceColumns = 32, kPiece = kPieceRows * kPieceColumns, kWideBytes = kPiece * 4,
              kNarrowBytes = kPiece * 2, kWarps = 12;

/// Where a group finds what it reads, in f32 and as numbers of 16 bits (`Halves`), and puts what it makes: in f32, in 16
/// bits, first as O and then as integers (`Wholes`), as Q of 8, and as M the largest of each `Run` numbers. Rows of c are
/// in parts, one behind the other, each with matrices of its own, of as many columns as c. `ends`: of parts, multiples of
/// 64 but for the last. `found`: of c, what is known of the largest numbers, and `counts`: how many of the tiles that share
/// runs have added theirs, in the place of the first of them, by rows of tiles; zeros, before and after. `stride`: numbers
/// between rows of what is read, in f32 and in 16 bits, and of what is written; all 0 where all rows follow each other.
/// `Soon`: what is made is read next.
template <int Parts, int Reads, int Wides, int Narrows, int Bytes, int Mosts, int Run, typename O, typename Q,
          typename M, int Halves = 0, int Wholes = 0, bool Soon = false>
struct Tensors {
  static constexpr int parts = Parts, reads = Reads, halves = Halves, fetches = Reads + Halves, wides = Wides,
                       narrows = Narrows, wholes = Wholes, of16 = Narrows + Wholes, bytes = Bytes, mosts = Mosts,
                       run = Run, writes = Wides + of16 + Bytes;
  static constexpr bool soon = Soon;
  static constexpr int maps = Parts * (fetches + writes), slots = Reads > Wides ? Reads : Wides,
                       slots16 = Halves > of16 ? Halves : of16;
  using Narrow = O;
  using Byte = Q;
  int ends[Parts];
  const float *read[Parts][Reads + 1];
  float *wide[Parts][Wides + 1];
  void *narrow[Parts][of16 + 1]; // none has no elements, which C++ has no arrays of
  Q *byte[Parts][Bytes + 1];
  M *most[Parts][Mosts + 1];
  uint32 *found, *counts;
  const void *half[Parts][Halves + 1];
  uint32 stride[fetches + writes];

  /// Where what the group makes lies in a buffer: wide numbers in the place of what was read, then others.
  static __device__ __forceinline__ constexpr int placeOf(int i) {
    return i < Wides          ? i * kWideBytes
           : i < Wides + of16 ? placeOf16(i - Wides)
                              : placeOf16(slots16) + (i - Wides - of16) * kPiece;
  }
  /// Of numbers of 16 bits, where those that are written take the place of those that were read.
  static __device__ __forceinline__ constexpr int placeOf16(int i) { return slots * kWideBytes + i * kNarrowBytes; }
  static constexpr int bufferBytes = slots * kWideBytes + slots16 * kNarrowBytes + Bytes * kPiece;

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
/// A piece that the next kernel reads.
__device__ __forceinline__ uint64 evictNormally() {
  uint64 policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
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

/// Of an operand's rows or columns in a stage: 64 numbers of 16 bits, 128 of 8.
constexpr int kLine = 128;
template <typename T> constexpr int kSummed = kLine / int(sizeof(T));

/// Which of a warpgroup's 64 rows the sums c[...][2 j] and c[...][2 j + 1] of a thread belong to, where it is the
/// `quad`-th group of four lanes in its warp: the rows of the matmul, or (`Paired`) two neighbours.
template <bool Paired> __device__ __forceinline__ int rowOfSums(int quad, int j) {
  return threadIdx.x / 32 % 4 * 16 + (Paired ? 2 * quad + j : quad + 8 * j);
}

/// Tiles of c, and their pieces.
template <int Rows, int Columns, int Width> struct Tiles {
  static constexpr int height = (Rows + kHeight - 1) / kHeight, width = (Columns + Width - 1) / Width,
                       count = height * width;
  int row, column;

  __device__ __forceinline__ explicit Tiles(int number) {
    const Raster raster(number, height, width, 8);
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
  static constexpr int fetched = (Width + kBlock - 1) / kBlock * kBlock, aBytes = kHeight * kLine,
                       stageBytes = aBytes + fetched * kLine, segments = Width / kPieceColumns,
                       mostBytes = Tensors::mosts * kHeight * segments * int(sizeof(float)); // of a warpgroup
  uint32 stages, pieces, mosts, images, barriers;

  __device__ __forceinline__ explicit Block(const void *shared) {
    stages = sharedAddress(shared);
    pieces = stages + Stages * stageBytes;
    mosts = pieces + Buffers * Tensors::bufferBytes;
    images = mosts + kGroups * mostBytes;
    barriers = images + kWarps * kMapBytes;
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
  /// Whether a warpgroup has left the largest numbers of its tile; whether they have been read.
  __device__ __forceinline__ uint32 found(int group) const { return mayUpdate(kGroups) + 8 * group; }
  __device__ __forceinline__ uint32 taken(int group) const { return found(kGroups) + 8 * group; }
  __device__ __forceinline__ uint32 piece(int which) const { return pieces + which * Tensors::bufferBytes; }
  /// Those of a row of the tile, for each of its pieces.
  __device__ __forceinline__ uint32 most(int group, int i, int row) const {
    return mosts + group * mostBytes + (i * kHeight + row) * segments * int(sizeof(float));
  }

  /// Before all roles begin; behind it all threads have met.
  __device__ __forceinline__ void init() const {
    if (threadIdx.x == 0) {
      ring().init(1, 4); // a thread of each warp
      buffers().init(1, 1);
      for (int i = 0; i < Buffers; ++i)
        initBarrier(updated(i), 128);
      for (int group = 0; group < kGroups; ++group) {
        initBarrier(mayMultiply(group), 4);
        initBarrier(mayUpdate(group), 4);
        initBarrier(found(group), 128);
        initBarrier(taken(group), 32);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
};

/// Writes maps one behind the other, each by the next warp.
struct MapWriter {
  uint32 images;
  unsigned char *to;
  int number = 0;

  template <int Bytes, int Line>
  __device__ __forceinline__ void write(const void *base, uint32 rows, uint32 columns, uint32 boxRows,
                                        uint32 stride = 0) {
    const int warp = threadIdx.x / 32;
    if (number++ % kWarps == warp)
      writeMap<Bytes, Line>(images + warp * kMapBytes, to,
                            Matrices{base, columns, rows, 1, uint64(stride > 0 ? stride : columns) * Bytes}, boxRows);
    to += kMapBytes;
  }
};

/// The maps of operands, of what is read and of what is written, each by one of the warps: to write one takes longer than
/// a microsecond.
template <int Rows, int Columns, int Sums, bool ALines, bool BLines, typename Block, typename A, typename B,
          typename Tensors>
__device__ __forceinline__ void writeMaps(const Block &block, const A *a, const B *b, const Tensors &tensors,
                                          unsigned char *maps) {
  MapWriter writer{block.images, maps};
  constexpr int bytes = sizeof(A);
  if constexpr (ALines)
    writer.template write<bytes, kLine>(a, Rows, Sums, kHeight);
  else
    writer.template write<bytes, kLine>(a, Sums, Rows, kSummed<A>);
  if constexpr (BLines)
    writer.template write<bytes, kLine>(b, Columns, Sums, Block::fetched);
  else
    writer.template write<bytes, kLine>(b, Sums, Columns, kDepth);
  const auto strideOf = [&](int i) { return tensors.stride[i]; };
#pragma unroll
  for (int part = 0; part < Tensors::parts; ++part) {
    const uint32 rows = tensors.ends[part] - tensors.begin(part);
#pragma unroll
    for (int i = 0; i < Tensors::reads; ++i)
      writer.template write<4, 4 * kPieceColumns>(tensors.read[part][i], rows, Columns, kPieceRows, strideOf(i));
#pragma unroll
    for (int i = 0; i < Tensors::halves; ++i)
      writer.template write<2, 2 * kPieceColumns>(tensors.half[part][i], rows, Columns, kPieceRows,
                                                     strideOf(Tensors::reads + i));
  }
#pragma unroll
  for (int part = 0; part < Tensors::parts; ++part) {
    const uint32 rows = tensors.ends[part] - tensors.begin(part);
#pragma unroll
    for (int i = 0; i < Tensors::wides; ++i)
      writer.template write<4, 4 * kPieceColumns>(tensors.wide[part][i], rows, Columns, kPieceRows,
                                                     strideOf(Tensors::fetches + i));
#pragma unroll
    for (int i = 0; i < Tensors::of16; ++i)
      writer.template write<2, 2 * kPieceColumns>(tensors.narrow[part][i], rows, Columns, kPieceRows,
                                                     strideOf(Tensors::fetches + Tensors::wides + i));
#pragma unroll
    for (int i = 0; i < Tensors::bytes; ++i)
      writer.template write<1, kPieceColumns>(tensors.byte[part][i], rows, Columns, kPieceRows,
                                                 strideOf(Tensors::fetches + Tensors::wides + Tensors::of16 + i));
  }
}
/// A map that another warp has written.
__device__ __forceinline__ void acquireMap(const unsigned char *map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

/// The warp that has operands fetched.
template <int Rows, int Columns, int Sums, int Width, bool ALines, bool BLines, typename A, typename Block>
__device__ __forceinline__ void fetchOperands(const Block &block, const unsigned char *maps) {
  using Tiles = Tiles<Rows, Columns, Width>;
  acquireMap(maps);
  acquireMap(maps + kMapBytes);
  auto ring = block.ring();
  for (int number = blockIdx.x; threadIdx.x % 32 == 0 && number < Tiles::count; number += gridDim.x) {
    const Tiles tile(number);
    for (int k = 0; k < Sums; k += kSummed<A>, ring.next()) {
      ring.awaitEmpty();
      const uint32 to = block.stages + ring.stage * Block::stageBytes;
      arriveExpecting(ring.full(), Block::stageBytes);
      if constexpr (ALines) {
        copyBox(to, maps, k, tile.row, 0, ring.full());
      } else {
#pragma unroll
        for (int i = 0; i < kHeight; i += kSummed<A>)
          copyBox(to + i * kLine, maps, tile.row + i, k, 0, ring.full());
      }
      if constexpr (BLines) {
        copyBox(to + Block::aBytes, maps + kMapBytes, k, tile.column, 0, ring.full());
      } else {
#pragma unroll
        for (int i = 0; i < Block::fetched; i += kBlock)
          copyBox(to + Block::aBytes + i * kLine, maps + kMapBytes, tile.column + i, k, 0, ring.full());
      }
    }
  }
}

/// The warp that has brought what the group reads.
template <int Rows, int Columns, int Width, typename Block, typename Tensors>
__device__ __forceinline__ void fetchPieces(const Block &block, const Tensors &tensors, const unsigned char *maps) {
  if (threadIdx.x % 32 != 0)
    return;
#pragma unroll
  for (int i = 0; i < Tensors::parts * Tensors::fetches; ++i)
    acquireMap(maps + i * kMapBytes);
  const uint64 policy = evictFirst();
  auto buffers = block.buffers();
  for (Pieces<Rows, Columns, Width> piece; !piece.isEnd(); piece.next(), buffers.next()) {
    buffers.awaitEmpty();
    const int part = tensors.partOf(piece.row());
    arriveExpecting(buffers.full(), Tensors::reads * kWideBytes + Tensors::halves * kNarrowBytes);
#pragma unroll
    for (int i = 0; i < Tensors::fetches; ++i)
      copyBoxOnce(block.piece(buffers.stage) +
                      (i < Tensors::reads ? i * kWideBytes : Tensors::placeOf16(i - Tensors::reads)),
                  maps + (part * Tensors::fetches + i) * kMapBytes, piece.column(),
                  piece.row() - tensors.begin(part), buffers.full(), policy);
  }
}

/// The warp that has results stored; a buffer is free when it has been read for that.
template <int Rows, int Columns, int Width, typename Block, typename Tensors>
__device__ __forceinline__ void storePieces(const Block &block, const Tensors &tensors, const unsigned char *maps) {
  if (threadIdx.x % 32 != 0)
    return;
#pragma unroll
  for (int i = 0; i < Tensors::parts * Tensors::writes; ++i)
    acquireMap(maps + i * kMapBytes);
  const uint64 policy = Tensors::soon ? evictNormally() : evictFirst();
  auto buffers = block.buffers();
  for (Pieces<Rows, Columns, Width> piece; !piece.isEnd(); piece.next(), buffers.next()) {
    waitFor(block.updated(buffers.stage), buffers.phase);
    const uint32 from = block.piece(buffers.stage);
    const int part = tensors.partOf(piece.row());
#pragma unroll
    for (int i = 0; i < Tensors::writes; ++i)
      storeBoxOnce(maps + (part * Tensors::writes + i) * kMapBytes, piece.column(), piece.row() - tensors.begin(part),
                   from + Tensors::placeOf(i), policy);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    waitForStores<0>();
    arrive(buffers.empty(buffers.stage));
  }
}

} // namespace hopper_update

#endif // __CUDA_ARCH_FEAT_SM90_ALL
