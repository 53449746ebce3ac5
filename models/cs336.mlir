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
    %table = hydra.use @tok_emb
    %start = hydra.embedding %tokens, %table
    %end = hydra.for @layers carry(%x = %start) {
      // Attention.
      %ln1 = hydra.use @ln1
      %wq = hydra.use @wq
      %wk = hydra.use @wk
      %wv = hydra.use @wv
      %wo = hydra.use @wo
      %n = hydra.rms_norm %x, %ln1 eps = eps
      %q0 = hydra.linear %n, %wq
      %k0 = hydra.linear %n, %wk
      %v0 = hydra.linear %n, %wv
      %q1 = hydra.reshape %q0 shape = [B, S, H, hd]
      %k1 = hydra.reshape %k0 shape = [B, S, H, hd]
      %v = hydra.reshape %v0 shape = [B, S, H, hd]
      %q = hydra.rope %q1 base = rope
      %k = hydra.rope %k1 base = rope
      %heads = hydra.attention %q, %k, %v scale = 1 / sqrt(hd) causal
      %mixed = hydra.reshape %heads shape = [B, S, D]
      %a = hydra.linear %mixed, %wo
      %y = hydra.add %x, %a

      // SwiGLU.
      %ln2 = hydra.use @ln2
      %w1 = hydra.use @w1
      %w2 = hydra.use @w2
      %w3 = hydra.use @w3
      %m = hydra.rms_norm %y, %ln2 eps = eps
      %gate = hydra.linear %m, %w1
      %up = hydra.linear %m, %w3
      %act = hydra.silu %gate
      %hidden = hydra.mul %act, %up
      %f = hydra.linear %hidden, %w2
      %z = hydra.add %y, %f
      hydra.yield %z
    }
    %ln_final = hydra.use @ln_final
    %final = hydra.rms_norm %end, %ln_final eps = eps
    hydra.yield %final
  }

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final = hydra.call @trunk(%tokens)
    %lm_head = hydra.use @lm_head
    %loss = hydra.linear_cross_entropy %final, %lm_head, %labels
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %final = hydra.call @trunk(%tokens)
    %lm_head = hydra.use @lm_head
    %logits = hydra.linear %final, %lm_head
    hydra.return logits = %logits
  }
}
