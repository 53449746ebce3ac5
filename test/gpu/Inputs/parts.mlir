// Twelve layers of one input: their gradients are one matmul, with rows of twelve parameters.
hydra.model @parts version 1 {
  hydra.symbols dims(D)
  hydra.preset @wide {D = 1024}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @w1 [D, D] init = normal(0.3)
  hydra.param @w2 [D, D] init = normal(0.3)
  hydra.param @w3 [D, D] init = normal(0.3)
  hydra.param @w4 [D, D] init = normal(0.3)
  hydra.param @w5 [D, D] init = normal(0.3)
  hydra.param @w6 [D, D] init = normal(0.3)
  hydra.param @w7 [D, D] init = normal(0.3)
  hydra.param @w8 [D, D] init = normal(0.3)
  hydra.param @w9 [D, D] init = normal(0.3)
  hydra.param @w10 [D, D] init = normal(0.3)
  hydra.param @w11 [D, D] init = normal(0.3)
  hydra.param @w12 [D, D] init = normal(0.3)
  hydra.def @of(%x, %w) = mean(silu(linear(%x, %w)), axes = [0, 1])
  hydra.entry @loss(%x: [B, D] f32) dims(B) {
    %first = hydra.let @of(%x, @w1) + @of(%x, @w2) + @of(%x, @w3) + @of(%x, @w4) + @of(%x, @w5) + @of(%x, @w6)
    %loss = hydra.let %first + @of(%x, @w7) + @of(%x, @w8) + @of(%x, @w9) + @of(%x, @w10) + @of(%x, @w11) + @of(%x, @w12)
    hydra.return loss = %loss
  }
}
