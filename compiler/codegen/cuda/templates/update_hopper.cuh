// A matmul, and what is done with each of its numbers: c is not stored; the group behind it (an optimizer's update of the
// gradient of a matrix, or the derivative of a gated activation) takes its numbers from the registers that they were summed
// in, with those at the same place in other matrices. What is summed lies along the rows of an operand (`ALines`,
// `BLines`) or along its columns. Of 8 bits every 128 of it are summed apart (tensor cores keep fewer bits of sums of 8-bit
// numbers than f32 has) and added to the others; tensor cores take them along rows, so b has them so, and columns of a are
// transposed in registers.
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
// The group may also find the largest of numbers that lie one behind the other, `Run` of them. A fourth warp adds those
// of a tile, which its warpgroup leaves in shared memory, to memory; the last block that adds to rows of c gives what all
// have found. A maximum has no order.
//
// Traffic: (128 + Width) numbers of a tile for each of its sums, from the second cache where tiles that run together
// share them; what the group reads and writes, once, past what the caches keep. Limit: wgmma, or memory where there
// are fewer sums than some 4000 of 16 bits at 4 TB/s (26 bytes for a number of AdamW).

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace hopper_update {

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

/// The group for the numbers of a warpgroup's piece, c[0] and on. What it reads of eight numbers is on its way before the
/// first is worked on. `most`: of the thread's two rows; all columns of the piece exist then.
template <bool PairedRows, typename Tensors, int N, typename Update>
__device__ __forceinline__ void updatePiece(uint32 piece, const Update &update, const float (&c)[N][4],
                                            float (&most)[2][Tensors::mosts + 1]) {
  constexpr int together = 4; // pairs of numbers
  const int lane = threadIdx.x % 32, at = lane % 4 * 8;
  const int rows[] = {rowOfSums<PairedRows>(lane / 4, 0), rowOfSums<PairedRows>(lane / 4, 1)};
  const auto whereIs = [&](int pair) {
    const int row = rows[pair % 2];
    return piece + row * 128 + ((pair / 2 * 2 + at / 16) ^ (row % 8)) * 16 + at % 16;
  };
  // Of 16 bits four pairs lie as four 8 x 8 matrices of two rows of them, whatever they are.
  const int narrowRow = rowOfSums<PairedRows>(lane % 8, lane / 8 % 2);
  const auto whereAre = [&](int i, int pair) {
    return piece + Tensors::placeOf16(i) + narrowRow * 64 + ((pair / 2 + lane / 16) ^ (narrowRow / 2 % 4)) * 16;
  };
#pragma unroll
  for (int begin = 0; begin < 8; begin += together) {
    uint32 half[Tensors::halves + 1][together], narrow[Tensors::of16 + 1][together];
#pragma unroll
    for (int i = 0; i < Tensors::halves; ++i)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(half[i][0]), "=r"(half[i][1]), "=r"(half[i][2]), "=r"(half[i][3])
                   : "r"(whereAre(i, begin))
                   : "memory");
    float in[together][2][Tensors::reads + 1];
#pragma unroll
    for (int p = 0; p < together; ++p)
#pragma unroll
      for (int i = 0; i < Tensors::reads; ++i)
        loadPair(in[p][0][i], in[p][1][i], whereIs(begin + p) + i * kWideBytes);
    float wide[together][2][Tensors::wides + 1], rounded[together][2][Tensors::narrows + 1],
        bytes[together][2][Tensors::bytes + 1], large[together][2][Tensors::mosts + 1];
    int whole[together][2][Tensors::wholes + 1];
#pragma unroll
    for (int p = 0; p < together; ++p)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        uint32 half16[Tensors::halves + 1];
#pragma unroll
        for (int i = 0; i < Tensors::halves; ++i)
          half16[i] = j == 0 ? half[i][p] & 0xffff : half[i][p] >> 16;
        update(c[(begin + p) / 2][2 * (p % 2) + j], in[p][j], half16, wide[p][j], rounded[p][j], whole[p][j],
               bytes[p][j], large[p][j]);
      }
#pragma unroll
    for (int p = 0; p < together; ++p) {
#pragma unroll
      for (int i = 0; i < Tensors::wides; ++i)
        storePair(whereIs(begin + p) + i * kWideBytes, wide[p][0][i], wide[p][1][i]);
#pragma unroll
      for (int i = 0; i < Tensors::narrows; ++i)
        narrow[i][p] = pack<typename Tensors::Narrow>(rounded[p][0][i], rounded[p][1][i]);
#pragma unroll
      for (int i = 0; i < Tensors::wholes; ++i)
        narrow[Tensors::narrows + i][p] = __byte_perm(whole[p][0][i], whole[p][1][i], 0x5410);
#pragma unroll
      for (int i = 0; i < Tensors::bytes; ++i)
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(piece + Tensors::placeOf(Tensors::wides + Tensors::of16 + i) +
                                                     rows[p % 2] * 32 + (begin + p) / 2 * 8 + lane % 4 * 2),
                     "h"(packBytes<typename Tensors::Byte>(bytes[p][0][i], bytes[p][1][i]))
                     : "memory");
#pragma unroll
      for (int i = 0; i < Tensors::mosts; ++i)
        most[p % 2][i] = larger(most[p % 2][i], larger(large[p][0][i], large[p][1][i]));
    }
