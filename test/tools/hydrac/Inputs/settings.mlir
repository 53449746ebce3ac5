// Presets that say how they are trained, and one that does not.
hydra.model @settings version 1 {
  hydra.symbols dims(D, V = 11)
  hydra.preset @all {D = 8}
      settings {batch = 2, seq = 8, accum = 3, clip = 1.5, lr = 3.0e-4, min_lr = 3.0e-5, schedule = wsd, warmup = 4,
                stable = 6, schedule_steps = 20}
  hydra.preset @some {D = 8} settings {schedule = cosine, clip = 1}
  hydra.preset @none {D = 8}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [D, D] init = normal(0.25)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let linear(embedding(%tokens, @e), @w)
    %loss = hydra.let linear_cross_entropy(%x, @e, %labels)
    hydra.return loss = %loss
  }
}
