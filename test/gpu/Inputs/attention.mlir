// Attention in all forms, each on its own heads: whole, causal, in chunks, in windows, in both, under a cap, and in windows
// under a cap.
hydra.model @attention version 1 {
  // `gain` scales the loss, so that gradients of scores, each a mean over all tokens, are in the range of f16.
  hydra.symbols dims(D, V, H, Hk, hd, C, W) reals(gain = 1.0, cap = 2.0)
  hydra.preset @narrow {D = 64, V = 97, H = 4, Hk = 2, hd = 16, C = 48, W = 40}
  hydra.preset @heads  {D = 64, V = 97, H = 4, Hk = 1, hd = 64, C = 128, W = 100}
  hydra.preset @eighty {D = 64, V = 97, H = 2, Hk = 2, hd = 80, C = 100, W = 64}
  hydra.preset @wide   {D = 64, V = 97, H = 2, Hk = 1, hd = 128, C = 64, W = 150}
  hydra.preset @ninety_six {D = 64, V = 97, H = 2, Hk = 1, hd = 96, C = 64, W = 150}
  hydra.preset @widest {D = 64, V = 97, H = 2, Hk = 1, hd = 256, C = 64, W = 150}
  hydra.preset @odd    {D = 64, V = 97, H = 2, Hk = 1, hd = 40, C = 48, W = 40}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0)
  hydra.param @wq [7 * H * hd, D] init = normal(0.2)
  hydra.param @wk [7 * Hk * hd, D] init = normal(0.2)
  hydra.param @wv [7 * Hk * hd, D] init = normal(0.2)

  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @out [V, 7 * H * hd] init = normal(0.2)

  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %e = hydra.use @e
    %out = hydra.use @out
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %x = hydra.embedding %tokens, %e
    %q0 = hydra.linear %x, %wq
    %k0 = hydra.linear %x, %wk
    %v0 = hydra.linear %x, %wv
    %q = hydra.reshape %q0 shape = [B, S, 7 * H, hd]
    %k = hydra.reshape %k0 shape = [B, S, 7 * Hk, hd]
    %v = hydra.reshape %v0 shape = [B, S, 7 * Hk, hd]
    %q1 = hydra.slice %q axis = 2 start = 0 * H size = H
    %k1 = hydra.slice %k axis = 2 start = 0 * Hk size = Hk
    %v1 = hydra.slice %v axis = 2 start = 0 * Hk size = Hk
    %o1 = hydra.attention %q1, %k1, %v1 scale = 1 / sqrt(hd)
    %q2 = hydra.slice %q axis = 2 start = 1 * H size = H
    %k2 = hydra.slice %k axis = 2 start = 1 * Hk size = Hk
    %v2 = hydra.slice %v axis = 2 start = 1 * Hk size = Hk
    %o2 = hydra.attention %q2, %k2, %v2 scale = 1 / sqrt(hd) causal
    %q3 = hydra.slice %q axis = 2 start = 2 * H size = H
    %k3 = hydra.slice %k axis = 2 start = 2 * Hk size = Hk
    %v3 = hydra.slice %v axis = 2 start = 2 * Hk size = Hk
    %o3 = hydra.attention %q3, %k3, %v3 scale = 1 / sqrt(hd) causal chunk = C
    %q4 = hydra.slice %q axis = 2 start = 3 * H size = H
    %k4 = hydra.slice %k axis = 2 start = 3 * Hk size = Hk
    %v4 = hydra.slice %v axis = 2 start = 3 * Hk size = Hk
    %o4 = hydra.attention %q4, %k4, %v4 scale = 1 / sqrt(hd) causal window = W
    %q5 = hydra.slice %q axis = 2 start = 4 * H size = H
    %k5 = hydra.slice %k axis = 2 start = 4 * Hk size = Hk
    %v5 = hydra.slice %v axis = 2 start = 4 * Hk size = Hk
    %o5 = hydra.attention %q5, %k5, %v5 scale = 1 / sqrt(hd) causal chunk = C window = W
    %q6 = hydra.slice %q axis = 2 start = 5 * H size = H
    %k6 = hydra.slice %k axis = 2 start = 5 * Hk size = Hk
    %v6 = hydra.slice %v axis = 2 start = 5 * Hk size = Hk
    %o6 = hydra.attention %q6, %k6, %v6 scale = 1 / sqrt(hd) causal cap = cap
    %q7 = hydra.slice %q axis = 2 start = 6 * H size = H
    %k7 = hydra.slice %k axis = 2 start = 6 * Hk size = Hk
    %v7 = hydra.slice %v axis = 2 start = 6 * Hk size = Hk
    %o7 = hydra.attention %q7, %k7, %v7 scale = 1 / sqrt(hd) causal cap = cap window = W
    %o = hydra.concat %o1, %o2, %o3, %o4, %o5, %o6, %o7 axis = 2
    %y = hydra.reshape %o shape = [B, S, 7 * H * hd]
    %mean = hydra.linear_cross_entropy %y, %out, %labels
    %loss = hydra.let gain * %mean
    hydra.return loss = %loss
  }
}
