// What the templates share: bf16 without headers, and the warp's matrix instructions.

typedef unsigned short bf16; // its bits
typedef unsigned int uint32;
typedef long long int64;

__device__ __forceinline__ float widen(bf16 x) { return __uint_as_float(uint32(x) << 16); }
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ void assign(float &to, float x) { to = x; }
__device__ __forceinline__ void assign(bf16 &to, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to) : "f"(x));
}
/// Two numbers as bf16, `low` in the low half.
__device__ __forceinline__ uint32 pack(float low, float high) {
  uint32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ __forceinline__ float exp2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
constexpr float kLog2e = 1.44269504f;
#define INFINITY __int_as_float(0x7f800000)

__device__ __forceinline__ uint32 sharedAddress(const void *p) {
  return static_cast<uint32>(__cvta_generic_to_shared(p));
}

/// Four 8 x 8 matrices of bf16; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void loadMatrices(uint32 (&r)[4], const bf16 *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(row)));
}
__device__ __forceinline__ void loadTransposed(uint32 (&r)[4], const bf16 *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(row)));
}
/// c += a b: a 16 x 16, b 16 x 8, c 16 x 8 in f32.
__device__ __forceinline__ void multiply(float (&c)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// 16 bytes from global to shared memory, zeros where `exists` is false.
__device__ __forceinline__ void copyAsync(bf16 *to, const bf16 *from, bool exists) {
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
