// TTT-Linear: a Llama-like decoder whose attention is replaced by a matrix that learns while it reads
// (arXiv:2407.04620, in the dual form). Each head holds a linear map W; every chunk of tokens takes one
// gradient step on it, by which f(z; W) = z + LN(W z) maps keys to values, and reads it with queries.
// models.md section 4.

hydra.model @ttt version 1 {
  hydra.symbols dims(D, F, L, H, V, b0 = 16) reals(eta_base = 0.01, rope = 1.0e4, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(per_head_lr = false, untied = false)
  hydra.derive d = D / H // width of a head
  hydra.derive gates = select(per_head_lr, H, 1)

  hydra.preset @ref           {D = 64,   F = 128,   L = 2,  H = 4,  V = 97, eta_base = 0.5}
  hydra.preset @bytes         {D = 128,  F = 344,   L = 2,  H = 4,  V = 256}
  hydra.preset @debug_tiny    {D = 256,  F = 1024,  L = 4,  H = 4,  V = 4096}
  hydra.preset @bringup_1p3b  {D = 2048, F = 5504,  L = 24, H = 16, V = 128256}
  hydra.preset @mid_35b       {D = 6144, F = 22016, L = 48, H = 48, V = 128256, rope = 5.0e5}
  hydra.preset @ttt_llama_47b {D = 8192, F = 28672, L = 48, H = 64, V = 128256, rope = 5.0e5}
  hydra.preset @ttt_llama_70b {D = 8192, F = 28672, L = 80, H = 64, V = 128256, rope = 5.0e5}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02)
  hydra.stack @layers[L] {
    hydra.param @norm1    [D]       init = ones
    hydra.param @w_q      [D, D]    init = uniform(1 / sqrt(D))
    hydra.param @w_k      [D, D]    init = uniform(1 / sqrt(D))
    hydra.param @w_v      [D, D]    init = uniform(1 / sqrt(D))
    hydra.param @w_o      [D, D]    init = uniform(1 / sqrt(D))
    hydra.param @W0       [H, d, d] init = normal(0.02) // what the heads know before the first token
    hydra.param @ln_w     [H, d]    init = ones
    hydra.param @ln_b     [H, d]    init = zeros
    hydra.param @theta_lr [gates, D] init = uniform(1 / sqrt(D))
    hydra.param @norm2    [D]       init = ones
    hydra.param @gate     [F, D]    init = uniform(1 / sqrt(D))
    hydra.param @up       [F, D]    init = uniform(1 / sqrt(D))
    hydra.param @down     [D, F]    init = uniform(1 / sqrt(F))
  }
  hydra.param @norm    [D]    init = ones
  hydra.param @lm_head [V, D] init = uniform(1 / sqrt(D)) when untied

  // The rows of `x` [B, H, N, d] without mean and with variance 1, and the reciprocal deviations.
  hydra.def @normalise(%x) {
    %mean = hydra.mean %x axes = [3] keep
    %centred = hydra.sub %x, %mean
    %squares = hydra.mul %centred, %centred
    %variance = hydra.mean %squares axes = [3] keep
    %epsilon = hydra.constant value = eps
    %sum = hydra.add %variance, %epsilon
    %r = hydra.rsqrt %sum
    %n = hydra.mul %centred, %r
    hydra.yield %n, %r
  }

  // [B, S, D] as [B, H, S, d].
  hydra.def @heads(%x) {
    %split = hydra.reshape %x shape = [B, S, H, d]
    %y = hydra.transpose %split order = [0, 2, 1, 3]
    hydra.yield %y
  }

  // The same with rotary positions.
  hydra.def @rotated_heads(%x) {
    %split = hydra.reshape %x shape = [B, S, H, d]
    %rotated = hydra.rope %split base = rope
    %y = hydra.transpose %rotated order = [0, 2, 1, 3]
    hydra.yield %y
  }

  // [B, h, S, n] as chunks [B, h, C, b0, n] of b0 tokens, zeros behind the last.
  hydra.def @chunks_of_heads(%x) {
    %padded = hydra.pad %x axis = 2 before = 0 after = b0 * ceil(1.0 * S / b0) - S
    %y = hydra.reshape %padded shape = [B, H, ceil(1.0 * S / b0), b0, d]
    hydra.yield %y
  }

  // Rows [B, H, S, d] that were rotated for positions from 0, rotated further for positions from `position`
  // [1] f32: all of them by the same angles.
  hydra.def @further(%x, %position) {
    %pair = hydra.iota shape = [d / 2] axis = 0 dtype = f32
    %fall = hydra.constant value = -2.0 * log(rope) / d
    %exponent = hydra.mul %pair, %fall
    %frequency = hydra.exp %exponent
    %angle = hydra.mul %frequency, %position
    %cos0 = hydra.cos %angle
    %sin0 = hydra.sin %angle
    %cos = hydra.reshape %cos0 shape = [1, 1, 1, d / 2, 1]
    %sin = hydra.reshape %sin0 shape = [1, 1, 1, d / 2, 1]
    %pairs = hydra.reshape %x shape = [B, H, S, d / 2, 2]
    %x0 = hydra.slice %pairs axis = 4 start = 0 size = 1
    %x1 = hydra.slice %pairs axis = 4 start = 1 size = 1
    %x0c = hydra.mul %x0, %cos
    %x1s = hydra.mul %x1, %sin
    %x0s = hydra.mul %x0, %sin
    %x1c = hydra.mul %x1, %cos
    %y0 = hydra.sub %x0c, %x1s
    %y1 = hydra.add %x0s, %x1c
    %turned = hydra.concat %y0, %y1 axis = 4
    %y = hydra.reshape %turned shape = [B, H, S, d]
    hydra.yield %y
  }

  // Queries, keys, values [B, H, S, d], step widths [B, gates, S, 1] and first weights [B, H, d, d] to what
  // the queries read, and the weights behind the last token. What does not depend on the weights is done for all chunks at once.
  hydra.def @learn_and_read(%q, %k, %v, %eta, %start, %gamma, %beta) {
    %qs = hydra.call @chunks_of_heads(%q)
    %ks = hydra.call @chunks_of_heads(%k)
    %vs = hydra.call @chunks_of_heads(%v)

    // Minus the step width times the derivative of the mean over the chunk's tokens; 0 behind the last.
    %token = hydra.iota shape = [1, 1, S, 1] axis = 2
    %whole = hydra.constant value = b0 * floor(1.0 * S / b0) dtype = i32
    %in_whole = hydra.compare %token, %whole is = "lt"
    %factor = hydra.constant value = -2.0 / b0
    %last_factor = hydra.constant value = -2.0 / max(1, S - b0 * floor(1.0 * S / b0))
    %factors = hydra.select %in_whole, %factor, %last_factor
    %scale = hydra.mul %eta, %factors
    %padded_scale = hydra.pad %scale axis = 2 before = 0 after = b0 * ceil(1.0 * S / b0) - S
    %scales = hydra.reshape %padded_scale shape = [B, gates, ceil(1.0 * S / b0), b0, 1]

    // A query sees the steps of the tokens before it.
    %all = hydra.matmul %qs, %ks transpose_b
    %row = hydra.iota shape = [b0, b0] axis = 0
    %column = hydra.iota shape = [b0, b0] axis = 1
    %earlier = hydra.compare %column, %row is = "lt"
    %zero = hydra.constant value = 0
    %seen = hydra.select %earlier, %all, %zero

    // The walk over chunks: what the weights make of keys and queries, and the steps that keys and values
    // ask for. Every sequence has its own norm's parameters there, whose gradients are summed behind it.
    %gammas = hydra.broadcast %gamma shape = [B, H, 1, d]
    %betas = hydra.broadcast %beta shape = [B, H, 1, d]
    %scales_of_heads = hydra.broadcast %scales shape = [B, H, ceil(1.0 * S / b0), b0, 1]
    %kqs = hydra.concat %ks, %qs axis = 3
    %befores, %steps, %end = hydra.scan axis = 2 chunk = 1 over(%kq1 = %kqs, %k1 = %ks, %v1 = %vs, %s1 = %scales_of_heads) carry(%w = %start) {
      %kq = hydra.reshape %kq1 shape = [B, H, 2 * b0, d]
      %kc = hydra.reshape %k1 shape = [B, H, b0, d]
      %vc = hydra.reshape %v1 shape = [B, H, b0, d]
      %sc = hydra.reshape %s1 shape = [B, H, b0, 1]

      // The derivative of |f(k; W) - v|^2 / 2 in T = W k.
      %both = hydra.matmul %kq, %w transpose_b dtype = f32
      %t = hydra.slice %both axis = 2 start = 0 size = b0
      %before = hydra.slice %both axis = 2 start = b0 size = b0
      %x, %r = hydra.call @normalise(%t)
      %scaled = hydra.mul %x, %gammas
      %shifted = hydra.add %scaled, %betas
      %y = hydra.add %kc, %shifted
      %g = hydra.sub %y, %vc
      %gh = hydra.mul %g, %gammas
      %mean = hydra.mean %gh axes = [3] keep
      %products = hydra.mul %gh, %x
      %slope = hydra.mean %products axes = [3] keep
      %along = hydra.mul %x, %slope
      %rest = hydra.sub %gh, %mean
      %across = hydra.sub %rest, %along
      %u = hydra.mul %across, %r
      %step = hydra.mul %u, %sc

      %next = hydra.matmul %step, %kc, %w transpose_a dtype = f32
      %before1 = hydra.reshape %before shape = [B, H, 1, b0, d]
      %step1 = hydra.reshape %step shape = [B, H, 1, b0, d]
      hydra.yield %before1, %step1, %next
    }
    %taken = hydra.matmul %seen, %steps dtype = f32
    %tqs = hydra.add %befores, %taken
    %joined = hydra.reshape %tqs shape = [B, H, b0 * ceil(1.0 * S / b0), d]
    %tq_all = hydra.slice %joined axis = 2 start = 0 size = S
    %nq, %rq = hydra.call @normalise(%tq_all)
    %sq = hydra.mul %nq, %gamma
    %oq = hydra.add %sq, %beta
    %z = hydra.add %q, %oq
    hydra.yield %z, %end
  }

  // Of a layer's input: queries, keys, values (rows of heads, without positions), and step widths.
  hydra.def @projections(%x) {
    %norm1 = hydra.use @norm1
    %w_q = hydra.use @w_q
    %w_k = hydra.use @w_k
    %w_v = hydra.use @w_v
    %n = hydra.rms_norm %x, %norm1 eps = eps
    %q = hydra.linear %n, %w_q
    %k = hydra.linear %n, %w_k
    %v0 = hydra.linear %n, %w_v
    %v = hydra.call @heads(%v0)

    // How far each token's step goes, for all heads alike or for each its own.
    %theta = hydra.use @theta_lr
    %logit = hydra.linear %n, %theta
    %open = hydra.sigmoid %logit
    %largest = hydra.constant value = eta_base
    %width = hydra.mul %open, %largest
    %by_gate = hydra.transpose %width order = [0, 2, 1]
    %eta = hydra.reshape %by_gate shape = [B, gates, S, 1]
    hydra.yield %q, %k, %v, %eta
  }

  // The rest of a layer behind its input `x`: what was read with the weights `w`, SwiGLU; and the weights
  // behind the last token.
  hydra.def @rest(%x, %q, %k, %v, %eta, %w) {
    %ln_w = hydra.use @ln_w
    %ln_b = hydra.use @ln_b
    %w_o = hydra.use @w_o
    %gamma = hydra.reshape %ln_w shape = [1, H, 1, d]
    %beta = hydra.reshape %ln_b shape = [1, H, 1, d]
    %z, %end = hydra.call @learn_and_read(%q, %k, %v, %eta, %w, %gamma, %beta)
    %joined = hydra.transpose %z order = [0, 2, 1, 3]
    %mixed = hydra.reshape %joined shape = [B, S, D]
    %a = hydra.linear %mixed, %w_o
    %y = hydra.add %x, %a

    %norm2 = hydra.use @norm2
    %w_gate = hydra.use @gate
    %w_up = hydra.use @up
    %w_down = hydra.use @down
    %m = hydra.rms_norm %y, %norm2 eps = eps
    %gate = hydra.linear %m, %w_gate
    %up = hydra.linear %m, %w_up
    %act = hydra.silu %gate
    %hidden = hydra.mul %act, %up
    %f = hydra.linear %hidden, %w_down
    %out = hydra.add %y, %f
    hydra.yield %out, %end
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %table = hydra.use @tok_emb
    %start = hydra.embedding %tokens, %table
    %end = hydra.for @layers carry(%x = %start) {
      %q0, %k0, %v, %eta = hydra.call @projections(%x)
      %q = hydra.call @rotated_heads(%q0)
      %k = hydra.call @rotated_heads(%k0)
      %W0 = hydra.use @W0
      %one = hydra.reshape %W0 shape = [1, H, d, d]
      %w = hydra.broadcast %one shape = [B, H, d, d]
      %out, %after = hydra.call @rest(%x, %q, %k, %v, %eta, %w)
      hydra.yield %out
    }
    %norm = hydra.use @norm
    %final = hydra.rms_norm %end, %norm eps = eps
    hydra.yield %final
  }

  hydra.def @head() {
    %head = hydra.when untied {
      %lm_head = hydra.use @lm_head
      hydra.yield %lm_head
    } else {
      %tok_emb = hydra.use @tok_emb
      hydra.yield %tok_emb
    }
    hydra.yield %head
  }

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final = hydra.call @trunk(%tokens)
    %head = hydra.call @head()
    %loss = hydra.linear_cross_entropy %final, %head, %labels
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %final = hydra.call @trunk(%tokens)
    %head = hydra.call @head()
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits
  }

  // The weights of all layers before the first token [L, B, H, d, d]: what @continue begins with.
  hydra.entry @begin() dims(B, S) {
    %states = hydra.for @layers {
      %W0 = hydra.use @W0
      %one = hydra.reshape %W0 shape = [1, H, d, d]
      %w = hydra.broadcast %one shape = [B, H, d, d]
      hydra.yield %w
    }
    hydra.return states = %states
  }

  // The next S tokens of sequences that were read up to `position` [1]: scores, and the weights behind them.
  // In one call or several, the same where calls begin at multiples of b0 tokens; token by token (S = 1), each
  // token's step is taken at the weights that it meets.
  hydra.entry @continue(%tokens: [B, S] i32, %before: [L, B, H, d, d] f32, %position: [1] f32) dims(B, S) {
    %table = hydra.use @tok_emb
    %start = hydra.embedding %tokens, %table
    %states, %end = hydra.for @layers over(%w = %before) carry(%x = %start) {
      %q0, %k0, %v, %eta = hydra.call @projections(%x)
      %q1 = hydra.call @rotated_heads(%q0)
      %k1 = hydra.call @rotated_heads(%k0)
      %q = hydra.call @further(%q1, %position)
      %k = hydra.call @further(%k1, %position)
      %out, %after = hydra.call @rest(%x, %q, %k, %v, %eta, %w)
      hydra.yield %after, %out
    }
    %norm = hydra.use @norm
    %final = hydra.rms_norm %end, %norm eps = eps
    %head = hydra.call @head()
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits, states = %states
  }
}
