// gemma3 of the family gemma3: norms around attention and MLP and of queries and keys, a window in most layers.
// `from` is the name of a tensor in the files that it came from.

hydra.model @gemma3 version 1 {
  hydra.symbols dims(D, F, L, H, Hk, hd, W, V) reals(rope = 1.0e6, local_rope = 1.0e4, eps = 1.0e-6, query = 8.0)
                reals(factor = 8.0)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
  hydra.derive Dq = H * hd  // width of all heads
  hydra.derive Dk = Hk * hd // width of all key heads

  hydra.preset @gemma3 {D = 16, F = 24, L = 6, H = 4, Hk = 2, hd = 8, W = 4, V = 61}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02) from "model.embed_tokens.weight"
  hydra.stack @layers[L] {
    hydra.param @norm1  [D]     init = zeros        from "model.layers.{layer}.input_layernorm.weight"
    hydra.param @wq     [Dq, D] init = normal(0.02) from "model.layers.{layer}.self_attn.q_proj.weight"
    hydra.param @wk     [Dk, D] init = normal(0.02) from "model.layers.{layer}.self_attn.k_proj.weight"
    hydra.param @wv     [Dk, D] init = normal(0.02) from "model.layers.{layer}.self_attn.v_proj.weight"
    hydra.param @q_norm [hd]    init = zeros        from "model.layers.{layer}.self_attn.q_norm.weight"
    hydra.param @k_norm [hd]    init = zeros        from "model.layers.{layer}.self_attn.k_norm.weight"
    hydra.param @wo     [D, Dq] init = normal(0.02) from "model.layers.{layer}.self_attn.o_proj.weight"
    hydra.param @post1  [D]     init = zeros        from "model.layers.{layer}.post_attention_layernorm.weight"
    hydra.param @norm2  [D]     init = zeros        from "model.layers.{layer}.pre_feedforward_layernorm.weight"
    hydra.param @gate   [F, D]  init = normal(0.02) from "model.layers.{layer}.mlp.gate_proj.weight"
    hydra.param @up     [F, D]  init = normal(0.02) from "model.layers.{layer}.mlp.up_proj.weight"
    hydra.param @down   [D, F]  init = normal(0.02) from "model.layers.{layer}.mlp.down_proj.weight"
    hydra.param @post2  [D]     init = zeros        from "model.layers.{layer}.post_feedforward_layernorm.weight"
  }
  hydra.param @norm [D] init = zeros from "model.norm.weight"

  // Cosine and sine of the angles [S, 1, hd / 2] by which pairs of channels turn, in layers without window.
  hydra.def @turns() {
    %position = hydra.let when(continued, iota(axis = 1, shape = [B, S, 1, 1], dtype = f32, positions),
                               iota(axis = 0, shape = [S, 1, 1], dtype = f32))
    %pair = hydra.iota shape = [1, 1, hd / 2] axis = 2 dtype = f32
    %plain = hydra.let exp(%pair * (-2.0 * log(rope) / hd))
    %frequency = hydra.let %plain / factor
    %angle = hydra.let %position * %frequency
    %cos, %sin = hydra.let cos(%angle), sin(%angle)
    hydra.yield %cos, %sin
  }

  // %x [B, S, heads, hd] with pairs (i, i + hd / 2) of channels turned.
  hydra.def @rotate(%x, %cos, %sin) {
    %a = hydra.slice %x axis = 3 start = 0 size = hd / 2
    %b = hydra.slice %x axis = 3 start = hd / 2 size = hd / 2
    %y = hydra.let concat(%a * %cos - %b * %sin, %b * %cos + %a * %sin, axis = 3)
    hydra.yield %y
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb, padding = 0) * sqrt(D)
    %full_cos, %full_sin = hydra.call @turns()
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let rms_norm(%x, 1.0 + @norm1, eps = eps)
      %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, Hk, hd])
      %v = hydra.let reshape(%v0, [B, S, Hk, hd])
      %qn, %kn = hydra.let rms_norm(%q1, 1.0 + @q_norm, eps = eps), rms_norm(%k1, 1.0 + @k_norm, eps = eps)
      // Some layers see everything, the others a window.
      %q = hydra.let when(layer - 3 * floor(layer / 3.0) == 2,
                          @rotate(%qn, %full_cos, %full_sin),
                          rope(%qn, base = local_rope, half_split))
      %k = hydra.let when(layer - 3 * floor(layer / 3.0) == 2,
                          @rotate(%kn, %full_cos, %full_sin),
                          rope(%kn, base = local_rope, half_split))
      %heads = hydra.let when(layer - 3 * floor(layer / 3.0) == 2,
                              attention(%q, %k, %v, scale = 1 / sqrt(query), causal),
                              attention(%q, %k, %v, scale = 1 / sqrt(query), causal, window = W))
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

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(@trunk(%tokens), @tok_emb, %labels)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), @tok_emb)
    hydra.return logits = %logits
  }
}
