// A Llama-like model: a pre-norm decoder whose query heads share keys and values in groups, with
// half-split rotary positions, SwiGLU and an output head of its own. models.md section 9.
//
// With `packed` a row holds several documents, each ended by the token `eos`, and is what they would be in rows of their
// own: attention stays in a document, and positions begin anew.

hydra.model @llama version 1 {
  hydra.symbols dims(D, F, L, H, Hk, V, eos = 0) reals(rope = 5.0e5, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(packed = false)
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

  // Attention of every token to those of its document up to it. Query heads that share keys are rows of one matmul.
  hydra.def @attend_in_documents(%q, %k, %v, %start) {
    %qh = hydra.let reshape(transpose(%q, [0, 2, 1, 3]), [B, Hk, H / Hk * S, hd])
    %kh, %vh = hydra.let transpose(%k, [0, 2, 1, 3]), transpose(%v, [0, 2, 1, 3])
    %scores = hydra.let reshape(matmul(%qh, %kh, transpose_b, dtype = f32) * (1 / sqrt(hd)), [B, H, S, S])
    %i, %j = hydra.let iota(axis = 2, shape = [1, 1, S, 1], dtype = f32), iota(axis = 3, shape = [1, 1, 1, S], dtype = f32)
    %own, %not_later = hydra.let %j >= reshape(%start, [B, 1, S, 1]), %j <= %i
    %weights = hydra.let softmax(select(%own, select(%not_later, %scores, -1.0e30), -1.0e30))
    %o = hydra.let matmul(reshape(%weights, [B, Hk, H / Hk * S, S]), %vh)
    %heads = hydra.let transpose(reshape(%o, [B, H, S, hd]), [0, 2, 1, 3])
    hydra.yield %heads
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb)
    %at = hydra.let when(packed, @documents(%tokens), bundle(row = %tokens))
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let rms_norm(%x, @norm1, eps = eps)
      %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
      %q1, %k1 = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, Hk, hd])
      %v = hydra.let reshape(%v0, [B, S, Hk, hd])
      %q = hydra.let when(packed, rope(%q1, %at.position, base = rope, half_split), rope(%q1, base = rope, half_split))
      %k = hydra.let when(packed, rope(%k1, %at.position, base = rope, half_split), rope(%k1, base = rope, half_split))
      %heads = hydra.let when(packed, @attend_in_documents(%q, %k, %v, %at.start),
                              attention(%q, %k, %v, scale = 1 / sqrt(hd), causal))
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
