hydra.model @names version 1 {
  hydra.symbols dims(D = 4, V = 13)
  hydra.group @default sgd(momentum = 0.5)
  hydra.param @embedding [V, D] init = normal(0.5)
  hydra.state @name [V, D] init = zeros
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @embedding) + embedding(%tokens, @name)
    %loss = hydra.let linear_cross_entropy(%x, @embedding, %labels)
    hydra.return loss = %loss
  }
}