#pragma unroll
    for (int i = 0; i < Tensors::of16; ++i)
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(whereAre(i, begin)),
                   "r"(narrow[i][0]), "r"(narrow[i][1]), "r"(narrow[i][2]), "r"(narrow[i][3])
                   : "memory");
  }
}

/// c[64 x 64] = a b^T, or c += a b^T where `add`: 32 of k, of numbers of 8 bits; a described, or in registers.
template <typename A, typename B> struct ByteMatmul;
#define HYDRA_BYTE_MATMUL(A, B)                                                                                  \
  template <> struct ByteMatmul<A, B> {                                                                          \
    static __device__ __forceinline__ void run(float (&c)[8][4], uint64 a, uint64 b, int add) {                  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                                 \
                   "wgmma.mma_async.sync.aligned.m64n64k32.f32." #A "." #B " {" HYDRA_L32 "}, "                  \
                   "%32, %33, p, 1, 1;\n}"                                                                       \
                   : HYDRA_O32("+f")                                                                             \
                   : "l"(a), "l"(b), "r"(add));                                                                  \
    }                                                                                                            \
    static __device__ __forceinline__ void run(float (&c)[8][4], const uint32 (&a)[4], uint64 b, int add) {      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                 \
                   "wgmma.mma_async.sync.aligned.m64n64k32.f32." #A "." #B " {" HYDRA_L32 "}, "                  \
                   "{%32, %33, %34, %35}, %36, p, 1, 1;\n}"                                                      \
                   : HYDRA_O32("+f")                                                                             \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                              \
    }                                                                                                            \
  };
HYDRA_BYTE_MATMUL(e4m3, e4m3)
HYDRA_BYTE_MATMUL(e4m3, e5m2)
HYDRA_BYTE_MATMUL(e5m2, e4m3)
HYDRA_BYTE_MATMUL(e5m2, e5m2)
#undef HYDRA_BYTE_MATMUL

/// 64 columns of a stage of bytes, [128 of k][128], as the first operand of a warpgroup's matmuls. ldmatrix transposes pairs
/// of bytes, so a thread has two neighbouring columns, which are rows of the sums (`rowOfSums`).
struct ByteColumns {
  uint32 at[kLine / 32][4];

  /// The columns from 64 `half` on. The eight rows of an 8 x 8 matrix are eight k, and lie in different banks of the
  /// swizzle: for that two lanes of four have their later k in the first register, which the byte permutation undoes.
  __device__ __forceinline__ void load(uint32 stage, int half) {
    const int lane = threadIdx.x % 32, quarter = lane % 8 / 2;
    const int k = lane / 16 * 16 + quarter * 4 + (lane / 8 % 2 ^ quarter / 2) * 2 + lane % 2;
    const uint32 from = stage + k * kLine + ((half * 4 + ownWarp()) ^ k % 8) * 16;
    const uint32 even = lane % 4 < 2 ? 0x6420 : 0x2064, odd = even + 0x1111;
#pragma unroll
    for (int i = 0; i < kLine / 32; ++i) {
      uint32 pairs[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                   : "r"(from + i * 32 * kLine)
                   : "memory");
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        at[i][j] = __byte_perm(pairs[j], pairs[j + 1], even);
        at[i][j + 1] = __byte_perm(pairs[j], pairs[j + 1], odd);
      }
    }
  }
};

