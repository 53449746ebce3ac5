// A class for each sequence.
hydra.model @classes version 1 {
  hydra.symbols dims(D = 8, V = 256)
  hydra.group @default sgd()
  hydra.param @e [V, D] init = normal(1.0)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(mean(embedding(%tokens, @e), axes = [1]), @e, %labels)
    hydra.return loss = %loss
  }
}
