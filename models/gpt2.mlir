// GPT-2: learned positions, LayerNorm, GELU, biases, one matrix for q, k and v, tied head.
// Radford et al. 2019; parameter names as in models.md section 9 (bare names, layers.<i>.<name>).
//
// With `packed` a row holds several documents, each ended by the token `eos`, and is what they would be in rows of their
// own: attention stays in a document, and positions begin anew. With `dropout` training drops that part of embeddings and of
// what each layer's two halves add, with `attention_dropout` of the weights of attention.

hydra.model @gpt2 version 1 {
  hydra.symbols dims(D, L, H, P, V, eos = 0) reals(eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.999, adam_eps = 1.0e-8, wd = 0.0, dropout = 0.0, attention_dropout = 0.0)
                flags(packed = false)
  hydra.derive hd = D / H // width of a head
  hydra.derive F = 4 * D

  hydra.preset @tiny   {D = 64,  L = 2,  H = 4,  P = 64,   V = 97}
  hydra.preset @bytes  {D = 384, L = 6,  H = 6,  P = 256,  V = 256}
  hydra.preset @"124M" {D = 768, L = 12, H = 12, P = 1024, V = 50257}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @wte [V, D] init = normal(0.02) from "transformer.wte.weight"
  hydra.param @wpe [P, D] init = normal(0.02) from "transformer.wpe.weight"
  hydra.stack @layers[L] {
    hydra.param @ln1_w  [D]        init = ones                         from "transformer.h.{layer}.ln_1.weight"
    hydra.param @ln1_b  [D]        init = zeros                        from "transformer.h.{layer}.ln_1.bias"
    hydra.param @qkv    [3 * D, D] init = normal(0.02)                 from "transformer.h.{layer}.attn.c_attn.weight" transposed
    hydra.param @qkv_b  [3 * D]    init = zeros                        from "transformer.h.{layer}.attn.c_attn.bias"
    hydra.param @proj   [D, D]     init = normal(0.02 / sqrt(2.0 * L)) from "transformer.h.{layer}.attn.c_proj.weight" transposed
    hydra.param @proj_b [D]        init = zeros                        from "transformer.h.{layer}.attn.c_proj.bias"
    hydra.param @ln2_w  [D]        init = ones                         from "transformer.h.{layer}.ln_2.weight"
    hydra.param @ln2_b  [D]        init = zeros                        from "transformer.h.{layer}.ln_2.bias"
    hydra.param @fc     [F, D]     init = normal(0.02)                 from "transformer.h.{layer}.mlp.c_fc.weight" transposed
    hydra.param @fc_b   [F]        init = zeros                        from "transformer.h.{layer}.mlp.c_fc.bias"
    hydra.param @out    [D, F]     init = normal(0.02 / sqrt(2.0 * L)) from "transformer.h.{layer}.mlp.c_proj.weight" transposed
    hydra.param @out_b  [D]        init = zeros                        from "transformer.h.{layer}.mlp.c_proj.bias"
  }
  hydra.param @lnf_w [D] init = ones  from "transformer.ln_f.weight"
  hydra.param @lnf_b [D] init = zeros from "transformer.ln_f.bias"

  // For rows of several documents: where in the row a token's document begins, and how far behind that the token is [B, S].
  hydra.def @documents(%tokens) {
    %behind = hydra.let slice(pad(cast(%tokens == eos, to = f32), axis = 1, before = 1, after = 0), axis = 1, start = 0, size = S)
    %t = hydra.iota shape = [B, S] axis = 1 dtype = f32
    %starts = hydra.let %t * %behind
    %start = hydra.prefix_scan axis = 1 over(%here = %starts) combine(%before) {
      %latest = hydra.let max(%before, %here)
      hydra.yield %latest
    }
    %at = hydra.let bundle(start = %start, position = %t - %start)
    hydra.yield %at
  }

  // Attention of every token to those of its document up to it.
  hydra.def @attend_in_documents(%q, %k, %v, %start) {
    %qh, %kh, %vh = hydra.let transpose(%q, [0, 2, 1, 3]), transpose(%k, [0, 2, 1, 3]), transpose(%v, [0, 2, 1, 3])
    %scores = hydra.let matmul(%qh, %kh, transpose_b, dtype = f32) * (1 / sqrt(hd))
    %i, %j = hydra.let iota(axis = 2, shape = [1, 1, S, 1], dtype = f32), iota(axis = 3, shape = [1, 1, 1, S], dtype = f32)
    %own, %not_later = hydra.let %j >= reshape(%start, [B, 1, S, 1]), %j <= %i
    %weights = hydra.let dropout(softmax(select(%own, select(%not_later, %scores, -1.0e30), -1.0e30)), p = attention_dropout)
    %heads = hydra.let transpose(matmul(%weights, %vh), [0, 2, 1, 3])
    hydra.yield %heads
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %at = hydra.let when(packed, @documents(%tokens), bundle(row = %tokens))
    %embedded = hydra.let embedding(%tokens, @wte) + when(packed, embedding(cast(%at.position, to = i32), @wpe),
                       when(continued, embedding(iota(axis = 1, shape = [B, S], positions), @wpe),
                                       slice(@wpe, axis = 0, start = 0, size = S)))
    %start = hydra.let dropout(%embedded, p = dropout)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let layer_norm(%x, @ln1_w, @ln1_b, eps = eps)
      %qkv = hydra.let linear(%n, @qkv, @qkv_b)
      %q0 = hydra.slice %qkv axis = 2 start = 0 size = D
      %k0 = hydra.slice %qkv axis = 2 start = D size = D
      %v0 = hydra.slice %qkv axis = 2 start = 2 * D size = D
      %q, %k = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, H, hd])
      %v = hydra.let reshape(%v0, [B, S, H, hd])
      %heads = hydra.let when(packed, @attend_in_documents(%q, %k, %v, %at.start),
                              attention(%q, %k, %v, scale = 1 / sqrt(hd), causal, dropout = attention_dropout))
      %y = hydra.let %x + dropout(linear(reshape(%heads, [B, S, D]), @proj, @proj_b), p = dropout)

      hydra.section @mlp
      %m = hydra.let layer_norm(%y, @ln2_w, @ln2_b, eps = eps)
      %z = hydra.let %y + dropout(linear(gelu(linear(%m, @fc, @fc_b)), @out, @out_b), p = dropout)
      hydra.yield %z
    }
    %final = hydra.let layer_norm(%end, @lnf_w, @lnf_b, eps = eps)
    hydra.yield %final
  }

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    // What follows the end of a document belongs to the next one.
    %own = hydra.let when(packed, select(%tokens == eos, -100, %labels), %labels)
    %loss = hydra.let linear_cross_entropy(@trunk(%tokens), @wte, %own)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), @wte)
    hydra.return logits = %logits
  }
}
