// The CS336 Transformer: a plain pre-norm decoder with RMSNorm, rotary positions, SwiGLU and an
// output head of its own. models.md section 2.
//
// With `packed` a row holds several documents, each ended by the token `eos`, and is what they would be in rows of their
// own: attention stays in a document, and positions begin anew.

hydra.model @cs336 version 1 {
  hydra.symbols dims(D, F, L, H, V, eos = 0) reals(rope = 1.0e4, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.999, adam_eps = 1.0e-8, wd = 0.01)
                flags(packed = false)
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
    %weights = hydra.let softmax(select(%own, select(%not_later, %scores, -1.0e30), -1.0e30))
    %heads = hydra.let transpose(matmul(%weights, %vh), [0, 2, 1, 3])
    hydra.yield %heads
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb)
    %at = hydra.let when(packed, @documents(%tokens), bundle(row = %tokens))
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let rms_norm(%x, @ln1, eps = eps)
      %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, H, hd])
      %v = hydra.let reshape(%v0, [B, S, H, hd])
      %q = hydra.let when(packed, rope(%q1, %at.position, base = rope), rope(%q1, base = rope))
      %k = hydra.let when(packed, rope(%k1, %at.position, base = rope), rope(%k1, base = rope))
      %heads = hydra.let when(packed, @attend_in_documents(%q, %k, %v, %at.start),
                              attention(%q, %k, %v, scale = 1 / sqrt(hd), causal))
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
    // What follows the end of a document belongs to the next one.
    %own = hydra.let when(packed, select(%tokens == eos, -100, %labels), %labels)
    %loss = hydra.let linear_cross_entropy(@trunk(%tokens), @lm_head, %own)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), @lm_head)
    hydra.return logits = %logits
  }
}
