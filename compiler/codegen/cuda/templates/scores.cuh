// How attention makes scores of products of queries and keys, at compile time: scaled, or under a cap too. Kernels keep
// `bounded` products, of which a score is `factor` times as much. For powers of 2 scale and cap are log2 e as large.

/// scale x.
struct Scaled {
  float scale;

  static constexpr bool capped = false;
  __device__ __forceinline__ float factor() const { return scale; }
  __device__ __forceinline__ float bounded(float x) const { return x; }
  __device__ __forceinline__ float boundedExactly(float x) const { return x; }
  /// The derivative of a score by its product.
  __device__ __forceinline__ float slope(float) const { return scale; }
};

/// cap tanh(scale x / cap).
struct Capped {
  float scale, cap;

  static constexpr bool capped = true;
  __device__ __forceinline__ float factor() const { return cap; }
  /// The tangent as 1 - 2 / (1 + e^2y), to 2^-22. `tanh.approx.f32` would be one instruction instead of two, but its
  /// error of 2^-11 is 0.024 under a cap of 50, by which weights would be off six times as far as by their rounding to
  /// bf16.
  __device__ __forceinline__ float bounded(float x) const {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + exp2Approx(x * (2.0f * kLog2e * scale / cap))));
    return fmaf(-2.0f, inverse, 1.0f);
  }
  /// As f32 can have it, for kernels without tensor cores.
  __device__ __forceinline__ float boundedExactly(float x) const { return tanhf(x * (scale / cap)); }
  __device__ __forceinline__ float slope(float tangent) const { return fmaf(-scale * tangent, tangent, scale); }
};
