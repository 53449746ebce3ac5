// A choice of forms of the same: one matmul, or the sum of two with half of their operands.
hydra.model @forms version 1 {
  hydra.symbols dims(D = 64, V = 11) choices(form = twice of (twice, once, auto))
  hydra.preset @open {form = auto}
  hydra.preset @closed {form = once}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [D, D] init = normal(0.25)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %y = hydra.let when(form == once, linear(%x, @w), linear(%x * 0.5, @w) + linear(%x, @w) * 0.5)
    %loss = hydra.let linear_cross_entropy(%y, @e, %labels)
    hydra.return loss = %loss
  }
}
