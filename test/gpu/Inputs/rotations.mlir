// Attention whose queries and keys are rotated, each on its own heads: by pairs side by side and half a head apart, by the
// place in the row, in periods of it, and by given positions; of queries alone; whole, in windows and under a cap.
hydra.model @rotations version 1 {
  // `gain` scales the loss, so that gradients of scores are in the range of f16.
  hydra.symbols dims(D, V, H, Hk, hd, P = 24, W = 40) reals(gain = 1.0, cap = 2.0, base = 1.0e4)
  hydra.preset @narrow {D = 64, V = 97, H = 4, Hk = 2, hd = 16}
  hydra.preset @heads  {D = 64, V = 97, H = 4, Hk = 1, hd = 64}
  hydra.preset @eighty {D = 64, V = 97, H = 2, Hk = 2, hd = 80}
  hydra.preset @wide   {D = 64, V = 97, H = 2, Hk = 1, hd = 128}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @places [V, 1] init = normal(1.0e3)
  hydra.param @out [V, 5 * H * hd] init = normal(0.2)
  hydra.param @wq1 [H * hd, D] init = normal(0.2)
  hydra.param @wk1 [Hk * hd, D] init = normal(0.2)
  hydra.param @wv1 [Hk * hd, D] init = normal(0.2)
  hydra.param @wq2 [H * hd, D] init = normal(0.2)
  hydra.param @wk2 [Hk * hd, D] init = normal(0.2)
  hydra.param @wv2 [Hk * hd, D] init = normal(0.2)
  hydra.param @wq3 [H * hd, D] init = normal(0.2)
  hydra.param @wk3 [Hk * hd, D] init = normal(0.2)
  hydra.param @wv3 [Hk * hd, D] init = normal(0.2)
  hydra.param @wq4 [H * hd, D] init = normal(0.2)
  hydra.param @wk4 [Hk * hd, D] init = normal(0.2)
  hydra.param @wv4 [Hk * hd, D] init = normal(0.2)
  hydra.param @wq5 [H * hd, D] init = normal(0.2)
  hydra.param @wk5 [Hk * hd, D] init = normal(0.2)
  hydra.param @wv5 [Hk * hd, D] init = normal(0.2)

  hydra.def @queries(%x) = reshape(%x, [B, S, H, hd])
  hydra.def @keys(%x) = reshape(%x, [B, S, Hk, hd])

  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %at = hydra.let reshape(detach(embedding(%tokens, @places)), [B, S])
    %q1, %k1, %v1 = hydra.let @queries(linear(%x, @wq1)), @keys(linear(%x, @wk1)), @keys(linear(%x, @wv1))
    %o1 = hydra.let attention(rope(%q1, base = base), rope(%k1, base = base), %v1, scale = 1 / sqrt(hd), causal)
    %q2, %k2, %v2 = hydra.let @queries(linear(%x, @wq2)), @keys(linear(%x, @wk2)), @keys(linear(%x, @wv2))
    %o2 = hydra.let attention(rope(%q2, base = base, half_split, period = P), rope(%k2, base = base, half_split, period = P), %v2,
                              scale = 1 / sqrt(hd), cap = cap, window = W, causal)
    %q3, %k3, %v3 = hydra.let @queries(linear(%x, @wq3)), @keys(linear(%x, @wk3)), @keys(linear(%x, @wv3))
    %o3 = hydra.let attention(rope(%q3, %at, base = base), rope(%k3, %at, base = base), %v3, scale = 1 / sqrt(hd))
    %q4, %k4, %v4 = hydra.let @queries(linear(%x, @wq4)), @keys(linear(%x, @wk4)), @keys(linear(%x, @wv4))
    %o4 = hydra.let attention(rope(%q4, base = base, half_split), %k4, %v4, scale = 1 / sqrt(hd), causal)
    %q5, %k5, %v5 = hydra.let @queries(linear(%x, @wq5)), @keys(linear(%x, @wk5)), @keys(linear(%x, @wv5))
    %o5 = hydra.let attention(rope(%q5, base = base), rope(%k5, %at, base = base, period = P), %v5, scale = 1 / sqrt(hd), causal)
    %y = hydra.let reshape(concat(%o1, %o2, %o3, %o4, %o5, axis = 2), [B, S, 5 * H * hd])
    %loss = hydra.let gain * linear_cross_entropy(%y, @out, %labels)
    hydra.return loss = %loss
  }
}
