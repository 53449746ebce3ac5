// A Llama-like model: a pre-norm decoder whose query heads share keys and values in groups, with
// half-split rotary positions, SwiGLU and an output head of its own. models.md section 9.

hydra.model @llama version 1 {
  hydra.symbols dims(D, F, L, H, Hk, V) reals(rope = 5.0e5, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
  hydra.derive hd = D / H   // width of a head
  hydra.derive Dk = Hk * hd // width of all key heads

  hydra.preset @tiny         {D = 64,   F = 192,   L = 2,  H = 4,  Hk = 2,  V = 97}
  hydra.preset @bytes        {D = 192,  F = 512,   L = 4,  H = 6,  Hk = 6,  V = 256}
  hydra.preset @"llama-160m" {D = 768,  F = 3072,  L = 12, H = 12, Hk = 12, V = 32000}
  hydra.preset @"llama-1b"   {D = 2048, F = 5632,  L = 22, H = 32, Hk = 4,  V = 32000}
  hydra.preset @"llama-8b"   {D = 4096, F = 14336, L = 32, H = 32, Hk = 8,  V = 128256}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02)
  hydra.stack @layers[L] {
    hydra.param @norm1 [D]     init = ones
    hydra.param @wq    [D, D]  init = normal(0.02)
    hydra.param @wk    [Dk, D] init = normal(0.02)
    hydra.param @wv    [Dk, D] init = normal(0.02)
    hydra.param @wo    [D, D]  init = normal(0.02)
    hydra.param @norm2 [D]     init = ones
    hydra.param @gate  [F, D]  init = normal(0.02)
    hydra.param @up    [F, D]  init = normal(0.02)
    hydra.param @down  [D, F]  init = normal(0.02)
  }
  hydra.param @norm    [D]    init = ones
  hydra.param @lm_head [V, D] init = normal(0.02)

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let rms_norm(%x, @norm1, eps = eps)
      %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, Hk, hd])
      %v = hydra.let reshape(%v0, [B, S, Hk, hd])
      %q, %k = hydra.let rope(%q1, base = rope, half_split), rope(%k1, base = rope, half_split)
      %heads = hydra.attention %q, %k, %v scale = 1 / sqrt(hd) causal
      %y = hydra.let %x + linear(reshape(%heads, [B, S, D]), @wo)

      hydra.section @mlp
      %m = hydra.let rms_norm(%y, @norm2, eps = eps)
      %gate, %up = hydra.let linear(%m, @gate), linear(%m, @up)
      %z = hydra.let %y + linear(silu(%gate) * %up, @down)
      hydra.yield %z
    }
    %final = hydra.let rms_norm(%end, @norm, eps = eps)
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
