// Of each token what it is and who says it.
hydra.model @several version 1 {
  hydra.symbols dims(D = 8, V = 256)
  hydra.group @default sgd()
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @who [V, D] init = normal(1.0)
  hydra.entry @loss(%tokens: [B, S] i32, %speakers: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(embedding(%tokens, @e) + embedding(%speakers, @who), @e, %labels)
    hydra.return loss = %loss
  }
}
