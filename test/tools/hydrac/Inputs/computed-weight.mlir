// A linear layer by rows of length 1.
hydra.model @unit_rows version 1 {
  hydra.symbols dims(D = 64, V = 64)
  hydra.group @default sgd()
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [D, D] init = normal(1.0)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %unit = hydra.let @w * rsqrt(sum(@w * @w, 1) + 1.0e-6)
    %loss = hydra.let linear_cross_entropy(linear(embedding(%tokens, @e), %unit), @e, %labels)
    hydra.return loss = %loss
  }
}
