// Looks up ids of which some are outside of the table, and trains it.
hydra.model @m version 1 {
  hydra.group @default sgd()
  hydra.param @e [8, 4] init = normal(1.0)
  hydra.entry @loss(%tokens: [B, S] i32) dims(B, S) {
    %inside = hydra.let embedding(%tokens, @e)
    %above = hydra.let embedding(%tokens + 1, @e)
    %loss = hydra.let mean(%inside, axes = [0, 1, 2]) + mean(%above, axes = [0, 1, 2])
    hydra.return loss = %loss
  }
}
