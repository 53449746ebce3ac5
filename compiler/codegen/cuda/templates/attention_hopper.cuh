// Attention with Hopper's warpgroup products (wgmma): forward, and a backward without atomics.
//
// The same mathematics as attention.cuh. As many blocks as the GPU holds at a time share out the items
// of work: 64 Groups rows of a head (queries, or keys for dk and dv). A block has `Groups` warpgroups,
// each with 64 of these rows, and one more that fetches: an item's rows, and tiles of 64 rows of what
// they walk over; it runs ahead into the next item and cedes its registers to the others. Each
// warpgroup keeps its rows, scores and sums in registers; tiles are read from shared memory by the
// products. While one warpgroup works on exponentials, products of another run, and in the forward
// pass products of its own: the next scores and the last values.
//
// Traffic: k and v once for every 64 Groups queries, from L2. Limit: at width 64 the exponentials, of
// which a tile needs as many cycles as its two products. Layout: a tile is [row / 8][column / 8][8][8],
// the layout without swizzle, in which one copy serves products along rows and along columns, for
// every width that is a multiple of 16. Every sum has a fixed order, whichever block does it.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

typedef unsigned long long uint64;
constexpr int kTile = 64; // rows of a tile

//===-- Products ------------------------------------------------------------------------------===//

// The operands of an accumulator of 8 to 64 registers.
#define HYDRA_L8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define HYDRA_L16 HYDRA_L8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define HYDRA_L24 HYDRA_L16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define HYDRA_L32 HYDRA_L24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define HYDRA_L40 HYDRA_L32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define HYDRA_L48 HYDRA_L40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define HYDRA_L56 HYDRA_L48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define HYDRA_L64 HYDRA_L56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define HYDRA_O4(how, n) how(c[n][0]), how(c[n][1]), how(c[n][2]), how(c[n][3])
#define HYDRA_O8(how, n) HYDRA_O4(how, n), HYDRA_O4(how, n + 1)
#define HYDRA_O16(how) HYDRA_O8(how, 0), HYDRA_O8(how, 2)
#define HYDRA_O24(how) HYDRA_O16(how), HYDRA_O8(how, 4)
#define HYDRA_O32(how) HYDRA_O24(how), HYDRA_O8(how, 6)
#define HYDRA_O40(how) HYDRA_O32(how), HYDRA_O8(how, 8)
#define HYDRA_O48(how) HYDRA_O40(how), HYDRA_O8(how, 10)
#define HYDRA_O56(how) HYDRA_O48(how), HYDRA_O8(how, 12)
#define HYDRA_O64(how) HYDRA_O56(how), HYDRA_O8(how, 14)

template <int N> struct Product;
/// c[64 x N] (+)= a[64 x 16] b[16 x N]: a in registers or described, b described, and its sixteen the
/// columns or the rows of a tile. `x0` ... number the operands after c. `set` has c as a result only:
/// were it an operand too, the compiler would keep the numbers before for it.
#define HYDRA_PRODUCT(N, LIST, OUTPUTS, x0, x1, x2, x3, x4)                                        \
  template <> struct Product<N> {                                                                  \
    static __device__ __forceinline__ void set(float (&c)[N / 8][4], const uint32 (&a)[4],         \
                                               uint64 columns) {                                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                      \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" LIST "}, "         \
                   "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}, %" #x4 ", p, 1, 1, 0;\n}"            \
                   : OUTPUTS("=f")                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns));                    \
    }                                                                                              \
    static __device__ __forceinline__ void set(float (&c)[N / 8][4], uint64 a, uint64 columns) {   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                      \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" LIST "}, "         \
                   "%" #x0 ", %" #x1 ", p, 1, 1, 0, 0;\n}"                                         \
                   : OUTPUTS("=f")                                                                 \
                   : "l"(a), "l"(columns));                                                        \
    }                                                                                              \
    static __device__ __forceinline__ void add(float (&c)[N / 8][4], const uint32 (&a)[4],         \
                                               uint64 columns) {                                   \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" LIST "}, "         \
                   "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}, %" #x4 ", 1, 1, 1, 0;"               \
                   : OUTPUTS("+f")                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns));                    \
    }                                                                                              \
    static __device__ __forceinline__ void add(float (&c)[N / 8][4], uint64 a, uint64 columns) {   \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" LIST "}, "         \
                   "%" #x0 ", %" #x1 ", 1, 1, 1, 0, 0;"                                            \
                   : OUTPUTS("+f")                                                                 \
                   : "l"(a), "l"(columns));                                                        \
    }                                                                                              \
    static __device__ __forceinline__ void addRows(float (&c)[N / 8][4], const uint32 (&a)[4],     \
                                                   uint64 rows) {                                  \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" LIST "}, "         \
                   "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}, %" #x4 ", 1, 1, 1, 1;"               \
                   : OUTPUTS("+f")                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows));                       \
    }                                                                                              \
  };
