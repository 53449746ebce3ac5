// A model whose held-out loss is of tokens that nothing looks up.
hydra.model @seen version 1 {
  hydra.symbols dims(D = 2, V = 256)
  hydra.preset @tiny {D = 2}
  hydra.group @default sgd(momentum = 0.0, wd = 0.0)
  hydra.param @tok_emb [V, D] init = normal(0.02)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(embedding(%tokens, @tok_emb), @tok_emb, %labels)
    hydra.return loss = %loss
  }
  hydra.entry @eval(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %spaces = hydra.let cast(%tokens == 32, to = f32)
    %x = hydra.let reshape(%spaces, [B, S, 1]) * reshape(slice(@tok_emb, axis = 0, start = 0, size = 1), [1, 1, D])
    %loss = hydra.let linear_cross_entropy(%x, @tok_emb, %labels)
    hydra.return loss = %loss
  }
}