/// The sums of a stage, of 16 bits: they still run when the next one is begun, and those of the last stage are done.
/// Of 8 bits they are done, and added to c; while those of 64 x 64 run, those before are added.
template <typename A, typename B, int Width, bool ALines, bool BLines, int Halves>
__device__ __forceinline__ void multiplyStage(float (&c)[Halves][Width / 8][4], uint32 a, uint32 b, bool isFirst) {
  if constexpr (sizeof(A) == 1) {
    constexpr int wide = kBlock / 8, across = Width / kBlock, count = Halves * across;
    float sums[2][wide][4];
    ByteColumns columns;
    const auto add = [&](int block) {
      forEach(sums[block % 2], [&](float &x, int n, int i) {
        float &to = c[block / across][block % across * wide + n][i];
        to = __fadd_rn(to, x);
      });
    };
#pragma unroll
    for (int block = 0; block < count; ++block) {
      const bool isLoaded = ALines || block % across > 0; // else into registers that matmuls have read
      if (!isLoaded) {
        if (block > 0)
          waitForMatmuls<0>(sums[(block - 1) % 2]);
        columns.load(a, block / across);
      }
      beginMatmuls();
#pragma unroll
      for (int k = 0; k < kLine / 32; ++k) {
        const uint64 right = columnsSummed(b + block % across * kBlockBytes, k);
        if constexpr (ALines)
          ByteMatmul<A, B>::run(sums[block % 2], columnsSummed(a + block / across * kBlockBytes, k), right, k > 0);
        else
          ByteMatmul<A, B>::run(sums[block % 2], columns.at[k], right, k > 0);
      }
      commitMatmuls();
      if (block > 0) {
        if (isLoaded)
          waitForMatmuls<1>(sums[(block - 1) % 2]);
        add(block - 1);
      }
    }
    waitForMatmuls<0>(sums[(count - 1) % 2]);
    add(count - 1);
  } else {
    beginMatmuls();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
#pragma unroll
      for (int half = 0; half < Halves; ++half)
        WideMatmul<A, Width>::template run<!ALines, !BLines>(
            c[half], ALines ? columnsSummed(a + half * kBlockBytes, k) : rowsSummed(a + half * kBlockBytes, k),
            BLines ? columnsSummed(b, k) : rowsSummed(b, k), !isFirst || k > 0);
    commitMatmuls();
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
}

/// A warpgroup: every second tile of the block is its own.
template <int Rows, int Columns, int Sums, int Width, bool ALines, bool BLines, typename A, typename B,
          typename Tensors, typename Block, typename Update>
__device__ __forceinline__ void multiplyAndUpdate(const Block &block, const Update &update, int group) {
  using Tiles = Tiles<Rows, Columns, Width>;
  constexpr int steps = (Sums + kSummed<A> - 1) / kSummed<A>, halves = kHeight / kPieceRows;
  constexpr bool isWithinRun = kIsWithinRun<Columns, Width, Tensors::run>;
  constexpr bool isDone = sizeof(A) == 1; // with a stage when the next one is begun
  constexpr bool pairedRows = sizeof(A) == 1 && !ALines;
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
    if constexpr (isDone)
#pragma unroll
      for (int half = 0; half < halves; ++half)
        forEach(c[half], [](float &x, int, int) { x = -0.0f; }); // and whatever is added is itself
    // Few steps, unrolled, would be ordered anew, and then sums are spilled.
#pragma unroll 1
    for (int step = 0; step < steps; ++step, ring.next()) {
      ring.awaitFull();
      const uint32 a = block.stages + ring.stage * Block::stageBytes;
      multiplyStage<A, B, Width, ALines, BLines>(c, a, a + Block::aBytes, step == 0);
      if ((isDone || step > 0) && threadIdx.x % 32 == 0)
        arrive(ring.empty(isDone ? ring.stage : ring.last()));
    }
    if (threadIdx.x % 32 == 0)
      arrive(block.mayMultiply(group ^ 1));
    waitForMatmuls<0>(c[0]);
    pin(c[1]);
    if (!isDone && threadIdx.x % 32 == 0)
      arrive(ring.empty(ring.last()));
    if (turn > 0)
      waitFor(block.mayUpdate(group), phase);
    if (Tensors::mosts > 0 && turn >= kGroups)
      waitFor(block.taken(group), (turn / kGroups - 1) & 1);
    float most[halves][2][Tensors::mosts + 1];
#pragma unroll
    for (int half = 0; half < halves; ++half)
      clearLargest(most[half]);
    // One text for all columns, whose sums move to where it expects them: were each to have its own, the multiprocessor
    // would wait for instructions.
#pragma unroll 1
    for (int column = 0; column < Width && tile.has(0, column); column += kPieceColumns) {
#pragma unroll
      for (int half = 0; half < halves; ++half)
        if (tile.has(half * kPieceRows, column)) {
          buffers.awaitFull();
          updatePiece<pairedRows, Tensors>(block.piece(buffers.stage), update, c[half], most[half]);
          shareWithMatmuls(); // and with the engine
          arrive(block.updated(buffers.stage));
          buffers.next();
          if constexpr (!isWithinRun) {
            leaveLargest<pairedRows, Tensors>(block, group, most[half], half, column);
            clearLargest(most[half]);
          }
        }
#pragma unroll
      for (int half = 0; half < halves; ++half)
#pragma unroll
        for (int n = 0; n + kPieceColumns / 8 < Width / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            c[half][n][i] = c[half][n + kPieceColumns / 8][i];
    }
    if constexpr (isWithinRun)
#pragma unroll
      for (int half = 0; half < halves; ++half)
        leaveLargest<pairedRows, Tensors>(block, group, most[half], half, 0);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(block.mayUpdate(group ^ 1));
    if (Tensors::mosts > 0)
      arrive(block.found(group));
  }
}

} // namespace hopper_update