#define HYDRA_OUTPUTS8(how) HYDRA_O8(how, 0)
HYDRA_PRODUCT(16, HYDRA_L8, HYDRA_OUTPUTS8, 8, 9, 10, 11, 12)
HYDRA_PRODUCT(32, HYDRA_L16, HYDRA_O16, 16, 17, 18, 19, 20)
HYDRA_PRODUCT(48, HYDRA_L24, HYDRA_O24, 24, 25, 26, 27, 28)
HYDRA_PRODUCT(64, HYDRA_L32, HYDRA_O32, 32, 33, 34, 35, 36)
HYDRA_PRODUCT(80, HYDRA_L40, HYDRA_O40, 40, 41, 42, 43, 44)
HYDRA_PRODUCT(96, HYDRA_L48, HYDRA_O48, 48, 49, 50, 51, 52)
HYDRA_PRODUCT(112, HYDRA_L56, HYDRA_O56, 56, 57, 58, 59, 60)
HYDRA_PRODUCT(128, HYDRA_L64, HYDRA_O64, 64, 65, 66, 67, 68)

__device__ __forceinline__ void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// The compiler must not move what touches these numbers across this point.
template <int N> __device__ __forceinline__ void pin(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+f"(c[n][i])::"memory");
}
/// Waits until at most `Pending` groups of products run, of which none adds to `c`.
template <int Pending, int N> __device__ __forceinline__ void waitForProducts(float (&c)[N][4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  pin(c);
}

/// How a product finds the core matrices (8 x 8) of a tile at an address in shared memory: `along`
/// and `across` are bytes between those that follow each other in the direction that is summed over,
/// and in the other.
__device__ __forceinline__ uint64 describe(uint32 tile, int along, int across) {
  return uint64(tile >> 4) | uint64(along >> 4) << 16 | uint64(across >> 4) << 32;
}
template <int Width> __device__ __forceinline__ uint64 columnsSummed(uint32 tile) {
  return describe(tile, 128, Width * 16);
}
template <int Width> __device__ __forceinline__ uint64 rowsSummed(uint32 tile) {
  return describe(tile, Width * 16, 128);
}

/// The rows of a warpgroup as the first operand, from a tile in shared memory.
template <int Width> struct Rows {
  uint32 at[Width / 16][4];

  __device__ __forceinline__ void load(const bf16 *tile) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bf16 *row = tile + (warp * 2 + lane / 8 % 2) * Width * 8 + lane / 16 * 64 + lane % 8 * 8;
#pragma unroll
    for (int k = 0; k < Width / 16; ++k)
      loadMatrices(at[k], row + k * 128);
  }
  /// Changes nothing, in a way that ptxas cannot know (`zero` is computed). In loops that use rows only
  /// as first operands it else takes them for dead after the first time, and gives the registers to
  /// other operands: seen with CUDA 13.0 where those are as many.
  __device__ __forceinline__ void keep(uint32 zero) {
#pragma unroll
    for (int k = 0; k < Width / 16; ++k)
      at[k][0] ^= zero;
  }
};

/// c = rows tile^T.
template <int Width>
__device__ __forceinline__ void scores(float (&c)[kTile / 8][4], const Rows<Width> &rows, uint32 tile) {
  Product<kTile>::set(c, rows.at[0], columnsSummed<Width>(tile));
#pragma unroll
  for (int k = 1; k < Width / 16; ++k)
    Product<kTile>::add(c, rows.at[k], columnsSummed<Width>(tile + k * 256));
}
/// The same with 64 rows in shared memory.
template <int Width>
__device__ __forceinline__ void scores(float (&c)[kTile / 8][4], uint32 rows, uint32 tile) {
  Product<kTile>::set(c, columnsSummed<Width>(rows), columnsSummed<Width>(tile));
#pragma unroll
  for (int k = 1; k < Width / 16; ++k)
    Product<kTile>::add(c, columnsSummed<Width>(rows + k * 256), columnsSummed<Width>(tile + k * 256));
}

