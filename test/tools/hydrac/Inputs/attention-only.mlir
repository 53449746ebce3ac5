// Attention and as little as possible around it: one head over embedded tokens.
hydra.model @attention_only version 1 {
  hydra.symbols dims(D, V)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [3 * D, D] init = normal(0.25)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %e = hydra.use @e
    %w = hydra.use @w
    %x = hydra.embedding %tokens, %e
    %qkv = hydra.linear %x, %w
    %q0 = hydra.slice %qkv axis = 2 start = 0 size = D
    %k0 = hydra.slice %qkv axis = 2 start = D size = D
    %v0 = hydra.slice %qkv axis = 2 start = 2 * D size = D
    %q = hydra.reshape %q0 shape = [B, S, 1, D]
    %k = hydra.reshape %k0 shape = [B, S, 1, D]
    %v = hydra.reshape %v0 shape = [B, S, 1, D]
    %o = hydra.attention %q, %k, %v scale = 1 / sqrt(D) causal
    %y = hydra.reshape %o shape = [B, S, D]
    %loss = hydra.linear_cross_entropy %y, %e, %labels
    hydra.return loss = %loss
  }
}