/// c: [Rows, Columns], summed over `Sums` of a and b, along the rows of each (`ALines`, `BLines`) or its columns.
/// update(number, read, half, wide, narrow, whole, byte, most) takes a number of c and those at its place that `tensors`
/// reads, of 16 bits their bits, and gives those that it writes.
/// `scratch`: 2 + Tensors::maps maps of 128 bytes for each block.
template <int Rows, int Columns, int Sums, int Width, int Stages, int Buffers, bool ALines, bool BLines, typename A,
          typename B, typename Tensors, typename Update>
__device__ __forceinline__ void updateHopper(const A *a, const B *b, const Tensors &tensors, unsigned char *scratch,
                                             const Update &update) {
  using namespace hopper_update;
  // Swizzles count from multiples of 1024 bytes.
  extern __shared__ __align__(1024) unsigned short blocks1024[];
  const hopper_update::Block<Width, Stages, Buffers, Tensors> block(blocks1024);
  unsigned char *maps = scratch + int64(blockIdx.x) * (2 + Tensors::maps) * kMapBytes,
                *readMaps = maps + 2 * kMapBytes, *storeMaps = readMaps + Tensors::parts * Tensors::fetches * kMapBytes;
  writeMaps<Rows, Columns, Sums, ALines, BLines>(block, a, b, tensors, maps);
  block.init();
  const int group = ownGroup(), warp = ownWarp();
  if (group == kGroups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 0)
      fetchOperands<Rows, Columns, Sums, Width, ALines, BLines, A>(block, maps);
    else if (warp == 1)
      fetchPieces<Rows, Columns, Width>(block, tensors, readMaps);
    else if (warp == 2)
      storePieces<Rows, Columns, Width>(block, tensors, storeMaps);
    else if constexpr (Tensors::mosts > 0)
      giveLargest<Rows, Columns, Width>(block, tensors);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    multiplyAndUpdate<Rows, Columns, Sums, Width, ALines, BLines, A, B, Tensors>(block, update, group);
  }
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