/// Scores in bf16 as the first operand.
__device__ __forceinline__ void packScores(uint32 (&to)[kTile / 16][4], const float (&p)[kTile / 8][4]) {
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[k][i] = pack(p[2 * k + i / 2][i % 2 * 2], p[2 * k + i / 2][i % 2 * 2 + 1]);
}
/// c += p tile.
template <int Width>
__device__ __forceinline__ void addProduct(float (&c)[Width / 8][4], const uint32 (&p)[kTile / 16][4],
                                           uint32 tile) {
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k)
    Product<Width>::addRows(c, p[k], rowsSummed<Width>(tile + k * Width * 32));
}

template <int N> __device__ __forceinline__ void clear(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      c[n][i] = 0.0f;
}

//===-- Tiles ---------------------------------------------------------------------------------===//

__device__ __forceinline__ void initBarrier(uint32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ bool isOver(uint32 barrier, int phase) {
  int over;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               "selp.b32 %0, 1, 0, p;\n}"
               : "=r"(over)
               : "r"(barrier), "r"(phase)
               : "memory");
  return over;
}
__device__ __forceinline__ void waitFor(uint32 barrier, int phase) {
  while (!isOver(barrier, phase))
    ;
}
/// Makes what this thread sees in shared memory visible to products.
__device__ __forceinline__ void shareWithProducts() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// A warpgroup starts copying 64 rows of `Width` numbers; zeros from row `rows`.
template <int Width>
__device__ __forceinline__ void fetchRows(bf16 *to, const bf16 *from, int64 stride, int rows) {
  constexpr int pieces = Width / 8, together = pieces <= 2 ? 8 : pieces <= 4 ? 4 : pieces <= 8 ? 2 : 1;
  int matrix = threadIdx.x % 128 / 8, column = matrix % pieces;
  int row = matrix / pieces * 8 + threadIdx.x % 8;
  if (matrix >= together * pieces)
    return;
  to += matrix * 64 + threadIdx.x % 8 * 8;
  from += row * stride + column * 8;
#pragma unroll
  for (int i = 0; i < 8; i += together, to += together * pieces * 64, from += together * 8 * stride)
    copyAsync(to, from, row + i * 8 < rows);
}

/// Registers of the threads that work and of those that fetch; together what a block starts with.
template <int Groups> __device__ __forceinline__ void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Groups == 1 ? 232 : Groups == 2 ? 240 : 160));
}
template <int Groups> __device__ __forceinline__ void cedeRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Groups == 3 ? 32 : 24));
}

/// Announces copies in their order, each when the next has been started.
struct Announcer {
  uint32 pending = 0;
  __device__ __forceinline__ void started(uint32 barrier) {
    commitCopies();
    if (pending) {
      waitForCopies<1>();
      shareWithProducts();
      arrive(pending);
    }
    pending = barrier;
  }
  __device__ __forceinline__ void finish() {
    waitForCopies<0>();
    shareWithProducts();
    if (pending)
      arrive(pending);
    pending = 0;
  }
};

