// Causal attention and as little as possible around it.
hydra.model @attention version 1 {
  hydra.symbols dims(D, V, H, Hk, hd)
  hydra.preset @one {D = 16, V = 64, H = 1, Hk = 1, hd = 64}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0)
  hydra.param @wqkv [(H + 2 * Hk) * hd, D] init = normal(0.2)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @out [V, H * hd] init = normal(0.2)

  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %e = hydra.use @e
    %wqkv = hydra.use @wqkv
    %out = hydra.use @out
    %x = hydra.embedding %tokens, %e
    %qkv = hydra.linear %x, %wqkv
    %q0 = hydra.slice %qkv axis = 2 start = 0 size = H * hd
    %k0 = hydra.slice %qkv axis = 2 start = H * hd size = Hk * hd
    %v0 = hydra.slice %qkv axis = 2 start = (H + Hk) * hd size = Hk * hd
    %q = hydra.reshape %q0 shape = [B, S, H, hd]
    %k = hydra.reshape %k0 shape = [B, S, Hk, hd]
    %v = hydra.reshape %v0 shape = [B, S, Hk, hd]
    %o = hydra.attention %q, %k, %v scale = 1 / sqrt(hd) causal
    %y = hydra.reshape %o shape = [B, S, H * hd]
    %loss = hydra.linear_cross_entropy %y, %out, %labels
    hydra.return loss = %loss
  }
}
