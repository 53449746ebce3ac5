// flags: --seed=11
// expects: right
// Scans whose slices have fewer rows than a block of a GPU has warps, and long ones: a matrix that is scaled as a whole, three
// rows that are mixed and reduced, and five of a length that lanes do not divide up.
hydra.model @rows version 1 {
  hydra.symbols dims(B = 2, S = 16, M = 16, N = 48, C = 1024, E = 1100)
  hydra.param @keys    [B, S, 8, N] init = normal(0.3)
  hydra.param @values  [B, S, 8, M] init = normal(0.3)
  hydra.param @left    [B, S, 1, 1] init = normal(0.5)
  hydra.param @scales  [B, S, 3, 1] init = normal(0.5)
  hydra.param @begin   [B, 3, C]    init = normal(0.5)
  hydra.param @mix     [B, 3, 3]    init = normal(0.3)
  hydra.param @factors [B, S, 5, 1] init = normal(0.5)
  hydra.param @first   [B, 5, E]    init = normal(0.5)
  hydra.entry @loss() {
    %keys = hydra.use @keys
    %values = hydra.use @values
    %left = hydra.use @left
    %scales = hydra.use @scales
    %begin = hydra.use @begin
    %mix = hydra.use @mix
    %factors = hydra.use @factors
    %first = hydra.use @first
    %nothing = hydra.constant value = 0.25 shape = [B, M, N]
    %read, %matrix = hydra.scan axis = 1 chunk = 1 over(%k = %keys, %v = %values, %l = %left) carry(%s = %nothing) {
      %k1, %v1 = hydra.let reshape(%k, [B, 8, N]), reshape(%v, [B, 8, M])
      %kept = hydra.let %s * exp(reshape(%l, [B, 1, 1]))
      %next = hydra.let matmul(%v1, %k1, %kept, transpose_a, dtype = f32)
      %out = hydra.let reshape(matmul(%k1, %next, transpose_b, dtype = f32), [B, 1, 8, M])
      hydra.yield %out, %next
    }
    %most, %rows = hydra.scan axis = 1 chunk = 1 over(%x = %scales) carry(%s = %begin) {
      %x1 = hydra.let reshape(%x, [B, 3, 1])
      %soft = hydra.let softmax(%s)
      %next = hydra.let matmul(%mix, %s, dtype = f32) * exp(%x1) + %soft * %x1
      %largest = hydra.let reshape(sum(%next, 2), [B, 1, 3])
      hydra.yield %largest, %next
    }
    %sums, %last = hydra.scan axis = 1 chunk = 1 over(%x = %factors) carry(%s = %first) {
      %x1 = hydra.let reshape(%x, [B, 5, 1])
      %length = hydra.let rsqrt(sum(%s * %s, 2) + 1.0)
      %next = hydra.let %s * %length * 4.0 + %s * %x1 * 0.5
      %out = hydra.let reshape(sum(%next, 2), [B, 1, 5])
      hydra.yield %out, %next
    }
    %a = hydra.let sum(%read * %read, axes = [0, 1, 2, 3]) + sum(%matrix * %matrix, axes = [0, 1, 2])
    %b = hydra.let sum(%most * %most, axes = [0, 1, 2]) + sum(%rows * %rows, axes = [0, 1, 2])
    %c = hydra.let sum(%sums * %sums, axes = [0, 1, 2]) + sum(%last * %last, axes = [0, 1, 2])
    %loss = hydra.let %a + %b * 0.1 + %c * 0.1
    hydra.return loss = %loss, read = %read, most = %most, sums = %sums
  }
}