/// Stages that the fetching warpgroup fills and `Groups` warpgroups read, in turn.
template <int Groups, int Stages> struct Ring {
  uint32 barriers; // of each stage: full, empty
  int stage = 0, phase = 0;

  __device__ __forceinline__ Ring(const void *at) : barriers(sharedAddress(at)) {}
  /// By one thread, before the others begin.
  __device__ __forceinline__ void init() const {
    for (int i = 0; i < Stages; ++i) {
      initBarrier(full(i), 128);
      initBarrier(empty(i), 4 * Groups);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ __forceinline__ uint32 full(int i) const { return barriers + 16 * i; }
  __device__ __forceinline__ uint32 empty(int i) const { return barriers + 16 * i + 8; }
  __device__ __forceinline__ void next() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
  __device__ __forceinline__ int last() const { return stage == 0 ? Stages - 1 : stage - 1; }

  __device__ __forceinline__ void awaitFull() const { waitFor(full(stage), phase); }
  /// At first all are empty: the phase before is over. What has been copied is announced first where
  /// this has to wait.
  __device__ __forceinline__ void awaitEmpty(Announcer &announcer) const {
    if (isOver(empty(stage), phase ^ 1))
      return;
    announcer.finish();
    waitFor(empty(stage), phase ^ 1);
  }
  /// A warp has read a stage.
  __device__ __forceinline__ void release(int which) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(empty(which));
  }
  __device__ __forceinline__ void skip(int steps) {
    for (int i = 0; i < steps; ++i, next()) {
      awaitFull();
      release(stage);
    }
  }
};

/// The items of a block: heads in sections whose keys stay in L2, in each of them the long items
/// first; blocks take items in turn, there and back, so that all get about as much. `lastLongest`: the
/// last rows of a head have most to do, else the first.
template <int Blocks, int Heads, int64 HeadBytes> struct Items {
  int count, row = 0;
  int block, head, batch;

  __device__ __forceinline__ Items(int batches) : count(Blocks * Heads * batches) {}
  __device__ __forceinline__ bool next(bool lastLongest) {
    int item = row * gridDim.x + (row % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    ++row;
    // In an incomplete row the blocks at the other end have none.
    if (item >= count)
      return false;
    constexpr int section = HeadBytes < 24000000 ? 24000000 / HeadBytes : 1; // heads
    int first = item / (section * Blocks) * section;
    int heads = min(section, count / Blocks - first), rest = item - first * Blocks;
    block = rest / heads;
    if (lastLongest)
      block = Blocks - 1 - block;
    int at = first + rest % heads;
    head = at % Heads;
    batch = at / Heads;
    return true;
  }
};

//===-- Forward -------------------------------------------------------------------------------===//

/// What a block of queries walks over.
template <int Groups, int Queries, int Keys> struct QueryBlock {
  static constexpr int tiles = (Queries + kTile - 1) / kTile, blocks = (tiles + Groups - 1) / Groups;
  int firstTile, begin, end; // of the queries' tiles, negative where there are none; keys

  __device__ __forceinline__ QueryBlock(const Mask &mask, int block) {
    firstTile = block * Groups - (blocks * Groups - tiles); // the first block is the incomplete one
    int first = max(firstTile, 0) * kTile, last = min((firstTile + Groups) * kTile, Queries) - 1;
    begin = mask.firstKey(first) / kTile * kTile;
    end = mask.endKey(last, Keys);
  }
  __device__ __forceinline__ int steps() const { return (end - begin + kTile - 1) / kTile; }
};
/// The part of it that a warpgroup needs.
template <int Queries, int Keys> struct OwnSteps {
  int first, rows, skipped, steps;
  __device__ __forceinline__ OwnSteps(const Mask &mask, int tile, int begin, int end) {
    first = tile * kTile;
    rows = tile < 0 ? 0 : min(kTile, Queries - first);
    skipped = 0;
    steps = 0;
    if (rows > 0) {
      skipped = (mask.firstKey(first) - begin) / kTile;
      steps = max(0, (mask.endKey(first + rows - 1, Keys) - begin + kTile - 1) / kTile - skipped);
    }
  }
};

template <int Groups, int Batch, int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q,
          typename K, typename V, typename O>
__device__ __forceinline__ void hopperForward(const bf16 *q, const bf16 *k, const bf16 *v, bf16 *o,
                                              float *lse, Mask mask, float scale) {
  extern __shared__ __align__(16) bf16 shared[];
  constexpr int size = kTile * Width, stages = 4;
  bf16 *tiles = shared + Groups * size; // after the queries
  using Block = QueryBlock<Groups, Queries, Keys>;
  Ring<Groups, 1> queryRing(tiles + 2 * stages * size);
  Ring<Groups, stages> ring(tiles + 2 * stages * size + 8);
  Items<Block::blocks, Heads, int64(4) * Keys * Width> items(Batch);
  int group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    queryRing.init();
    ring.init();
  }
  __syncthreads();

  if (group == Groups) {
    cedeRegisters<Groups>();
    Announcer announcer;
    while (items.next(true)) {
      Block block(mask, items.block);
      int keyHead = items.head / (Heads / KeyHeads);
      queryRing.awaitEmpty(announcer);
      for (int i = max(0, -block.firstTile); i < Groups; ++i) {
        int first = (block.firstTile + i) * kTile;
        fetchRows<Width>(shared + i * size, Q::at(q, items.batch, first, items.head), Q::row,
                         Queries - first);
      }
      announcer.started(queryRing.full(0));
      queryRing.next();
      const bf16 *kAt = K::at(k, items.batch, 0, keyHead), *vAt = V::at(v, items.batch, 0, keyHead);
      for (int key = block.begin; key < block.end; key += kTile) {
        ring.awaitEmpty(announcer);
        bf16 *to = tiles + ring.stage * 2 * size;
        fetchRows<Width>(to, kAt + key * K::row, K::row, Keys - key);
        fetchRows<Width>(to + size, vAt + key * V::row, V::row, Keys - key);
        announcer.started(ring.full(ring.stage));
        ring.next();
      }
    }
    announcer.finish();
    return;
  }

  takeRegisters<Groups>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  float factor = scale * kLog2e;
  while (items.next(true)) {
    Block block(mask, items.block);
    OwnSteps<Queries, Keys> own(mask, block.firstTile + group, block.begin, block.end);
    Rows<Width> queries;
    const uint32 zero = uint32(items.batch) >> 20;
    queryRing.awaitFull();
    queries.load(shared + group * size);
    queryRing.release(0);
    queryRing.next();
    float out[Width / 8][4], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f}, shrink[2];
    clear(out);
    uint32 p[kTile / 16][4];
    auto startScores = [&](float (&s)[kTile / 8][4]) {
      ring.awaitFull();
      beginProducts();
      scores<Width>(s, queries, sharedAddress(tiles + ring.stage * 2 * size));
      commitProducts();
    };
    // From the scores of a step to weights, and the factor of what was summed before.
    auto weigh = [&](float (&s)[kTile / 8][4], int step) {
      int key = block.begin + (own.skipped + step) * kTile;
      if (isPartial(mask, own.first, own.rows, key, kTile, Keys)) {
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            int query = own.first + row + lane / 4 + i / 2 * 8, at = key + n * 8 + lane % 4 * 2 + i % 2;
            if (at >= Keys || !mask.sees(query, at))
              s[n][i] = -INFINITY;
          }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float best = top[half];
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
          best = fmaxf(best, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        best = quadMax(best);
        // Weights are relative to a maximum of before as long as they stay below 2^8. A query that has
        // seen no key yet: every score is -inf, and so is the maximum.
        bool rises = (best - top[half]) * factor > 8.0f;
        shrink[half] = rises ? exp2Approx((top[half] - best) * factor) : 1.0f;
        top[half] = rises ? best : top[half];
        float base = top[half] == -INFINITY ? 0.0f : top[half] * factor, part = 0.0f;
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            s[n][i] = exp2Approx(fmaf(s[n][i], factor, -base));
            part += s[n][i];
          }
        sum[half] = sum[half] * shrink[half] + part;
      }
    };
    ring.skip(own.skipped);
    if (own.steps > 0) {
      {
        float s[kTile / 8][4];
        startScores(s);
        waitForProducts<0>(s);
        weigh(s, 0);
        packScores(p, s);
      }
      uint32 values = sharedAddress(tiles + ring.stage * 2 * size + size);
      ring.next();
      for (int step = 1; step < own.steps; ++step) {
        float s[kTile / 8][4];
        startScores(s);
        beginProducts();
        addProduct<Width>(out, p, values);
        commitProducts();
        waitForProducts<1>(s);
        weigh(s, step);
        waitForProducts<0>(out);
        queries.keep(zero);
        ring.release(ring.last());
        pin(s); // until then p is in use
        packScores(p, s);
        if (__any_sync(~0u, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
          for (int n = 0; n < Width / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
              out[n][i] *= shrink[i / 2];
        }
        pin(out);
        values = sharedAddress(tiles + ring.stage * 2 * size + size);
        ring.next();
      }
      beginProducts();
      addProduct<Width>(out, p, values);
      commitProducts();
      waitForProducts<0>(out);
      ring.release(ring.last());
    }
    ring.skip(block.steps() - own.skipped - own.steps);
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = quadSum(sum[half]);
      inverse[half] = all > 0.0f ? 1.0f / all : 0.0f;
      int at = row + lane / 4 + 8 * half;
      if (lse && lane % 4 == 0 && at < own.rows)
        lse[(int64(items.batch) * Heads + items.head) * Queries + own.first + at] =
            all > 0.0f ? top[half] * scale + logf(all) : -INFINITY;
    }
    storeRows<Width>(O::at(o, items.batch, own.first, items.head), O::row, out, inverse[0], inverse[1],
                     row, own.rows);
  }
}

