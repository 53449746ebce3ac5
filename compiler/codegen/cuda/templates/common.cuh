// What the templates share: floats of 16 and 8 bits without headers, and the warp's matrix instructions.

typedef unsigned short bf16; // its bits
struct f16 {
  unsigned short bits;
};
struct e4m3 {
  unsigned char bits;
};
struct e5m2 {
  unsigned char bits;
};
typedef signed char int8;
typedef short int16;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;

__device__ __forceinline__ float widen(bf16 x) { return __uint_as_float(uint32(x) << 16); }
__device__ __forceinline__ float widen(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(int8 x) { return float(x); }
__device__ __forceinline__ void assign(float &to, float x) { to = x; }
__device__ __forceinline__ void assign(bf16 &to, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to) : "f"(x));
}
__device__ __forceinline__ void assign(f16 &to, float x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}
/// Two numbers as T, `low` in the low half.
template <typename T> __device__ uint32 pack(float low, float high);
template <> __device__ __forceinline__ uint32 pack<bf16>(float low, float high) {
  uint32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
template <> __device__ __forceinline__ uint32 pack<f16>(float low, float high) {
  uint32 both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
/// The same of 8 bits, where the largest number stands for what is beyond it.
template <typename T> __device__ unsigned short packBytes(float low, float high);
#define HYDRA_EIGHT_BITS(T)                                                                        \
  template <> __device__ __forceinline__ unsigned short packBytes<T>(float low, float high) {      \
    unsigned short both;                                                                           \
    asm("cvt.rn.satfinite." #T "x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));           \
    return both;                                                                                   \
  }                                                                                                \
  __device__ __forceinline__ void assign(T &to, float x) {                                         \
    to.bits = static_cast<unsigned char>(packBytes<T>(x, 0.0f));                                   \
  }                                                                                                \
  __device__ __forceinline__ float widen(T x) {                                                    \
    uint32 halves;                                                                                 \
    asm("cvt.rn.f16x2." #T "x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(x.bits))); \
    return widen(f16{static_cast<unsigned short>(halves)});                                        \
  }
#if __CUDA_ARCH__ >= 890
HYDRA_EIGHT_BITS(e4m3)
HYDRA_EIGHT_BITS(e5m2)
#endif
__device__ __forceinline__ uint32 bitsOf(bf16 x) { return x; }
__device__ __forceinline__ uint32 bitsOf(f16 x) { return x.bits; }
/// The numbers whose bits are the low and the high half.
template <typename T> __device__ __forceinline__ float widenLow(uint32 both) {
  return widen(T{static_cast<unsigned short>(both)});
}
template <> __device__ __forceinline__ float widenLow<bf16>(uint32 both) {
  return __uint_as_float(both << 16);
}
template <typename T> __device__ __forceinline__ float widenHigh(uint32 both) {
  return widen(T{static_cast<unsigned short>(both >> 16)});
}
template <> __device__ __forceinline__ float widenHigh<bf16>(uint32 both) {
  return __uint_as_float(both & 0xffff0000u);
}
__device__ __forceinline__ float exp2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// nan where one of the two is nan.
__device__ __forceinline__ float larger(float x, float y) {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ __forceinline__ float smaller(float x, float y) {
  float z;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
/// As generated kernels have them: the angle less whole turns in f64, then the special function unit.
__device__ __forceinline__ void sineAndCosine(double angle, float &sine, float &cosine) {
  constexpr double magic = 0x1.8p52; // adding it rounds to an integer
  const double turns = __dsub_rn(__fma_rn(angle, 0x1.45f306dc9c883p-3, magic), magic);
  const float rest = float(__fma_rn(turns, -0x1.921fb54442d18p2, angle));
  asm("sin.approx.f32 %0, %1;" : "=f"(sine) : "f"(rest));
  asm("cos.approx.f32 %0, %1;" : "=f"(cosine) : "f"(rest));
}
constexpr float kLog2e = 1.44269504f;
#define INFINITY __int_as_float(0x7f800000)

/// Waits until what is in front of the kernel in its stream has ended, where it was launched before that. Behind
/// `letLaterBegin` of all blocks the next kernel may be launched.
__device__ __forceinline__ void waitForEarlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void letLaterBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// 16 bytes that nobody reads again.
__device__ __forceinline__ uint4 loadOnce(const void *from) {
  uint4 x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

__device__ __forceinline__ uint32 sharedAddress(const void *p) {
  return static_cast<uint32>(__cvta_generic_to_shared(p));
}

/// Four 8 x 8 matrices of 16-bit numbers; lane i gives the address of row i % 8 of matrix i / 8.
template <typename T>
__device__ __forceinline__ void loadMatrices(uint32 (&r)[4], const T *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(row)));
}
template <typename T>
__device__ __forceinline__ void loadTransposed(uint32 (&r)[4], const T *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(row)));
}
/// c += a b: a 16 x 16, b 16 x 8 of T, c 16 x 8 in f32.
template <typename T>
__device__ void multiply(float (&c)[4], const uint32 (&a)[4], uint32 b0, uint32 b1);
#define HYDRA_MULTIPLY(T)                                                                          \
  template <>                                                                                      \
  __device__ __forceinline__ void multiply<T>(float (&c)[4], const uint32 (&a)[4], uint32 b0,      \
                                              uint32 b1) {                                         \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #T "." #T ".f32 "                        \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                  \
  }
HYDRA_MULTIPLY(bf16)
HYDRA_MULTIPLY(f16)

/// 16 bytes from global to shared memory, zeros where `exists` is false.
template <typename T>
__device__ __forceinline__ void copyAsync(T *to, const T *from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAddress(to)), "l"(from),
               "r"(exists ? 16 : 0));
}
/// The same for one number.
__device__ __forceinline__ void copyNumber(float *to, const float *from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(sharedAddress(to)), "l"(from),
               "r"(exists ? 4 : 0));
}
__device__ __forceinline__ void commitCopies() { asm volatile("cp.async.commit_group;"); }
template <int Pending> __device__ __forceinline__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
}

//===-- Barriers in shared memory -------------------------------------------------------------===//

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
/// An arrival, and bytes that are to come before the phase is over.
__device__ __forceinline__ void arriveExpecting(uint32 barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Bytes from global to shared memory, counted by a barrier; a multiple of 16.
__device__ __forceinline__ void copyBulk(uint32 to, const void *from, int bytes, uint32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
