// gemma2 of the family gemma2: norms around attention and MLP, caps on scores and logits, a window in every other layer.
// `from` is the name of a tensor in the files that it came from.

hydra.model @gemma2 version 1 {
  hydra.symbols dims(D, F, L, H, Hk, hd, W, V) reals(rope = 1.0e4, eps = 1.0e-6, query = 16.0, score_cap = 20.0, logit_cap = 30.0)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
  hydra.derive Dq = H * hd  // width of all heads
  hydra.derive Dk = Hk * hd // width of all key heads

  hydra.preset @gemma2 {D = 16, F = 24, L = 4, H = 4, Hk = 2, hd = 8, W = 4, V = 61}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02) from "model.embed_tokens.weight"
  hydra.stack @layers[L] {
    hydra.param @norm1 [D]     init = zeros        from "model.layers.{layer}.input_layernorm.weight"
    hydra.param @wq    [Dq, D] init = normal(0.02) from "model.layers.{layer}.self_attn.q_proj.weight"
    hydra.param @wk    [Dk, D] init = normal(0.02) from "model.layers.{layer}.self_attn.k_proj.weight"
    hydra.param @wv    [Dk, D] init = normal(0.02) from "model.layers.{layer}.self_attn.v_proj.weight"
    hydra.param @wo    [D, Dq] init = normal(0.02) from "model.layers.{layer}.self_attn.o_proj.weight"
    hydra.param @post1 [D]     init = zeros        from "model.layers.{layer}.post_attention_layernorm.weight"
    hydra.param @norm2 [D]     init = zeros        from "model.layers.{layer}.pre_feedforward_layernorm.weight"
    hydra.param @gate  [F, D]  init = normal(0.02) from "model.layers.{layer}.mlp.gate_proj.weight"
    hydra.param @up    [F, D]  init = normal(0.02) from "model.layers.{layer}.mlp.up_proj.weight"
    hydra.param @down  [D, F]  init = normal(0.02) from "model.layers.{layer}.mlp.down_proj.weight"
    hydra.param @post2 [D]     init = zeros        from "model.layers.{layer}.post_feedforward_layernorm.weight"
  }
  hydra.param @norm [D] init = zeros from "model.norm.weight"

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb, padding = 0) * sqrt(D)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let rms_norm(%x, 1.0 + @norm1, eps = eps)
      %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, Hk, hd])
      %v = hydra.let reshape(%v0, [B, S, Hk, hd])
      // Some layers see everything, the others a window.
      %q, %k = hydra.let rope(%q1, base = rope, half_split), rope(%k1, base = rope, half_split)
      %heads = hydra.let when(layer - 2 * floor(layer / 2.0) == 1,
                              attention(%q, %k, %v, scale = 1 / sqrt(query), cap = score_cap, causal),
                              attention(%q, %k, %v, scale = 1 / sqrt(query), cap = score_cap, causal, window = W))
      %mixed = hydra.let linear(reshape(%heads, [B, S, Dq]), @wo)
      %y = hydra.let %x + rms_norm(%mixed, 1.0 + @post1, eps = eps)

      hydra.section @mlp
      %m = hydra.let rms_norm(%y, 1.0 + @norm2, eps = eps)
      %gate, %up = hydra.let linear(%m, @gate), linear(%m, @up)
      %out = hydra.let linear(gelu(%gate) * %up, @down)
      %z = hydra.let %y + rms_norm(%out, 1.0 + @post2, eps = eps)
      hydra.yield %z
    }
    %final = hydra.let rms_norm(%end, 1.0 + @norm, eps = eps)
    hydra.yield %final
  }

  // The scores of every next token, bounded by logit_cap * tanh(score / logit_cap).
  hydra.def @scores(%tokens) = logit_cap * tanh(linear(@trunk(%tokens), @tok_emb) * (1 / logit_cap))

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let cross_entropy(@scores(%tokens), %labels)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let @scores(%tokens)
    hydra.return logits = %logits
  }
}