//===-- Backward ------------------------------------------------------------------------------===//

/// dq, and delta[b, h, i] = <dO, o>, which the gradients of keys need.
template <int Groups, int Batch, int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q,
          typename K, typename V, typename O, typename G, typename DQ>
__device__ __forceinline__ void hopperQueryGradients(const bf16 *dO, const bf16 *q, const bf16 *k,
                                                     const bf16 *v, const bf16 *o, const float *lse,
                                                     float *delta, bf16 *dq, Mask mask, float scale) {
  extern __shared__ __align__(16) bf16 shared[];
  constexpr int size = kTile * Width, stages = Width <= 80 ? 4 : 3;
  bf16 *tiles = shared + 3 * Groups * size; // after q, dO and o of each warpgroup
  using Block = QueryBlock<Groups, Queries, Keys>;
  Ring<Groups, 1> queryRing(tiles + 2 * stages * size);
  Ring<Groups, stages> ring(tiles + 2 * stages * size + 8);
  Items<Block::blocks, Heads, int64(4) * Keys * Width> items(Batch);
  int group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    queryRing.init();
    ring.init();
  }
  __syncthreads();

  if (group == Groups) {
    cedeRegisters<Groups>();
    Announcer announcer;
    while (items.next(true)) {
      Block block(mask, items.block);
      int head = items.head, batch = items.batch, keyHead = head / (Heads / KeyHeads);
      queryRing.awaitEmpty(announcer);
      for (int i = max(0, -block.firstTile); i < Groups; ++i) {
        int first = (block.firstTile + i) * kTile;
        bf16 *to = shared + i * 3 * size;
        fetchRows<Width>(to, Q::at(q, batch, first, head), Q::row, Queries - first);
        fetchRows<Width>(to + size, G::at(dO, batch, first, head), G::row, Queries - first);
        fetchRows<Width>(to + 2 * size, O::at(o, batch, first, head), O::row, Queries - first);
      }
      announcer.started(queryRing.full(0));
      queryRing.next();
      const bf16 *kAt = K::at(k, batch, 0, keyHead), *vAt = V::at(v, batch, 0, keyHead);
      for (int key = block.begin; key < block.end; key += kTile) {
        ring.awaitEmpty(announcer);
        bf16 *to = tiles + ring.stage * 2 * size;
        fetchRows<Width>(to, kAt + key * K::row, K::row, Keys - key);
        fetchRows<Width>(to + size, vAt + key * V::row, V::row, Keys - key);
        announcer.started(ring.full(ring.stage));
        ring.next();
      }
    }
    announcer.finish();
    return;
  }

  takeRegisters<Groups>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  float factor = scale * kLog2e;
  while (items.next(true)) {
    Block block(mask, items.block);
    OwnSteps<Queries, Keys> own(mask, block.firstTile + group, block.begin, block.end);
    Rows<Width> queries, gradients;
    const uint32 zero = uint32(items.batch) >> 20;
    float rowLse[2], rowDelta[2] = {0.0f, 0.0f};
    queryRing.awaitFull();
    const bf16 *rows = shared + group * 3 * size;
    queries.load(rows);
    gradients.load(rows + size);
    {
      Rows<Width> outputs;
      outputs.load(rows + 2 * size);
      queryRing.release(0);
      queryRing.next();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int k = 0; k < Width / 16; ++k)
#pragma unroll
          for (int i = half; i < 4; i += 2) {
            uint32 x = gradients.at[k][i], y = outputs.at[k][i];
            rowDelta[half] +=
                widen(bf16(x)) * widen(bf16(y)) + widen(bf16(x >> 16)) * widen(bf16(y >> 16));
          }
        rowDelta[half] = quadSum(rowDelta[half]);
        int in = row + lane / 4 + 8 * half;
        int64 at = (int64(items.batch) * Heads + items.head) * Queries + own.first + in;
        rowLse[half] = in < own.rows ? lse[at] * kLog2e : 0.0f;
        if (lane % 4 == 0 && in < own.rows)
          delta[at] = rowDelta[half];
      }
    }
    float out[Width / 8][4];
    clear(out);
    ring.skip(own.skipped);
    for (int step = 0; step < own.steps; ++step) {
      int key = block.begin + (own.skipped + step) * kTile;
      uint32 keyTile = sharedAddress(tiles + ring.stage * 2 * size);
      float s[kTile / 8][4], g[kTile / 8][4];
      ring.awaitFull();
      beginProducts();
      scores<Width>(s, queries, keyTile);
      commitProducts();
      scores<Width>(g, gradients, keyTile + size * 2);
      commitProducts();
      waitForProducts<1>(s);
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          s[n][i] = exp2Approx(fmaf(s[n][i], factor, -rowLse[i / 2]));
      if (isPartial(mask, own.first, own.rows, key, kTile, Keys)) {
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            int query = own.first + row + lane / 4 + i / 2 * 8, at = key + n * 8 + lane % 4 * 2 + i % 2;
            if (at >= Keys || !mask.sees(query, at))
              s[n][i] = 0.0f;
          }
      }
      waitForProducts<0>(g);
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          g[n][i] = s[n][i] * (g[n][i] - rowDelta[i / 2]) * scale;
      uint32 p[kTile / 16][4];
      packScores(p, g);
      pin(out);
      beginProducts();
      addProduct<Width>(out, p, keyTile);
      commitProducts();
      waitForProducts<0>(out);
      queries.keep(zero);
      gradients.keep(zero);
      ring.release(ring.stage);
      ring.next();
    }
    ring.skip(block.steps() - own.skipped - own.steps);
    storeRows<Width>(DQ::at(dq, items.batch, own.first, items.head), DQ::row, out, 1.0f, 1.0f, row,
                     own.rows);
  }
}

