// mixtral of the family mixtral: a pre-norm decoder with grouped heads, rotary positions and experts of SwiGLU.
// `from` is the name of a tensor in the files that it came from.

hydra.model @mixtral version 1 {
  hydra.symbols dims(D, F, L, H, Hk, W, E, K, V) reals(rope = 1.0e6, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
  hydra.derive hd = D / H   // width of a head
  hydra.derive Dk = Hk * hd // width of all key heads

  hydra.preset @mixtral {D = 16, F = 24, L = 2, H = 4, Hk = 2, W = 5, E = 4, K = 2, V = 61}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02) from "model.embed_tokens.weight"
  hydra.stack @layers[L] {
    hydra.param @norm1  [D]       init = ones         from "model.layers.{layer}.input_layernorm.weight"
    hydra.param @wq     [D, D]    init = normal(0.02) from "model.layers.{layer}.self_attn.q_proj.weight"
    hydra.param @wk     [Dk, D]   init = normal(0.02) from "model.layers.{layer}.self_attn.k_proj.weight"
    hydra.param @wv     [Dk, D]   init = normal(0.02) from "model.layers.{layer}.self_attn.v_proj.weight"
    hydra.param @wo     [D, D]    init = normal(0.02) from "model.layers.{layer}.self_attn.o_proj.weight"
    hydra.param @norm2  [D]       init = ones         from "model.layers.{layer}.post_attention_layernorm.weight"
    hydra.param @router [E, D]    init = normal(0.02) from "model.layers.{layer}.block_sparse_moe.gate.weight"
    hydra.param @gate   [E, F, D] init = normal(0.02) from "model.layers.{layer}.block_sparse_moe.experts.{row}.w1.weight"
    hydra.param @up     [E, F, D] init = normal(0.02) from "model.layers.{layer}.block_sparse_moe.experts.{row}.w3.weight"
    hydra.param @down   [E, D, F] init = normal(0.02) from "model.layers.{layer}.block_sparse_moe.experts.{row}.w2.weight"
  }
  hydra.param @norm    [D]    init = ones         from "model.norm.weight"
  hydra.param @lm_head [V, D] init = normal(0.02) from "lm_head.weight"

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
      %heads = hydra.attention %q, %k, %v scale = 1 / sqrt(hd) causal window = W
      %y = hydra.let %x + linear(reshape(%heads, [B, S, D]), @wo)

      hydra.section @mlp // experts: each token has K of E
      %m = hydra.let rms_norm(%y, @norm2, eps = eps)
      %rows = hydra.let reshape(%m, [B * S, D])
      %shares = hydra.let softmax(linear(%rows, @router))
      %chosen = hydra.top_k %shares k = K
      %kept = hydra.let select(%chosen, %shares, 0.0)
      %weights = hydra.let %kept / sum(%kept, 1)
      %index, %group, %place, %offsets = hydra.route %chosen k = K
      %sorted, %shared = hydra.let take_rows(%rows, %index, %place), take_rows(%weights, %index, %place)
      %is = hydra.let reshape(%group, [B * S * K, 1]) == iota(shape = [1, E], axis = 1)
      %gate, %up = hydra.let grouped_linear(%sorted, @gate, %offsets), grouped_linear(%sorted, @up, %offsets)
      %inner = hydra.let silu(%gate) * %up * sum(select(%is, %shared, 0.0), 1)
      %experts = hydra.let take_rows(grouped_linear(%inner, @down, %offsets), %place, %index)
      %z = hydra.let %y + reshape(%experts, [B, S, D])
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
