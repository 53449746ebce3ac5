// TTT: a Llama-like decoder whose attention is replaced by a small model that learns while it reads
// (arXiv:2407.04620, in the dual form). Each head holds a linear map W; every chunk of tokens takes one
// gradient step on it, by which f(z; W) = z + LN(W z) maps keys to values, and reads it with queries.
// With `inner = mlp` it is a perceptron, f(z; W1, W2) = z + LN(W2 gelu(W1 z)). models.md section 4.

hydra.model @ttt version 1 {
  hydra.symbols dims(D, F, L, H, V, b0 = 16) reals(eta_base = 0.01, rope = 1.0e4, eps = 1.0e-5, emb_std = 0.02)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(per_head_lr = false, untied = false, lr_gating = true, compat_w0_frozen = false)
                choices(inner = linear of (linear, mlp))
  hydra.derive d = D / H // width of a head
  hydra.derive h = 4 * d // and of the perceptron's hidden layer
  hydra.derive gates = select(per_head_lr, H, 1)

  hydra.preset @tiny          {D = 64,   F = 128,   L = 2,  H = 4,  V = 97, eta_base = 0.5}
  hydra.preset @ref           {D = 64,   F = 128,   L = 2,  H = 4,  V = 97, eta_base = 0.5}
  hydra.preset @bytes         {D = 128,  F = 344,   L = 2,  H = 4,  V = 256}
  hydra.preset @"tiny-mlp"    {D = 64,   F = 128,   L = 2,  H = 4,  V = 97, eta_base = 0.5, inner = mlp}
  hydra.preset @"bytes-mlp"   {D = 128,  F = 344,   L = 2,  H = 4,  V = 256, inner = mlp}
  hydra.preset @debug_tiny    {D = 256,  F = 1024,  L = 4,  H = 4,  V = 4096}
  hydra.preset @bringup_1p3b  {D = 2048, F = 5504,  L = 24, H = 16, V = 128256}
  hydra.preset @mid_35b       {D = 6144, F = 22016, L = 48, H = 48, V = 128256, rope = 5.0e5}
  hydra.preset @ttt_llama_47b {D = 8192, F = 28672, L = 48, H = 64, V = 128256, rope = 5.0e5}
  hydra.preset @ttt_llama_70b {D = 8192, F = 28672, L = 80, H = 64, V = 128256, rope = 5.0e5}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(emb_std) from "tok_embeddings.weight"
  hydra.stack @layers[L] {
    hydra.param @norm1    [D]       init = ones                  from "layers.{layer}.norm1.weight"
    hydra.param @w_q      [D, D]    init = uniform(1 / sqrt(D))  from "layers.{layer}.mixer.w_q.weight"
    hydra.param @w_k      [D, D]    init = uniform(1 / sqrt(D))  from "layers.{layer}.mixer.w_k.weight"
    hydra.param @w_v      [D, D]    init = uniform(1 / sqrt(D))  from "layers.{layer}.mixer.w_v.weight"
    hydra.param @w_o      [D, D]    init = uniform(1 / sqrt(D))  from "layers.{layer}.mixer.w_o.weight"
    // What the heads know before the first token.
    hydra.param @W0       [H, d, d] init = normal(0.02) when inner == linear from "layers.{layer}.mixer.W0"
    hydra.param @W1       [H, h, d] init = normal(0.02) when inner == mlp
    hydra.param @W2       [H, d, h] init = normal(0.02) when inner == mlp
    hydra.param @ln_w     [H, d]    init = ones                  from "layers.{layer}.mixer.ln_weight"
    hydra.param @ln_b     [H, d]    init = zeros                 from "layers.{layer}.mixer.ln_bias"
    hydra.param @theta_lr [gates, D] init = uniform(1 / sqrt(D)) when lr_gating from "layers.{layer}.mixer.theta_lr.weight"
    hydra.param @norm2    [D]       init = ones                  from "layers.{layer}.norm2.weight"
    hydra.param @gate     [F, D]    init = uniform(1 / sqrt(D))  from "layers.{layer}.mlp.gate_proj.weight"
    hydra.param @up       [F, D]    init = uniform(1 / sqrt(D))  from "layers.{layer}.mlp.up_proj.weight"
    hydra.param @down     [D, F]    init = uniform(1 / sqrt(F))  from "layers.{layer}.mlp.down_proj.weight"
  }
  hydra.param @norm    [D]    init = ones from "norm.weight"
  hydra.param @lm_head [V, D] init = uniform(1 / sqrt(D)) when untied from "lm_head.weight"

  // The rows of `x` [B, H, N, d] without mean and with variance 1, and the reciprocal deviations.
  hydra.def @normalise(%x) {
    %centred = hydra.let %x - mean(%x, 3)
    %r = hydra.let rsqrt(mean(%centred * %centred, 3) + eps)
    %n = hydra.let %centred * %r
    hydra.yield %n, %r
  }

  // [B, S, D] as [B, H, S, d].
  hydra.def @heads(%x) = transpose(reshape(%x, [B, S, H, d]), [0, 2, 1, 3])
  // The same with rotary positions.
  hydra.def @rotated_heads(%x) = transpose(rope(reshape(%x, [B, S, H, d]), base = rope), [0, 2, 1, 3])

  // [B, H, S, d] as chunks [B, H, C, T, d] of T tokens, zeros behind the last.
  hydra.def @chunks_of_heads(%x) dims(C, T) = reshape(pad(%x, axis = 2, before = 0, after = T * C - S), [B, H, C, T, d])

  // Of step widths [B, gates, S, 1], minus that width times the derivative of the mean over the chunk's tokens; 0 behind the
  // last: [B, gates, C, T, 1].
  hydra.def @step_scales(%eta) dims(C, T) {
    %token = hydra.iota shape = [1, 1, S, 1] axis = 2
    %last_factor = hydra.let -2.0 / max(1, S - T * floor(1.0 * S / T))
    %scale = hydra.let %eta * select(%token < T * floor(1.0 * S / T), -2.0 / T, %last_factor)
    %scales = hydra.let reshape(pad(%scale, axis = 2, before = 0, after = T * C - S), [B, gates, C, T, 1])
    hydra.yield %scales
  }

  // A query sees the steps of the tokens before it: of products of rows and columns [..., T, T], those.
  hydra.def @earlier(%all) dims(T) {
    %row, %column = hydra.let iota(axis = 0, shape = [T, T]), iota(axis = 1, shape = [T, T])
    %seen = hydra.let select(%column < %row, %all, 0)
    hydra.yield %seen
  }

  // Queries, keys, values [B, H, S, d], step widths [B, gates, S, 1] and first weights [B, H, d, d] to what
  // the queries read, and the weights behind the last token. What does not depend on the weights is done for all
  // C chunks at once; none is longer than the sequence.
  hydra.def @learn_and_read(%q, %k, %v, %eta, %start, %gamma, %beta) dims(C) {
    %qs = hydra.let @chunks_of_heads(%q, C = C, T = min(b0, S))
    %ks = hydra.let @chunks_of_heads(%k, C = C, T = min(b0, S))
    %vs = hydra.let @chunks_of_heads(%v, C = C, T = min(b0, S))

    %scales, %seen = hydra.let @step_scales(%eta, C = C, T = min(b0, S)), @earlier(matmul(%qs, %ks, transpose_b), T = min(b0, S))

    // The scan over chunks: what the weights make of keys and queries, and the steps that keys and values
    // ask for. Every sequence has its own norm's parameters there, whose gradients are summed behind it.
    %gammas, %betas = hydra.let broadcast(%gamma, [B, H, 1, d]), broadcast(%beta, [B, H, 1, d])
    %scales_of_heads = hydra.let broadcast(%scales, [B, H, C, min(b0, S), 1])
    %kqs = hydra.let concat(%ks, %qs, axis = 3)
    %befores, %steps, %end = hydra.scan axis = 2 chunk = 1 over(%kq1 = %kqs, %k1 = %ks, %v1 = %vs, %s1 = %scales_of_heads) carry(%w = %start) {
      %kq, %kc = hydra.let reshape(%kq1, [B, H, 2 * min(b0, S), d]), reshape(%k1, [B, H, min(b0, S), d])
      %vc, %sc = hydra.let reshape(%v1, [B, H, min(b0, S), d]), reshape(%s1, [B, H, min(b0, S), 1])

      // The derivative of |f(k; W) - v|^2 / 2 in T = W k.
      %both = hydra.let matmul(%kq, %w, transpose_b, dtype = f32)
      %t, %before = hydra.let slice(%both, axis = 2, start = 0, size = min(b0, S)), slice(%both, axis = 2, start = min(b0, S), size = min(b0, S))
      %x, %r = hydra.call @normalise(%t)
      %g = hydra.let (%kc + (%x * %gammas + %betas) - %vc) * %gammas
      %u = hydra.let (%g - mean(%g, 3) - %x * mean(%g * %x, 3)) * %r
      %step = hydra.let %u * %sc

      %next = hydra.let matmul(%step, %kc, %w, transpose_a, dtype = f32)
      %before1, %step1 = hydra.let reshape(%before, [B, H, 1, min(b0, S), d]), reshape(%step, [B, H, 1, min(b0, S), d])
      hydra.yield %before1, %step1, %next
    }
    %tqs = hydra.let %befores + matmul(%seen, %steps, dtype = f32)
    %tq = hydra.let slice(reshape(%tqs, [B, H, min(b0, S) * C, d]), axis = 2, start = 0, size = S)
    %nq, %rq = hydra.call @normalise(%tq)
    %z = hydra.let %q + (%nq * %gamma + %beta)
    hydra.yield %z, %end
  }

  // The derivative of gelu.
  hydra.def @gelu_slope(%x) {
    %squares = hydra.let %x * %x
    %t = hydra.let tanh(%x * (%squares * 0.044715 + 1) * 0.7978845608028654)
    %slope = hydra.let (%t + 1 + %x * (1 - %t * %t) * (%squares * 0.134145 + 1) * 0.7978845608028654) * 0.5
    hydra.yield %slope
  }

  // The same as @learn_and_read for perceptrons, of weights w1 [B, H, h, d] and w2 [B, H, d, h]. What queries read depends
  // on the weights twice, so that all of it is done chunk by chunk.
  hydra.def @learn_and_read_by_mlp(%q, %k, %v, %eta, %w1_start, %w2_start, %gamma, %beta) dims(C) {
    %qs, %ks = hydra.let @chunks_of_heads(%q, C = C, T = min(b0, S)), @chunks_of_heads(%k, C = C, T = min(b0, S))
    %vs = hydra.let @chunks_of_heads(%v, C = C, T = min(b0, S))
    %scales, %seen = hydra.let @step_scales(%eta, C = C, T = min(b0, S)), @earlier(matmul(%qs, %ks, transpose_b), T = min(b0, S))
    %gammas, %betas = hydra.let broadcast(%gamma, [B, H, 1, d]), broadcast(%beta, [B, H, 1, d])
    %scales_of_heads = hydra.let broadcast(%scales, [B, H, C, min(b0, S), 1])
    %reads, %w1_end, %w2_end = hydra.scan axis = 2 chunk = 1
        over(%k1 = %ks, %q1 = %qs, %v1 = %vs, %s1 = %scales_of_heads, %seen1 = %seen) carry(%w1 = %w1_start, %w2 = %w2_start) {
      %kc, %qc, %vc = hydra.let reshape(%k1, [B, H, min(b0, S), d]), reshape(%q1, [B, H, min(b0, S), d]), reshape(%v1, [B, H, min(b0, S), d])
      %sc, %seen_here = hydra.let reshape(%s1, [B, H, min(b0, S), 1]), reshape(%seen1, [B, H, min(b0, S), min(b0, S)])

      // The steps: derivatives in W2 gelu(W1 k) and in W1 k.
      %a = hydra.let matmul(%kc, %w1, transpose_b, dtype = f32)
      %p = hydra.let gelu(%a)
      %t = hydra.let matmul(%p, %w2, transpose_b, dtype = f32)
      %x, %r = hydra.call @normalise(%t)
      %g = hydra.let (%kc + (%x * %gammas + %betas) - %vc) * %gammas
      %u = hydra.let (%g - mean(%g, 3) - %x * mean(%g * %x, 3)) * %r
      %step2 = hydra.let %u * %sc
      %step1 = hydra.let matmul(%step2, %w2, dtype = f32) * @gelu_slope(%a)

      // What the queries read, of the weights with the steps before.
      %aq = hydra.let matmul(%qc, %w1, transpose_b, dtype = f32) + matmul(%seen_here, %step1, dtype = f32)
      %pq = hydra.let gelu(%aq)
      %seen_hidden = hydra.let @earlier(matmul(%pq, %p, transpose_b, dtype = f32), T = min(b0, S))
      %read = hydra.let matmul(%pq, %w2, transpose_b, dtype = f32) + matmul(%seen_hidden, %step2, dtype = f32)

      %w1_next = hydra.let matmul(%step1, %kc, %w1, transpose_a, dtype = f32)
      %w2_next = hydra.let matmul(%step2, %p, %w2, transpose_a, dtype = f32)
      %read1 = hydra.let reshape(%read, [B, H, 1, min(b0, S), d])
      hydra.yield %read1, %w1_next, %w2_next
    }
    %tq = hydra.let slice(reshape(%reads, [B, H, min(b0, S) * C, d]), axis = 2, start = 0, size = S)
    %nq, %rq = hydra.call @normalise(%tq)
    %z = hydra.let %q + (%nq * %gamma + %beta)
    hydra.yield %z, %w1_end, %w2_end
  }

  // Of a layer's input: queries, keys, values (rows of heads, without positions), and step widths.
  hydra.def @projections(%x) {
    %n = hydra.let rms_norm(%x, @norm1, eps = eps)
    %q, %k, %v = hydra.let linear(%n, @w_q), linear(%n, @w_k), @heads(linear(%n, @w_v))
    // How far each token's step goes, for all heads alike or for each its own.
    %width = hydra.let when(lr_gating, sigmoid(linear(%n, @theta_lr)) * eta_base, constant(value = eta_base, shape = [B, S, gates]))
    %eta = hydra.let reshape(transpose(%width, [0, 2, 1]), [B, gates, S, 1])
    hydra.yield %q, %k, %v, %eta
  }

  // What the queries read; the weights go from token to token of a sequence.
  hydra.def @remember(%q, %k, %v, %eta) {
    %gamma, %beta = hydra.let reshape(@ln_w, [1, H, 1, d]), reshape(@ln_b, [1, H, 1, d])
    %first = hydra.let broadcast(reshape(when(compat_w0_frozen, detach(@W0), @W0), [1, H, d, d]), [B, H, d, d])
    %z, %end = hydra.scan axis = 2 chunk = S over(%qs = %q, %ks = %k, %vs = %v, %etas = %eta) carry(%w = %first) {
      %read, %next = hydra.call @learn_and_read(%qs, %ks, %vs, %etas, %w, %gamma, %beta, C = ceil(1.0 * S / b0))
      hydra.yield %read, %next
    }
    hydra.yield %z
  }

  hydra.def @remember_by_mlp(%q, %k, %v, %eta) {
    %gamma, %beta = hydra.let reshape(@ln_w, [1, H, 1, d]), reshape(@ln_b, [1, H, 1, d])
    %first1 = hydra.let broadcast(reshape(when(compat_w0_frozen, detach(@W1), @W1), [1, H, h, d]), [B, H, h, d])
    %first2 = hydra.let broadcast(reshape(when(compat_w0_frozen, detach(@W2), @W2), [1, H, d, h]), [B, H, d, h])
    %z, %end1, %end2 = hydra.scan axis = 2 chunk = S over(%qs = %q, %ks = %k, %vs = %v, %etas = %eta)
        carry(%w1 = %first1, %w2 = %first2) {
      %read, %next1, %next2 = hydra.call @learn_and_read_by_mlp(%qs, %ks, %vs, %etas, %w1, %w2, %gamma, %beta, C = ceil(1.0 * S / b0))
      hydra.yield %read, %next1, %next2
    }
    hydra.yield %z
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @mixer
      %q, %k, %v, %eta = hydra.call @projections(%x)
      %qr, %kr = hydra.let @rotated_heads(%q), @rotated_heads(%k)
      %z = hydra.let when(inner == linear, @remember(%qr, %kr, %v, %eta), @remember_by_mlp(%qr, %kr, %v, %eta))
      %y = hydra.let %x + linear(reshape(transpose(%z, [0, 2, 1, 3]), [B, S, D]), @w_o)

      hydra.section @mlp
      %m = hydra.let rms_norm(%y, @norm2, eps = eps)
      %out = hydra.let %y + linear(silu(linear(%m, @gate)) * linear(%m, @up), @down)
      hydra.yield %out
    }
    %final = hydra.let rms_norm(%end, @norm, eps = eps)
    hydra.yield %final
  }

  hydra.def @head() = when(untied, @lm_head, @tok_emb)

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(@trunk(%tokens), @head(), %labels)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), @head())
    hydra.return logits = %logits
  }
}