/// dk and dv. Scores are transposed, [key][query], so that both products read them from registers.
/// Narrow rows of keys stay in registers, wide ones in shared memory.
template <int Groups, int Batch, int Width, int Queries, int Keys, int Heads, int KeyHeads, typename Q,
          typename K, typename V, typename G, typename DK, typename DV>
__device__ __forceinline__ void hopperKeyGradients(const bf16 *dO, const bf16 *q, const bf16 *k,
                                                   const bf16 *v, const float *lse, const float *delta,
                                                   bf16 *dk, bf16 *dv, Mask mask, float scale) {
  extern __shared__ __align__(16) bf16 shared[];
  constexpr int size = kTile * Width, stages = 4;
  constexpr int blockRows = kTile * Groups, blocks = (Keys + blockRows - 1) / blockRows;
  constexpr int headsOfKey = Heads / KeyHeads;
  constexpr bool inRegisters = Width <= 80;
  bf16 *tiles = shared + 2 * Groups * size; // after k and v of each warpgroup
  float *statistics = reinterpret_cast<float *>(tiles + 2 * stages * size); // lse, delta of a stage
  Ring<Groups, 1> keyRing(statistics + 2 * stages * kTile);
  Ring<Groups, stages> ring(statistics + 2 * stages * kTile + 4);
  Items<blocks, KeyHeads, int64(4) * Queries * Width * headsOfKey> items(Batch);
  int group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    keyRing.init();
    ring.init();
  }
  __syncthreads();
  // The queries of a block of keys, from its first to its last.
  auto rangeOf = [&](int block, int &begin) {
    int first = block * blockRows, last = min(first + blockRows, Keys) - 1;
    begin = mask.firstQuery(first) / kTile * kTile;
    return max(0, mask.endQuery(last, Queries) - begin + kTile - 1) / kTile;
  };

  if (group == Groups) {
    cedeRegisters<Groups>();
    Announcer announcer;
    while (items.next(false)) {
      int begin, steps = rangeOf(items.block, begin), batch = items.batch, keyHead = items.head;
      keyRing.awaitEmpty(announcer);
      for (int i = 0; i < Groups; ++i) {
        int first = items.block * blockRows + i * kTile;
        if (first < Keys) {
          bf16 *to = shared + i * 2 * size;
          fetchRows<Width>(to, K::at(k, batch, first, keyHead), K::row, Keys - first);
          fetchRows<Width>(to + size, V::at(v, batch, first, keyHead), V::row, Keys - first);
        }
      }
      announcer.started(keyRing.full(0));
      keyRing.next();
      for (int head = keyHead * headsOfKey; head < (keyHead + 1) * headsOfKey; ++head)
        for (int step = 0; step < steps; ++step) {
          int query = begin + step * kTile, in = threadIdx.x % kTile;
          ring.awaitEmpty(announcer);
          bf16 *to = tiles + ring.stage * 2 * size;
          fetchRows<Width>(to, Q::at(q, batch, query, head), Q::row, Queries - query);
          fetchRows<Width>(to + size, G::at(dO, batch, query, head), G::row, Queries - query);
          bool exists = query + in < Queries, second = threadIdx.x % 128 >= kTile;
          int64 at = (int64(batch) * Heads + head) * Queries + query;
          copyNumber(statistics + (ring.stage * 2 + second) * kTile + in,
                     (second ? delta : lse) + at + (exists ? in : 0), exists);
          announcer.started(ring.full(ring.stage));
          ring.next();
        }
    }
    announcer.finish();
    return;
  }

  takeRegisters<Groups>();
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  float factor = scale * kLog2e;
  while (items.next(false)) {
    int begin, all = rangeOf(items.block, begin);
    int first = items.block * blockRows + group * kTile, rows = min(kTile, Keys - first);
    int skipped = 0, steps = 0;
    if (rows > 0) {
      skipped = (mask.firstQuery(first) - begin) / kTile;
      steps = max(0, (mask.endQuery(first + rows - 1, Queries) - begin + kTile - 1) / kTile - skipped);
    }
    Rows<inRegisters ? Width : 16> keys, values;
    const uint32 zero = uint32(items.batch) >> 20;
    const bf16 *ownKeys = shared + group * 2 * size;
    keyRing.awaitFull();
    if constexpr (inRegisters) {
      keys.load(ownKeys);
      values.load(ownKeys + size);
      keyRing.release(0);
    }
    float dkOut[Width / 8][4], dvOut[Width / 8][4];
    clear(dkOut);
    clear(dvOut);
    for (int head = 0; head < headsOfKey; ++head) {
      ring.skip(skipped);
      for (int step = 0; step < steps; ++step) {
        int query = begin + (skipped + step) * kTile;
        uint32 qTile = sharedAddress(tiles + ring.stage * 2 * size), gTile = qTile + size * 2;
        const float *columns = statistics + ring.stage * 2 * kTile + lane % 4 * 2;
        float p[kTile / 8][4], g[kTile / 8][4];
        ring.awaitFull();
        beginProducts();
        if constexpr (inRegisters)
          scores<Width>(p, keys, qTile);
        else
          scores<Width>(p, sharedAddress(ownKeys), qTile);
        commitProducts();
        if constexpr (inRegisters)
          scores<Width>(g, values, gTile);
        else
          scores<Width>(g, sharedAddress(ownKeys + size), gTile);
        commitProducts();
        waitForProducts<1>(p);
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            p[n][i] = exp2Approx(fmaf(p[n][i], factor, -columns[n * 8 + i % 2] * kLog2e));
        if (query + kTile > Queries || rows < kTile ||
            isPartial(mask, query, min(kTile, Queries - query), first, kTile, Keys)) {
#pragma unroll
          for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              int at = query + n * 8 + lane % 4 * 2 + i % 2, key = row + lane / 4 + i / 2 * 8;
              if (at >= Queries || key >= rows || !mask.sees(at, first + key))
                p[n][i] = 0.0f;
            }
        }
        uint32 packed[kTile / 16][4], packedG[kTile / 16][4];
        packScores(packed, p);
        waitForProducts<0>(g);
        pin(dvOut);
        beginProducts();
        addProduct<Width>(dvOut, packed, gTile);
        commitProducts();
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            g[n][i] = p[n][i] * (g[n][i] - columns[kTile + n * 8 + i % 2]) * scale;
        packScores(packedG, g);
        pin(dkOut);
        beginProducts();
        addProduct<Width>(dkOut, packedG, qTile);
        commitProducts();
        waitForProducts<0>(dkOut);
        pin(dvOut);
        if constexpr (inRegisters) {
          keys.keep(zero);
          values.keep(zero);
        }
        ring.release(ring.stage);
        ring.next();
      }
      ring.skip(all - skipped - steps);
    }
    if constexpr (!inRegisters)
      keyRing.release(0);
    keyRing.next();
    if (rows > 0) {
      storeRows<Width>(DK::at(dk, items.batch, first, items.head), DK::row, dkOut, 1.0f, 1.0f, row, rows);
      storeRows<Width>(DV::at(dv, items.batch, first, items.head), DV::row, dvOut, 1.0f, 1.0f, row, rows);
    }
  }
}

#endif // __CUDA_ARCH_FEAT_SM90_ALL
