// What kernels for Hopper are made of: matmuls of warpgroups (wgmma) on tiles in shared memory, and a ring
// of tiles that one warpgroup fills and others read.
//
// A tile has 64 rows, or `Rows` where it says so, in blocks of 64 columns: [column / 64][row][column % 64], where the 16-byte pieces of
// a row of 128 bytes are permuted by the row (the 128-byte swizzle of the matmuls). One copy serves
// matmuls along rows and along columns, for every width that is a multiple of 16; a warp copies whole
// lines of memory and meets no bank of shared memory twice.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kTile = 64; // rows of a tile
constexpr int kBlock = 64; // columns of a block of it
constexpr int kBlockBytes = kTile * kBlock * 2;
/// Numbers of a tile in shared memory.
template <int Width, int Rows = kTile> constexpr int kTileSize = (Width + kBlock - 1) / kBlock * Rows * kBlock;

//===-- Matmuls ------------------------------------------------------------------------------===//

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

template <typename T, int N> struct Matmul;
/// c[64 x N] (+)= a[64 x 16] b[16 x N]: a in registers or described, b described, and its sixteen the
/// columns or the rows of a tile. `x0` ... number the operands after c. `set` has c as a result only:
/// were it an operand too, the compiler would keep the numbers before for it.
#define HYDRA_MATMUL(T, N, LIST, OUTPUTS, x0, x1, x2, x3, x4)                                        \
  template <> struct Matmul<T, N> {                                                               \
    static __device__ __forceinline__ void set(float (&c)[N / 8][4], const uint32 (&a)[4],         \
                                               uint64 columns) {                                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                      \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "      \
                   "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}, %" #x4 ", p, 1, 1, 0;\n}"            \
                   : OUTPUTS("=f")                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns));                    \
    }                                                                                              \
    static __device__ __forceinline__ void set(float (&c)[N / 8][4], uint64 a, uint64 columns) {   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                      \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "      \
                   "%" #x0 ", %" #x1 ", p, 1, 1, 0, 0;\n}"                                         \
                   : OUTPUTS("=f")                                                                 \
                   : "l"(a), "l"(columns));                                                        \
    }                                                                                              \
    static __device__ __forceinline__ void add(float (&c)[N / 8][4], const uint32 (&a)[4],         \
                                               uint64 columns) {                                   \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "      \
                   "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}, %" #x4 ", 1, 1, 1, 0;"               \
                   : OUTPUTS("+f")                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns));                    \
    }                                                                                              \
    static __device__ __forceinline__ void add(float (&c)[N / 8][4], uint64 a, uint64 columns) {   \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "      \
                   "%" #x0 ", %" #x1 ", 1, 1, 1, 0, 0;"                                            \
                   : OUTPUTS("+f")                                                                 \
                   : "l"(a), "l"(columns));                                                        \
    }                                                                                              \
    static __device__ __forceinline__ void addRows(float (&c)[N / 8][4], const uint32 (&a)[4],     \
                                                   uint64 rows) {                                  \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST "}, "      \
                   "{%" #x0 ", %" #x1 ", %" #x2 ", %" #x3 "}, %" #x4 ", 1, 1, 1, 1;"               \
                   : OUTPUTS("+f")                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows));                       \
    }                                                                                              \
  };
#define HYDRA_OUTPUTS8(how) HYDRA_O8(how, 0)
#define HYDRA_MATMULS(T)                                                                          \
  HYDRA_MATMUL(T, 16, HYDRA_L8, HYDRA_OUTPUTS8, 8, 9, 10, 11, 12)                                 \
  HYDRA_MATMUL(T, 32, HYDRA_L16, HYDRA_O16, 16, 17, 18, 19, 20)                                   \
  HYDRA_MATMUL(T, 48, HYDRA_L24, HYDRA_O24, 24, 25, 26, 27, 28)                                   \
  HYDRA_MATMUL(T, 64, HYDRA_L32, HYDRA_O32, 32, 33, 34, 35, 36)                                   \
  HYDRA_MATMUL(T, 80, HYDRA_L40, HYDRA_O40, 40, 41, 42, 43, 44)                                   \
  HYDRA_MATMUL(T, 96, HYDRA_L48, HYDRA_O48, 48, 49, 50, 51, 52)                                   \
  HYDRA_MATMUL(T, 112, HYDRA_L56, HYDRA_O56, 56, 57, 58, 59, 60)                                  \
  HYDRA_MATMUL(T, 128, HYDRA_L64, HYDRA_O64, 64, 65, 66, 67, 68)
