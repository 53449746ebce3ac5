// Causal attention and as little as possible around it, in three forms: the operation, which hydrac compiles to kernels that
// never hold the scores or, with --attention=naive, to ones that keep the weights; the softmax of a matrix; and exponents
// over their sum, where exponents and weights wait for the backward pass. The last two are not to be raised to the first.
hydra.model @attention version 1 {
  hydra.symbols dims(D, V, H, Hk, hd) choices(form = attention of (attention, softmax, exponents))
  hydra.preset @one {D = 16, V = 64, H = 1, Hk = 1, hd = 64}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0)
  hydra.param @wqkv [(H + 2 * Hk) * hd, D] init = normal(0.2)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @out [V, H * hd] init = normal(0.2)

  // Scores of the tokens up to each one [B, H, S, S].
  hydra.def @scores(%q, %k) {
    %a, %b = hydra.let transpose(%q, [0, 2, 1, 3]), transpose(%k, [0, 2, 1, 3])
    %s = hydra.let matmul(%a, %b, transpose_b) * (1 / sqrt(hd))
    %row, %column = hydra.let iota(axis = 2, shape = [1, 1, S, 1], dtype = f32), iota(axis = 3, shape = [1, 1, 1, S], dtype = f32)
    %masked = hydra.let select(%column <= %row, %s, -1.0e30)
    hydra.yield %masked
  }
  hydra.def @weights(%s) = when(form == softmax, softmax(%s), @shares(exp(%s)))
  hydra.def @shares(%e) = %e / sum(%e, 3)

  hydra.def @mix(%q, %k, %v) =
      when(form == attention, attention(%q, %k, %v, scale = 1 / sqrt(hd), causal),
           transpose(matmul(@weights(@scores(%q, %k)), transpose(%v, [0, 2, 1, 3])), [0, 2, 1, 3]))

  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %qkv = hydra.let linear(embedding(%tokens, @e), @wqkv)
    %q = hydra.let reshape(slice(%qkv, axis = 2, start = 0, size = H * hd), [B, S, H, hd])
    %k = hydra.let reshape(slice(%qkv, axis = 2, start = H * hd, size = Hk * hd), [B, S, Hk, hd])
    %v = hydra.let reshape(slice(%qkv, axis = 2, start = (H + Hk) * hd, size = Hk * hd), [B, S, Hk, hd])
    %y = hydra.let reshape(@mix(%q, %k, %v), [B, S, H * hd])
    %loss = hydra.let linear_cross_entropy(%y, @out, %labels)
    hydra.return loss = %loss
  }
}
