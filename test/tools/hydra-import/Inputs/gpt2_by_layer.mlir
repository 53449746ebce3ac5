// gpt2_by_layer of the family gpt2: learned positions, LayerNorm, GELU, biases, one matrix for q, k and v.
// `from` is the name of a tensor in the files that it came from.

hydra.model @gpt2 version 1 {
  hydra.symbols dims(D, F, L, H, P, V) reals(eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
  hydra.derive hd = D / H // width of a head

  hydra.preset @gpt2_by_layer {D = 16, F = 64, L = 2, H = 4, P = 32, V = 61}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02) from "transformer.wte.weight"
  hydra.param @pos_emb [P, D] init = normal(0.02) from "transformer.wpe.weight"
  hydra.stack @layers[L] {
    hydra.param @norm1   [D]        init = ones         from "transformer.h.{layer}.ln_1.weight"
    hydra.param @norm1_b [D]        init = zeros        from "transformer.h.{layer}.ln_1.bias"
    hydra.param @qkv     [3 * D, D] init = normal(0.02) from "transformer.h.{layer}.attn.c_attn.weight" transposed
    hydra.param @qkv_b   [3 * D]    init = zeros        from "transformer.h.{layer}.attn.c_attn.bias"
    hydra.param @wo      [D, D]     init = normal(0.02) from "transformer.h.{layer}.attn.c_proj.weight" transposed
    hydra.param @wo_b    [D]        init = zeros        from "transformer.h.{layer}.attn.c_proj.bias"
    hydra.param @norm2   [D]        init = ones         from "transformer.h.{layer}.ln_2.weight"
    hydra.param @norm2_b [D]        init = zeros        from "transformer.h.{layer}.ln_2.bias"
    hydra.param @up      [F, D]     init = normal(0.02) from "transformer.h.{layer}.mlp.c_fc.weight" transposed
    hydra.param @up_b    [F]        init = zeros        from "transformer.h.{layer}.mlp.c_fc.bias"
    hydra.param @down    [D, F]     init = normal(0.02) from "transformer.h.{layer}.mlp.c_proj.weight" transposed
    hydra.param @down_b  [D]        init = zeros        from "transformer.h.{layer}.mlp.c_proj.bias"
  }
  hydra.param @norm   [D] init = ones  from "transformer.ln_f.weight"
  hydra.param @norm_b [D] init = zeros from "transformer.ln_f.bias"

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb) + when(continued, embedding(iota(axis = 1, shape = [B, S], positions), @pos_emb),
                                                           slice(@pos_emb, axis = 0, start = 0, size = S))
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let layer_norm(%x, @norm1, @norm1_b, eps = eps)
      %qkv = hydra.let linear(%n, @qkv, @qkv_b)
      %q0 = hydra.slice %qkv axis = 2 start = 0 size = D
      %k0 = hydra.slice %qkv axis = 2 start = D size = D
      %v0 = hydra.slice %qkv axis = 2 start = 2 * D size = D
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, H, hd])
      %v = hydra.let reshape(%v0, [B, S, H, hd])
      %heads = hydra.attention %q1, %k1, %v scale = 1 / (sqrt(hd) * (layer + 1)) causal
      %y = hydra.let %x + linear(reshape(%heads, [B, S, D]), @wo, @wo_b)

      hydra.section @mlp
      %m = hydra.let layer_norm(%y, @norm2, @norm2_b, eps = eps)
      %z = hydra.let %y + linear(gelu(linear(%m, @up, @up_b)), @down, @down_b)
      hydra.yield %z
    }
    %final = hydra.let layer_norm(%end, @norm, @norm_b, eps = eps)
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
