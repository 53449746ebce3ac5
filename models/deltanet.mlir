// Gated DeltaNet (arXiv:2412.06464): a Llama-like decoder whose attention is replaced by a matrix S for each head, which
// decays, forgets what it had under a key, and has the key's value written in:
//   S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T,   o_t = S_t q_t
// With `rule = additive` nothing is forgotten but by decay, S_t = alpha_t S_{t-1} + beta_t v_t k_t^T, which is linear attention
// with a gate; with `gated = false` alpha is 1. models.md section 9.
//
// A sequence is cut into chunks of Q tokens: matmuls within them, for all chunks at once, and a scan that carries S from
// chunk to chunk. With `form = tokens` it is the plain recurrence. Rows of S never meet, so a scan has them in P parts,
// each with what a GPU keeps on one multiprocessor.

hydra.model @deltanet version 1 {
  hydra.symbols dims(D, F, L, H, dk, dv, V, Q = 32, P = 1) reals(eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(gated = true, tied = true)
                choices(rule = delta of (delta, additive), form = chunks of (chunks, tokens))
  hydra.derive Dk = H * dk // width of all keys
  hydra.derive Dv = H * dv // and of all values
  // So many times the number of tokens in a sum doubles until it is Q.
  hydra.derive doublings = max(1, ceil(log(1.0 * Q) / log(2.0)) - 1)

  hydra.preset @tiny   {D = 64,   F = 128,  L = 2,  H = 4,  dk = 8,   dv = 16,  V = 97, Q = 8}
  hydra.preset @bytes  {D = 128,  F = 344,  L = 2,  H = 4,  dk = 32,  dv = 32,  V = 256}
  hydra.preset @"150M" {D = 768,  F = 2048, L = 12, H = 6,  dk = 128, dv = 256, V = 50257, P = 4}
  hydra.preset @"1.3B" {D = 2048, F = 5632, L = 20, H = 12, dk = 128, dv = 256, V = 50257, P = 4}

  hydra.group @default  adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)
  hydra.group @no_decay adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0)

  hydra.param @tok_emb [V, D] init = normal(0.02)
  hydra.stack @layers[L] {
    hydra.param @norm1  [D]     init = ones
    hydra.param @wq     [Dk, D] init = normal(0.02)
    hydra.param @wk     [Dk, D] init = normal(0.02)
    hydra.param @wv     [Dv, D] init = normal(0.02)
    hydra.param @q_conv [Dk, 4] init = uniform(0.5)
    hydra.param @k_conv [Dk, 4] init = uniform(0.5)
    hydra.param @v_conv [Dv, 4] init = uniform(0.5)
    hydra.param @wb     [H, D]  init = normal(0.02)
    // Decay: rates from 1 to 16 and steps from 0.001 to 0.1, by heads.
    hydra.param @wa     [H, D]  init = normal(0.02) when gated
    hydra.param @a_log  [H]     init = shuffle(log(1 + 15 * (index + 0.5) / H)) group = @no_decay when gated
    hydra.param @a_bias [H]     init = shuffle(log(exp(0.001 * pow(100.0, (index + 0.5) / H)) - 1)) group = @no_decay when gated
    hydra.param @wg     [Dv, D] init = normal(0.02)
    hydra.param @o_norm [dv]    init = ones
    hydra.param @wo     [D, Dv] init = normal(0.02 / sqrt(2.0 * L))
    hydra.param @norm2  [D]     init = ones
    hydra.param @gate   [F, D]  init = normal(0.02)
    hydra.param @up     [F, D]  init = normal(0.02)
    hydra.param @down   [D, F]  init = normal(0.02 / sqrt(2.0 * L))
  }
  hydra.param @norm    [D]    init = ones
  hydra.param @lm_head [V, D] init = normal(0.02) when not tied

  //===-- What goes into the matrices -----------------------------------------------------------===//

  // A causal convolution of four taps, each channel [B, S, width] by itself, the last tap of the token itself; and silu.
  hydra.def @short_convolution(%x, %w) dims(width) {
    %rows = hydra.pad %x axis = 1 before = 3 after = 0
    %y = hydra.let @tap(%rows, %w, width = width, j = 0) + @tap(%rows, %w, width = width, j = 1)
                 + @tap(%rows, %w, width = width, j = 2) + @tap(%rows, %w, width = width, j = 3)
    %active = hydra.silu %y
    hydra.yield %active
  }
  hydra.def @tap(%rows, %w) dims(width, j) = slice(%rows, axis = 1, start = j, size = S) *
                                             reshape(slice(%w, axis = 1, start = j, size = 1), [1, 1, width])

  // [B, S, H width] as [B, H, S, width].
  hydra.def @heads(%x) dims(width) = transpose(reshape(%x, [B, S, H, width]), [0, 2, 1, 3])

  // Rows of length 1.
  hydra.def @unit(%x) = %x * rsqrt(sum(%x * %x, 3) + 1.0e-6)

  // log(1 + e^x), whatever x.
  hydra.def @softplus(%x) = max(%x, 0) + log(exp(-max(%x, -%x)) + 1)

  // Of a layer's normed input: queries and keys [B, H, S, dk], values [B, H, S, dv], how much is written, and the logarithm
  // of what is left of the matrix [B, H, S, 1].
  hydra.def @projections(%n) {
    %q0 = hydra.let @heads(@short_convolution(linear(%n, @wq), @q_conv, width = Dk), width = dk)
    %k0 = hydra.let @heads(@short_convolution(linear(%n, @wk), @k_conv, width = Dk), width = dk)
    %v = hydra.let @heads(@short_convolution(linear(%n, @wv), @v_conv, width = Dv), width = dv)
    %q, %k = hydra.let @unit(%q0) * (1 / sqrt(dk)), @unit(%k0)
    %beta = hydra.let @heads(sigmoid(linear(%n, @wb)), width = 1)
    %log_alpha = hydra.let when(gated, @heads(@log_decay(%n), width = 1), constant(value = 0, shape = [B, H, S, 1]))
    hydra.yield %q, %k, %v, %beta, %log_alpha
  }
  hydra.def @log_decay(%n) = @softplus(linear(%n, @wa) + reshape(@a_bias, [1, 1, H])) * -exp(reshape(@a_log, [1, 1, H]))

  //===-- Writing and reading, token by token ---------------------------------------------------===//

  // From `start` [B, H, dv, dk]: what the queries read [B, H, S, dv], and the matrix behind the last token.
  hydra.def @by_tokens(%q, %k, %v, %beta, %log_alpha, %start) {
    %o, %end = hydra.scan axis = 2 chunk = 1 over(%qt = %q, %kt = %k, %vt = %v, %bt = %beta, %at = %log_alpha) carry(%s = %start) {
      %kept = hydra.let %s * exp(%at)
      %new = hydra.let when(rule == delta, %vt - matmul(%kt, %kept, transpose_b, dtype = f32), %vt) * %bt
      %next = hydra.let matmul(%new, %kt, %kept, transpose_a, dtype = f32)
      %read = hydra.let matmul(%qt, %next, transpose_b, dtype = f32)
      hydra.yield %read, %next
    }
    hydra.yield %o, %end
  }

  //===-- The same by chunks --------------------------------------------------------------------===//

  // [B, H, S, width] as chunks [B, H, C, T, width], zeros behind the last.
  hydra.def @chunks(%x) dims(C, T, width) = reshape(pad(%x, axis = 2, before = 0, after = T * C - S), [B, H, C, T, width])

  // [B, H, C, T, dv] by the parts of the matrix that its columns belong to, [B, H, P, C, T, dv / P], and back; and
  // [B, H, C, count, width] for each of them.
  hydra.def @parts(%x) dims(C, T) = transpose(reshape(%x, [B, H, C, T, P, dv / P]), [0, 1, 4, 2, 3, 5])
  hydra.def @joined(%x) dims(C, T) = reshape(transpose(%x, [0, 1, 3, 4, 2, 5]), [B, H, C, T, dv])
  hydra.def @shared(%x) dims(C, count, width) = broadcast(reshape(%x, [B, H, 1, C, count, width]), shape = [B, H, P, C, count, width])

  // (I + N) (I + N^2) (I + N^4) …, which is the inverse of I - N where N [B, H, C, T, T] is zero from the diagonal on.
  hydra.def @inverse(%n) dims(T) {
    %identity = hydra.let cast(iota(axis = 3, shape = [1, 1, 1, T, T]) == iota(axis = 4, shape = [1, 1, 1, T, T]), to = f32)
    %rounds, %first = hydra.let iota(axis = 0, shape = [doublings]), %n + %identity
    %inverse, %power = hydra.scan axis = 0 chunk = 1 over(%round = %rounds) carry(%product = %first, %last = %n) {
      %next = hydra.let matmul(%last, %last, full_precision)
      %longer = hydra.let matmul(%product, %next, %product, full_precision)
      hydra.yield %longer, %next
    }
    hydra.yield %inverse
  }

  // With G_t the sum of log alpha from the chunk's first token to t and u_t = beta_t (v_t - alpha_t S_{t-1} k_t), the matrix
  // behind token t is e^{G_t} S + sum over j <= t of e^{G_t - G_j} u_j k_j^T for S in front of the chunk. The u solve
  // (I + A) u = beta v - beta e^G S k,  A_tj = beta_t e^{G_t - G_j} k_t.k_j  for j < t.
  hydra.def @by_chunks(%q, %k, %v, %beta, %log_alpha, %start) dims(C, T) {
    %qs, %ks, %vs = hydra.let @chunks(%q, C = C, T = T, width = dk), @chunks(%k, C = C, T = T, width = dk), @chunks(%v, C = C, T = T, width = dv)
    %betas, %logs = hydra.let @chunks(%beta, C = C, T = T, width = 1), reshape(@chunks(%log_alpha, C = C, T = T, width = 1), [B * H * C, T])
    %until = hydra.let cast(iota(axis = 1, shape = [T, T]) <= iota(axis = 0, shape = [T, T]), to = f32)
    %sums = hydra.let reshape(matmul(%logs, %until, transpose_b, full_precision), [B, H, C, T, 1])
    %row, %column = hydra.let iota(axis = 3, shape = [1, 1, 1, T, T]), iota(axis = 4, shape = [1, 1, 1, T, T])
    %decay = hydra.let exp(select(%column <= %row, %sums - reshape(%sums, [B, H, C, 1, T]), -1.0e30))
    %last = hydra.slice %sums axis = 3 start = T - 1 size = 1
    %left, %kept, %grown = hydra.let exp(%last), exp(%sums), %ks * exp(%last - %sums)

    %written = hydra.let %vs * %betas
    %reads = hydra.let matmul(%qs, %ks, transpose_b, dtype = f32) * %decay
    %of_state = hydra.let %qs * %kept
    %o, %end = hydra.when rule == delta {
      %a = hydra.let select(%column < %row, matmul(%ks, %ks, transpose_b, dtype = f32) * %decay, 0) * %betas
      %inverse = hydra.let @inverse(-%a, T = T)
      %values, %keys = hydra.let matmul(%inverse, %written, dtype = f32), matmul(%inverse, %ks * (%betas * %kept), dtype = f32)
      %both = hydra.concat %keys, %of_state axis = 3
      %bs, %vps = hydra.let @shared(%both, C = C, count = 2 * T, width = dk), @parts(%values, C = C, T = T)
      %gs, %ls = hydra.let @shared(%grown, C = C, count = T, width = dk), @shared(%left, C = C, count = 1, width = 1)
      %start_parts = hydra.let reshape(%start, [B, H, P, dv / P, dk])
      %u_parts, %o_parts, %end_parts = hydra.scan axis = 3 chunk = 1 over(%b1 = %bs, %v1 = %vps, %g1 = %gs, %l1 = %ls) carry(%s = %start_parts) {
        %met = hydra.let matmul(reshape(%b1, [B, H, P, 2 * T, dk]), %s, transpose_b, dtype = f32)
        %u = hydra.let reshape(%v1, [B, H, P, T, dv / P]) - slice(%met, axis = 3, start = 0, size = T)
        %next = hydra.let matmul(%u, reshape(%g1, [B, H, P, T, dk]), %s * reshape(%l1, [B, H, P, 1, 1]), transpose_a, dtype = f32)
        %u1, %o1 = hydra.let reshape(%u, [B, H, P, 1, T, dv / P]), reshape(slice(%met, axis = 3, start = T, size = T), [B, H, P, 1, T, dv / P])
        hydra.yield %u1, %o1, %next
      }
      %us, %from_state = hydra.let @joined(%u_parts, C = C, T = T), @joined(%o_parts, C = C, T = T)
      %end = hydra.let reshape(%end_parts, [B, H, dv, dk])
      %o = hydra.let %from_state + matmul(%reads, %us, dtype = f32)
      hydra.yield %o, %end
    } else {
      %rs, %vps = hydra.let @shared(%of_state, C = C, count = T, width = dk), @parts(%written, C = C, T = T)
      %gs, %ls = hydra.let @shared(%grown, C = C, count = T, width = dk), @shared(%left, C = C, count = 1, width = 1)
      %start_parts = hydra.let reshape(%start, [B, H, P, dv / P, dk])
      %o_parts, %end_parts = hydra.scan axis = 3 chunk = 1 over(%q1 = %rs, %v1 = %vps, %g1 = %gs, %l1 = %ls) carry(%s = %start_parts) {
        %o1 = hydra.let reshape(matmul(reshape(%q1, [B, H, P, T, dk]), %s, transpose_b, dtype = f32), [B, H, P, 1, T, dv / P])
        %next = hydra.let matmul(reshape(%v1, [B, H, P, T, dv / P]), reshape(%g1, [B, H, P, T, dk]), %s * reshape(%l1, [B, H, P, 1, 1]), transpose_a, dtype = f32)
        hydra.yield %o1, %next
      }
      %from_state = hydra.let @joined(%o_parts, C = C, T = T)
      %end = hydra.let reshape(%end_parts, [B, H, dv, dk])
      %o = hydra.let %from_state + matmul(%reads, %written, dtype = f32)
      hydra.yield %o, %end
    }
    %rows = hydra.let slice(reshape(%o, [B, H, T * C, dv]), axis = 2, start = 0, size = S)
    hydra.yield %rows, %end
  }

  // What the queries read [B, H, S, dv]; the matrices go from token to token of a sequence. No chunk is
  // longer than it.
  hydra.def @remember(%q, %k, %v, %beta, %log_alpha) {
    %nothing = hydra.constant value = 0.0 shape = [B, H, dv, dk]
    %o, %end = hydra.scan axis = 2 chunk = S over(%qs = %q, %ks = %k, %vs = %v, %bs = %beta, %as = %log_alpha) carry(%s = %nothing) {
      %read, %next = hydra.when form == chunks {
        %r, %n = hydra.call @by_chunks(%qs, %ks, %vs, %bs, %as, %s, C = ceil(1.0 * S / min(Q, S)), T = min(Q, S))
        hydra.yield %r, %n
      } else {
        %r, %n = hydra.call @by_tokens(%qs, %ks, %vs, %bs, %as, %s)
        hydra.yield %r, %n
      }
      hydra.yield %read, %next
    }
    hydra.yield %o
  }

  //===-- The model -----------------------------------------------------------------------------===//

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let embedding(%tokens, @tok_emb)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @mixer
      %n = hydra.let rms_norm(%x, @norm1, eps = eps)
      %q, %k, %v, %beta, %log_alpha = hydra.call @projections(%n)
      %read = hydra.let transpose(@remember(%q, %k, %v, %beta, %log_alpha), [0, 2, 1, 3])
      %normed = hydra.let reshape(rms_norm(%read, @o_norm, eps = eps), [B, S, Dv])
      %y = hydra.let %x + linear(%normed * silu(linear(%n, @wg)), @wo)

      hydra.section @mlp
      %m = hydra.let rms_norm(%y, @norm2, eps = eps)
      %gate, %up = hydra.let linear(%m, @gate), linear(%m, @up)
      %z = hydra.let %y + linear(silu(%gate) * %up, @down)
      hydra.yield %z
    }
    %final = hydra.let rms_norm(%end, @norm, eps = eps)
    hydra.yield %final
  }

  hydra.def @head() = when(tied, @tok_emb, @lm_head)

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
