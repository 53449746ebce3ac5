// Predicts each of its tokens but the first.
hydra.model @own_labels version 1 {
  hydra.symbols dims(D = 8, V = 256)
  hydra.group @default sgd()
  hydra.param @e [V, D] init = normal(1.0)
  hydra.entry @loss(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let slice(embedding(%tokens, @e), axis = 1, start = 0, size = S - 1)
    %loss = hydra.let linear_cross_entropy(%x, @e, slice(%tokens, axis = 1, start = 1, size = S - 1))
    hydra.return loss = %loss
  }
}