HYDRA_MATMULS(bf16)
HYDRA_MATMULS(f16)

__device__ __forceinline__ void beginMatmuls() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitMatmuls() {
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
/// Waits until at most `Pending` groups of matmuls run, of which none adds to `c`.
template <int Pending, int N> __device__ __forceinline__ void waitForMatmuls(float (&c)[N][4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  pin(c);
}

/// How a matmul finds what lies `behind` bytes after the beginning of a tile in shared memory: blocks follow each other,
/// eight rows of one take 1024 bytes, and rows are swizzled. Both are multiples of 16, and their sum is an address in shared
/// memory, of which a descriptor has 14 bits: descriptors in a tile differ by constants that are added.
template <int Rows = kTile> __device__ __forceinline__ uint64 describe(uint32 tile, int behind) {
  const uint32 begin = tile >> 4 | Rows * kBlock * 2 >> 4 << 16, high = 1024 >> 4 | 1 << 30;
  return uint64(high) << 32 | begin + (behind >> 4);
}
/// The k-th sixteen columns, or rows, which a matmul sums over.
template <int Rows = kTile> __device__ __forceinline__ uint64 columnsSummed(uint32 tile, int k) {
  return describe<Rows>(tile, k / 4 * (Rows * kBlock * 2) + k % 4 * 32);
}
template <int Rows = kTile> __device__ __forceinline__ uint64 rowsSummed(uint32 tile, int k) {
  return describe<Rows>(tile, k * 2048);
}

/// The rows of a warpgroup as the first operand, from a tile in shared memory.
template <int Width> struct Rows {
  uint32 at[Width / 16][4];

  template <typename T> __device__ __forceinline__ void load(const T *tile) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const T *row = tile + (warp * 16 + lane % 16) * kBlock;
#pragma unroll
    for (int k = 0; k < Width / 16; ++k)
      loadMatrices(at[k], row + k / 4 * kTile * kBlock + ((k % 4 * 2 + lane / 16) ^ lane % 8) * 8);
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

/// c = rows tile^T, of T.
template <typename T, int Width>
__device__ __forceinline__ void scores(float (&c)[kTile / 8][4], const Rows<Width> &rows, uint32 tile) {
  Matmul<T, kTile>::set(c, rows.at[0], columnsSummed(tile, 0));
#pragma unroll
  for (int k = 1; k < Width / 16; ++k)
    Matmul<T, kTile>::add(c, rows.at[k], columnsSummed(tile, k));
}
/// The same with 64 rows in shared memory, and a tile of 8 N.
template <typename T, int Width, int N>
__device__ __forceinline__ void scores(float (&c)[N][4], uint32 rows, uint32 tile) {
  Matmul<T, 8 * N>::set(c, columnsSummed(rows, 0), columnsSummed<8 * N>(tile, 0));
#pragma unroll
  for (int k = 1; k < Width / 16; ++k)
    Matmul<T, 8 * N>::add(c, columnsSummed(rows, k), columnsSummed<8 * N>(tile, k));
}

/// Scores in T as the first operand.
template <typename T, int N>
__device__ __forceinline__ void packScores(uint32 (&to)[N][4], const float (&p)[2 * N][4]) {
#pragma unroll
  for (int k = 0; k < N; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[k][i] = pack<T>(p[2 * k + i / 2][i % 2 * 2], p[2 * k + i / 2][i % 2 * 2 + 1]);
}
/// c += p tile, of 16 N rows.
template <typename T, int Width, int N>
__device__ __forceinline__ void addMatmul(float (&c)[Width / 8][4], const uint32 (&p)[N][4], uint32 tile) {
#pragma unroll
  for (int k = 0; k < N; ++k)
    Matmul<T, Width>::addRows(c, p[k], rowsSummed<16 * N>(tile, k));
}

/// f(x, n, i) for the numbers x = c[n][i] of a thread's part of a tile or of sums.
template <int N, typename F> __device__ __forceinline__ void forEach(float (&c)[N][4], F f) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      f(c[n][i], n, i);
}
template <int N> __device__ __forceinline__ void clear(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      c[n][i] = 0.0f;
}

//===-- Tiles ---------------------------------------------------------------------------------===//

/// Makes what this thread sees in shared memory visible to matmuls.
__device__ __forceinline__ void shareWithMatmuls() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// A warpgroup starts copying `Columns` <= 64 columns of a tile into a block; zeros from row `rows`.
template <int Columns, int Rows = kTile, typename T>
__device__ __forceinline__ void fetchBlock(T *to, const T *from, int64 stride, int rows) {
  constexpr int pieces = Columns / 8, lanes = pieces <= 2 ? 2 : pieces <= 4 ? 4 : 8; // of a row
  constexpr int together = 128 / lanes;                                              // rows
  int piece = threadIdx.x % lanes, row = threadIdx.x % 128 / lanes;
  if (piece >= pieces)
    return;
  to += row * kBlock + (piece ^ row % 8) * 8;
  from += row * stride + piece * 8;
#pragma unroll
  for (int i = 0; i < Rows; i += together, to += together * kBlock, from += together * stride)
    copyAsync(to, from, row + i < rows);
}
/// The same for a tile of `Width` columns.
template <int Width, int Rows = kTile, typename T>
__device__ __forceinline__ void fetchRows(T *to, const T *from, int64 stride, int rows) {
#pragma unroll
  for (int block = 0; block < Width / kBlock; ++block)
    fetchBlock<kBlock, Rows>(to + block * Rows * kBlock, from + block * kBlock, stride, rows);
  if constexpr (Width % kBlock != 0)
    fetchBlock<Width % kBlock, Rows>(to + Width / kBlock * Rows * kBlock, from + Width / kBlock * kBlock, stride, rows);
}

/// Which warpgroup this is, and which warp of it. By a shuffle, so that the compiler knows that all lanes have the same number
/// and computes descriptors once for a warp, in uniform registers.
__device__ __forceinline__ int ownGroup() { return __shfl_sync(~0u, int(threadIdx.x) / 128, 0); }
__device__ __forceinline__ int ownWarp() { return __shfl_sync(~0u, int(threadIdx.x) / 32 % 4, 0); }

/// Registers of the threads that work and of those that fetch; together what a block starts with.
template <int Groups> constexpr int kFewRegisters = Groups == 3 ? 32 : 24;
template <int Groups, int Fetching = kFewRegisters<Groups>> __device__ __forceinline__ void takeRegisters() {
  constexpr int started = Groups == 1 ? 256 : Groups == 2 ? 504 : 512; // of a thread of each warpgroup
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((started - Fetching) / Groups));
}
template <int Groups, int Fetching = kFewRegisters<Groups>> __device__ __forceinline__ void cedeRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Fetching));
}

