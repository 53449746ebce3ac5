// The CS336 Transformer: a plain pre-norm decoder with RMSNorm, rotary positions, SwiGLU and an
// output head of its own. models.md section 2.

hydra.model @cs336 version 1 {
  hydra.symbols dims(D, F, L, H, V) reals(rope = 1.0e4, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.999, adam_eps = 1.0e-8, wd = 0.01)
  hydra.derive hd = D / H // width of a head

  hydra.preset @tiny   {D = 64,   F = 192,   L = 2,  H = 4,  V = 97}
  hydra.preset @small  {D = 768,  F = 3072,  L = 12, H = 12, V = 10000}
  hydra.preset @medium {D = 1024, F = 4096,  L = 24, H = 16, V = 10000}
  hydra.preset @large  {D = 1280, F = 5120,  L = 36, H = 20, V = 10000}
  hydra.preset @xl     {D = 1600, F = 6400,  L = 48, H = 25, V = 10000}
  hydra.preset @"2.7B" {D = 2560, F = 10240, L = 32, H = 32, V = 10000}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = trunc_normal(1.0, 3.0)
  hydra.stack @layers[L] {
    hydra.param @ln1 [D]    init = ones
    hydra.param @wq  [D, D] init = trunc_normal(sqrt(2.0 / (D + D)), 3.0)
    hydra.param @wk  [D, D] init = trunc_normal(sqrt(2.0 / (D + D)), 3.0)
    hydra.param @wv  [D, D] init = trunc_normal(sqrt(2.0 / (D + D)), 3.0)
    hydra.param @wo  [D, D] init = trunc_normal(sqrt(2.0 / (D + D)), 3.0)
    hydra.param @ln2 [D]    init = ones
    hydra.param @w1  [F, D] init = trunc_normal(sqrt(2.0 / (D + F)), 3.0) // gate
    hydra.param @w2  [D, F] init = trunc_normal(sqrt(2.0 / (F + D)), 3.0) // down
    hydra.param @w3  [F, D] init = trunc_normal(sqrt(2.0 / (D + F)), 3.0) // up
  }
  hydra.param @ln_final [D]    init = ones
  hydra.param @lm_head  [V, D] init = trunc_normal(sqrt(2.0 / (D + V)), 3.0)

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let rms_norm(%x, @ln1, eps = eps)
      %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, H, hd])
      %v = hydra.let reshape(%v0, [B, S, H, hd])
      %q, %k = hydra.let rope(%q1, base = rope), rope(%k1, base = rope)
      %heads = hydra.attention %q, %k, %v scale = 1 / sqrt(hd) causal
      %y = hydra.let %x + linear(reshape(%heads, [B, S, D]), @wo)

      hydra.section @mlp
      %m = hydra.let rms_norm(%y, @ln2, eps = eps)
      %gate, %up = hydra.let linear(%m, @w1), linear(%m, @w3)
      %z = hydra.let %y + linear(silu(%gate) * %up, @w2)
      hydra.yield %z
    }
    %final = hydra.let rms_norm(%end, @ln_final, eps = eps)
    hydra.yield %final
  }

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(@trunk(%tokens), @lm_head, %labels)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), @lm_head)
    hydra.return logits = %logits
  }
}