/// Announces the copies that this thread has started when they have ended. Who waits for the barrier shares them with
/// matmuls itself.
__device__ __forceinline__ void announceCopies(uint32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/// Announces copies in their order, each when the next has been started.
struct Announcer {
  uint32 pending = 0;
  __device__ __forceinline__ void started(uint32 barrier) {
    commitCopies();
    if (pending) {
      waitForCopies<1>();
      shareWithMatmuls();
      arrive(pending);
    }
    pending = barrier;
  }
  __device__ __forceinline__ void finish() {
    waitForCopies<0>();
    shareWithMatmuls();
    if (pending)
      arrive(pending);
    pending = 0;
  }
};

/// Stages that the fetching warpgroup fills and `Groups` warpgroups read, in turn: by matmuls alone, of
/// which one thread of a warp says that they are done, or by every thread for itself.
template <int Groups, int Stages, bool ByThreads> struct Ring {
  uint32 barriers; // of each stage: full, empty
  int stage = 0, phase = 0;

  __device__ __forceinline__ Ring(const void *at) : barriers(sharedAddress(at)) {}
  /// By one thread, before the others begin.
  __device__ __forceinline__ void init() const {
    for (int i = 0; i < Stages; ++i) {
      initBarrier(full(i), 128);
      initBarrier(empty(i), (ByThreads ? 128 : 4) * Groups);
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
  /// At first all are empty: the phase before is over.
  __device__ __forceinline__ void awaitEmpty() const { waitFor(empty(stage), phase ^ 1); }
  /// What has been copied is announced first where this has to wait.
  __device__ __forceinline__ void awaitEmpty(Announcer &announcer) const {
    if (isOver(empty(stage), phase ^ 1))
      return;
    announcer.finish();
    waitFor(empty(stage), phase ^ 1);
  }
  /// A warp has read a stage.
  __device__ __forceinline__ void release(int which) const {
    if constexpr (!ByThreads)
      __syncwarp();
    if (ByThreads || threadIdx.x % 32 == 0)
      arrive(empty(which));
  }
  __device__ __forceinline__ void skip(int steps) {
    for (int i = 0; i < steps; ++i, next()) {
      awaitFull();
      release(stage);
    }
  }
};

#endif // __CUDA_ARCH_FEAT_SM90_ALL
