// Megalodon (arXiv:2404.08801): attention within chunks of a fixed length, and a complex exponential moving
// average that carries everything else; norms over all that was seen so far; residuals over two hops.
// models.md section 5.
//
// The moving average works on all chunks of Q tokens at once: products within a chunk, and N complex numbers a
// channel from chunk to chunk by a prefix scan. With `ema = sequential` it is the plain recurrence.
//
// With `packed` a row holds several documents, each ended by the token `eos`, and is what they would be in rows of their
// own: nothing flows from one to the next, positions and chunks begin anew.

hydra.model @megalodon version 1 {
  hydra.symbols dims(V = 32000, D, L, H, z, v, F, N = 16, Cs, G, Q = 64, eos = 0)
                choices(ema = scan of (scan, sequential))
                reals(eps = 1.0e-5, rope = 1.0e4)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(swiglu = false, tied = false, scale_emb = false, packed = false)

  hydra.derive dh = z / H // width of a head's queries and keys
  hydra.derive dv = v / H // and of its values

  hydra.preset @ref
      {D = 64,   L = 2,  H = 2, z = 32,   v = 64,   F = 128,   Cs = 16,   G = 8,  N = 4, V = 97, Q = 8}
  hydra.preset @bytes
      {D = 128,  L = 2,  H = 2, z = 64,   v = 256,  F = 344,   Cs = 128,  G = 16, N = 8, V = 256,
       tied = true}
  hydra.preset @mega200M
      {D = 1024, L = 12, H = 1, z = 256,  v = 2048, F = 2560,  Cs = 2048, G = 32}
  hydra.preset @"mega1.3B"
      {D = 2048, L = 24, H = 2, z = 512,  v = 4096, F = 4864,  Cs = 2048, G = 64}
  hydra.preset @"mega1.3B-pg19"
      {D = 2048, L = 24, H = 2, z = 512,  v = 4096, F = 3584,  Cs = 2048, G = 64, swiglu = true,
       tied = true, scale_emb = true}
  hydra.preset @"mega7.1B"
      {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 11264, Cs = 2048, G = 64}
  hydra.preset @"mega7.3B"
      {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 8192,  Cs = 2048, G = 64, swiglu = true}
  hydra.preset @"paper-7B"
      {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 8192,  Cs = 4096, G = 64, swiglu = true,
       rope = 1.0e5}
  hydra.preset @"profile-train"
      {D = 384,  L = 6,  H = 3, z = 192,  v = 384,  F = 1024,  Cs = 512,  G = 32, tied = true, N = 8,
       V = 256, adam_eps = 1.0e-6}
  hydra.preset @"profile-infer"
      {D = 512,  L = 4,  H = 8, z = 1024, v = 1024, F = 2048,  Cs = 256,  G = 32, tied = true,
       V = 256}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @embed [V, D] init = trunc_normal(1 / sqrt(D), 3.0)
  hydra.stack @layers[L] {
    // TimestepNorm.
    hydra.param @tn_w     [D]    init = zeros
    hydra.param @tn_b     [D]    init = zeros
    // The moving average.
    hydra.param @alpha    [D, N] init = normal(0.2)
    hydra.param @delta    [D, N] init = normal(0.2)
    hydra.param @theta    [D]
        init = shuffle(logit(clamp(pow(D, -(index + 1.0) / D), 1.0e-6, 1 - 1.0e-6)))
    hydra.param @gamma_re [D, N] init = normal(1.0)
    hydra.param @gamma_im [D, N] init = zeros
    hydra.param @omega    [D]    init = trunc_normal(0.25, 4.0)
    // Attention.
    hydra.param @rms_w    [D]    init = zeros
    hydra.param @wz       [z, D] init = normal(1 / sqrt(3 * D))
    hydra.param @bz       [z]    init = zeros
    hydra.param @wv       [v, D] init = normal(1 / sqrt(3 * D))
    hydra.param @bv       [v]    init = zeros
    hydra.param @wr       [v, D] init = normal(1 / sqrt(3 * D))
    hydra.param @br       [v]    init = zeros
    hydra.param @wh1      [D, D] init = normal(1 / sqrt(3 * D))
    hydra.param @bh1      [D]    init = zeros
    hydra.param @wh2      [D, v] init = normal(1 / sqrt(3 * v))
    hydra.param @qk_gamma [2, z] init = zeros
    hydra.param @qk_beta  [2, z] init = zeros
    // Feed-forward.
    hydra.param @ffn_ln_w [D]    init = zeros
    hydra.param @ffn_ln_b [D]    init = zeros
    hydra.param @fc1      [F, D] init = normal(1 / sqrt(3 * D))
    hydra.param @fc2      [D, F] init = normal(1 / sqrt(3 * F))
    hydra.param @fc3      [F, D] init = normal(1 / sqrt(3 * D)) when swiglu
  }
  hydra.param @norm_w  [D]    init = zeros
  hydra.param @norm_b  [D]    init = zeros
  hydra.param @lm_head [V, D] init = trunc_normal(1 / sqrt(D), 3.0) when not tied

  //===-- TimestepNorm ------------------------------------------------------------------------===//

  // Sums over all rows up to each, of [B, S, 2 G]: within chunks of 128 rows, and over the chunks before.
  hydra.def @sums_so_far(%x) {
    %padded = hydra.pad %x axis = 1 before = 0 after = 128 * ceil(1.0 * S / 128) - S
    %chunks = hydra.reshape %padded shape = [B, ceil(1.0 * S / 128), 128, 2 * G]
    %by_group = hydra.transpose %chunks order = [0, 1, 3, 2]
    %parts = hydra.reshape %by_group shape = [B * ceil(1.0 * S / 128) * 2 * G, 128]
    %row = hydra.iota shape = [128, 128] axis = 0
    %column = hydra.iota shape = [128, 128] axis = 1
    %until = hydra.compare %column, %row is = "le"
    %weights = hydra.cast %until to = f32
    %own = hydra.matmul %parts, %weights transpose_b full_precision

    %totals = hydra.slice %own axis = 1 start = 127 size = 1
    %by_chunk = hydra.reshape %totals shape = [B, ceil(1.0 * S / 128), 2 * G]
    %lines = hydra.transpose %by_chunk order = [0, 2, 1]
    %sums = hydra.reshape %lines shape = [B * 2 * G, ceil(1.0 * S / 128)]
    %to = hydra.iota shape = [ceil(1.0 * S / 128), ceil(1.0 * S / 128)] axis = 0
    %from = hydra.iota shape = [ceil(1.0 * S / 128), ceil(1.0 * S / 128)] axis = 1
    %earlier = hydra.compare %from, %to is = "lt"
    %chunk_weights = hydra.cast %earlier to = f32
    %before = hydra.matmul %sums, %chunk_weights transpose_b full_precision

    %own_by_group = hydra.reshape %own shape = [B, ceil(1.0 * S / 128), 2 * G, 128]
    %within = hydra.transpose %own_by_group order = [0, 1, 3, 2]
    %before_by_group = hydra.reshape %before shape = [B, 2 * G, ceil(1.0 * S / 128), 1]
    %offset = hydra.transpose %before_by_group order = [0, 2, 3, 1]
    %all = hydra.add %within, %offset
    %rows_of_all = hydra.reshape %all shape = [B, 128 * ceil(1.0 * S / 128), 2 * G]
    %y = hydra.slice %rows_of_all axis = 1 start = 0 size = S
    hydra.yield %y
  }

  // Mean and variance of a group over everything up to a token. Moments are taken about the first token's
  // mean: then nothing cancels.
  hydra.def @timestep_norm(%x, %w, %b) {
    %m, %own = hydra.call @of_groups(%x)
    %means = hydra.reshape %m shape = [B, S, G]
    %anchor = hydra.slice %means axis = 1 start = 0 size = 1
    %moments = hydra.call @moments_about(%means, %own, %anchor)
    %moment_sums = hydra.call @sums_so_far(%moments)
    %first_sum = hydra.slice %moment_sums axis = 2 start = 0 size = G
    %second_sum = hydra.slice %moment_sums axis = 2 start = G size = G
    %t = hydra.iota shape = [1, S, 1] axis = 1 dtype = f32
    %one = hydra.constant value = 1
    %count = hydra.add %t, %one
    %mean, %variance, %r = hydra.call @statistics(%first_sum, %second_sum, %count, %anchor)
    %y = hydra.call @normalised(%x, %mean, %r, %w, %b)
    hydra.yield %y
  }

  // Mean, variance and reciprocal deviation of as many tokens as `count`, from sums of their moments about `anchor`.
  hydra.def @statistics(%first_sum, %second_sum, %count, %anchor) {
    %mu = hydra.div %first_sum, %count
    %moment = hydra.div %second_sum, %count
    %mu_squared = hydra.mul %mu, %mu
    %variance = hydra.sub %moment, %mu_squared
    %epsilon = hydra.constant value = eps
    %positive = hydra.add %variance, %epsilon
    %r = hydra.rsqrt %positive
    %mean = hydra.add %mu, %anchor
    hydra.yield %mean, %variance, %r
  }

  // Of a group's channels in every token: mean [B, S, G, 1] and variance [B, S, G].
  hydra.def @of_groups(%x) {
    %groups = hydra.reshape %x shape = [B, S, G, D / G]
    %m = hydra.mean %groups axes = [3] keep
    %centred = hydra.sub %groups, %m
    %squares = hydra.mul %centred, %centred
    %own = hydra.mean %squares axes = [3]
    hydra.yield %m, %own
  }

  // First and second moments of groups about `anchor` [B, S, 2 G].
  hydra.def @moments_about(%means, %own, %anchor) {
    %shifted = hydra.sub %means, %anchor
    %distances = hydra.mul %shifted, %shifted
    %second = hydra.add %own, %distances
    %moments = hydra.concat %shifted, %second axis = 2
    hydra.yield %moments
  }

  // The same norm over everything in a token's document up to it. `begins` [B, S, 1] marks first tokens.
  hydra.def @timestep_norm_of_documents(%x, %w, %b, %begins, %position) {
    %m, %own = hydra.call @of_groups(%x)
    %means = hydra.reshape %m shape = [B, S, G]
    %none = hydra.constant value = 0
    // The first token's mean, of every document, which has no derivative: it cancels.
    %first, %begun = hydra.prefix_scan axis = 1 over(%means, %begins) combine(%before, %b0) with(%here, %b1) {
      %new = hydra.compare %b1, %none is = "gt"
      %last = hydra.select %new, %here, %before
      %any = hydra.max %b0, %b1
      hydra.yield %last, %any
    }
    %anchor = hydra.detach %first
    %moments = hydra.call @moments_about(%means, %own, %anchor)
    %sums, %begun2 = hydra.prefix_scan axis = 1 over(%moments, %begins) combine(%before, %b0) with(%here, %b1) {
      %new = hydra.compare %b1, %none is = "gt"
      %both = hydra.add %before, %here
      %sum = hydra.select %new, %here, %both
      %any = hydra.max %b0, %b1
      hydra.yield %sum, %any
    }
    %first_sum = hydra.slice %sums axis = 2 start = 0 size = G
    %second_sum = hydra.slice %sums axis = 2 start = G size = G
    %one = hydra.constant value = 1
    %count = hydra.add %position, %one
    %mean, %variance, %r = hydra.call @statistics(%first_sum, %second_sum, %count, %anchor)
    %y = hydra.call @normalised(%x, %mean, %r, %w, %b)
    hydra.yield %y
  }

  // Groups of channels without their mean [B, S, G], times their reciprocal deviation.
  hydra.def @normalised(%x, %mean, %r, %w, %b) {
    %groups = hydra.reshape %x shape = [B, S, G, D / G]
    %mean_of_group = hydra.reshape %mean shape = [B, S, G, 1]
    %r_of_group = hydra.reshape %r shape = [B, S, G, 1]
    %off = hydra.sub %groups, %mean_of_group
    %scaled = hydra.mul %off, %r_of_group
    %n = hydra.reshape %scaled shape = [B, S, D]
    %one = hydra.constant value = 1
    %factor = hydra.add %w, %one
    %y0 = hydra.mul %n, %factor
    %y = hydra.add %y0, %b
    hydra.yield %y
  }

  // The same behind `seen` [1] tokens whose groups had this mean and variance [2, B, G]; also those behind the
  // last token.
  hydra.def @timestep_norm_behind(%x, %w, %b, %before, %seen) {
    %mean0 = hydra.slice %before axis = 0 start = 0 size = 1
    %variance0 = hydra.slice %before axis = 0 start = 1 size = 1
    %old_mean = hydra.reshape %mean0 shape = [B, 1, G]
    %old_variance = hydra.reshape %variance0 shape = [B, 1, G]
    %m, %own = hydra.call @of_groups(%x)
    %means = hydra.reshape %m shape = [B, S, G]
    // Moments about the old mean, or the first token's.
    %first = hydra.slice %means axis = 1 start = 0 size = 1
    %zero = hydra.constant value = 0
    %one = hydra.constant value = 1
    %begun = hydra.compare %seen, %zero is = "gt"
    %anchor = hydra.select %begun, %old_mean, %first
    %moments = hydra.call @moments_about(%means, %own, %anchor)
    %sums = hydra.call @sums_so_far(%moments)
    %first_sum = hydra.slice %sums axis = 2 start = 0 size = G
    %second_new = hydra.slice %sums axis = 2 start = G size = G
    %second_old = hydra.mul %old_variance, %seen
    %second_sum = hydra.add %second_new, %second_old
    %t = hydra.iota shape = [1, S, 1] axis = 1 dtype = f32
    %t1 = hydra.add %t, %one
    %count = hydra.add %t1, %seen
    %mean, %variance, %r = hydra.call @statistics(%first_sum, %second_sum, %count, %anchor)
    %y = hydra.call @normalised(%x, %mean, %r, %w, %b)
    %last_mean = hydra.slice %mean axis = 1 start = S - 1 size = 1
    %last_variance = hydra.slice %variance axis = 1 start = S - 1 size = 1
    %mean1 = hydra.reshape %last_mean shape = [1, B, G]
    %variance1 = hydra.reshape %last_variance shape = [1, B, G]
    %after = hydra.concat %mean1, %variance1 axis = 0
    hydra.yield %y, %after
  }

  //===-- The moving average ------------------------------------------------------------------===//

  // rho^j (cos, sin)(j phi) for exponents %j [1, n, 1]: two tensors [D, n, N].
  hydra.def @powers(%log_rho, %phi, %j) {
    %logs = hydra.reshape %log_rho shape = [D, 1, N]
    %angles = hydra.reshape %phi shape = [D, 1, N]
    %exponent = hydra.mul %logs, %j
    %size = hydra.exp %exponent
    %angle = hydra.mul %angles, %j
    %cos = hydra.cos %angle
    %sin = hydra.sin %angle
    %re = hydra.mul %size, %cos
    %im = hydra.mul %size, %sin
    hydra.yield %re, %im
  }

  // What the parameters of the moving average stand for: log |q|, arg q, p and c, all [D, N].
  hydra.def @average_terms(%alpha, %delta, %theta, %gamma_re, %gamma_im) {
    %one = hydra.constant value = 1
    %p = hydra.sigmoid %alpha
    %forget = hydra.sigmoid %delta
    %lost = hydra.mul %p, %forget
    %rho = hydra.sub %one, %lost
    %log_rho = hydra.log %rho
    %turn = hydra.sigmoid %theta
    %turns = hydra.reshape %turn shape = [D, 1]
    %number = hydra.iota shape = [1, N] axis = 1 dtype = f32
    %order = hydra.add %number, %one
    %step = hydra.constant value = 6.283185307179586 / N
    %frequency = hydra.mul %order, %step
    %phi = hydra.mul %turns, %frequency
    %norm = hydra.constant value = 1 / sqrt(N)
    %c_re = hydra.mul %gamma_re, %norm
    %c_im = hydra.mul %gamma_im, %norm
    hydra.yield %log_rho, %phi, %p, %c_re, %c_im
  }

  // Numbers of channels, for each sequence: [B, 1, D, N].
  hydra.def @of_all_sequences(%x) {
    %one = hydra.reshape %x shape = [1, 1, D, N]
    %all = hydra.broadcast %one shape = [B, 1, D, N]
    hydra.yield %all
  }

  // One step: h = q h + p x for N complex numbers a channel [B, 1, D, N], and y = sum over n of Re(c h).
  hydra.def @average_step(%x, %h_re, %h_im, %q_re, %q_im, %p, %c_re, %c_im) {
    %in = hydra.mul %x, %p
    %h0 = hydra.mul %q_re, %h_re
    %h1 = hydra.mul %q_im, %h_im
    %h2 = hydra.sub %h0, %h1
    %next_re = hydra.add %h2, %in
    %h3 = hydra.mul %q_re, %h_im
    %h4 = hydra.mul %q_im, %h_re
    %next_im = hydra.add %h3, %h4
    %y0 = hydra.mul %c_re, %next_re
    %y1 = hydra.mul %c_im, %next_im
    %y2 = hydra.sub %y0, %y1
    %y = hydra.sum %y2 axes = [3]
    hydra.yield %y, %next_re, %next_im
  }

  // q, p and c for each sequence: every one has its own factors in the walk, whose gradients are summed behind it.
  hydra.def @factors(%log_rho, %phi, %p, %c_re, %c_im) {
    %j = hydra.constant value = 1 shape = [1, 1, 1]
    %q_re0, %q_im0 = hydra.call @powers(%log_rho, %phi, %j)
    %q_re = hydra.call @of_all_sequences(%q_re0)
    %q_im = hydra.call @of_all_sequences(%q_im0)
    %ps = hydra.call @of_all_sequences(%p)
    %cs_re = hydra.call @of_all_sequences(%c_re)
    %cs_im = hydra.call @of_all_sequences(%c_im)
    hydra.yield %q_re, %q_im, %ps, %cs_re, %cs_im
  }

  // One token after the other from `start`: y [B, S, D], and the last h.
  hydra.def @average_by_tokens(%x, %log_rho, %phi, %p, %c_re, %c_im, %start_re, %start_im) {
    %q_re, %q_im, %ps, %cs_re, %cs_im = hydra.call @factors(%log_rho, %phi, %p, %c_re, %c_im)
    %inputs = hydra.reshape %x shape = [B, S, D, 1]
    %y, %end_re, %end_im = hydra.scan axis = 1 chunk = 1 over(%xt = %inputs) carry(%h_re = %start_re, %h_im = %start_im) {
      %yt, %next_re, %next_im = hydra.call @average_step(%xt, %h_re, %h_im, %q_re, %q_im, %ps, %cs_re, %cs_im)
      hydra.yield %yt, %next_re, %next_im
    }
    hydra.yield %y, %end_re, %end_im
  }

  // The same, from zero where a document begins: `begins` [B, S, 1].
  hydra.def @average_of_documents(%x, %log_rho, %phi, %p, %c_re, %c_im, %begins) {
    %q_re, %q_im, %ps, %cs_re, %cs_im = hydra.call @factors(%log_rho, %phi, %p, %c_re, %c_im)
    %inputs = hydra.reshape %x shape = [B, S, D, 1]
    %one = hydra.constant value = 1
    %goes_on = hydra.sub %one, %begins
    %keeps = hydra.reshape %goes_on shape = [B, S, 1, 1]
    %none = hydra.constant value = 0 shape = [B, 1, D, N]
    %y, %end_re, %end_im = hydra.scan axis = 1 chunk = 1 over(%xt = %inputs, %keep = %keeps) carry(%h_re = %none, %h_im = %none) {
      %kept_re = hydra.mul %h_re, %keep
      %kept_im = hydra.mul %h_im, %keep
      %yt, %next_re, %next_im = hydra.call @average_step(%xt, %kept_re, %kept_im, %q_re, %q_im, %ps, %cs_re, %cs_im)
      hydra.yield %yt, %next_re, %next_im
    }
    hydra.yield %y
  }

  // The same for all chunks of Q tokens at once.
  hydra.def @average_by_chunks(%x, %log_rho, %phi, %p, %c_re2, %c_im2) {
    %one = hydra.constant value = 1
    %c_re = hydra.reshape %c_re2 shape = [D, 1, N]
    %c_im = hydra.reshape %c_im2 shape = [D, 1, N]
    %inputs = hydra.reshape %p shape = [D, 1, N]
    %padded = hydra.pad %x axis = 1 before = 0 after = Q * ceil(1.0 * S / Q) - S
    %chunks = hydra.reshape %padded shape = [B, ceil(1.0 * S / Q), Q, D]
    %channels = hydra.transpose %chunks order = [3, 2, 1, 0]
    %xc = hydra.reshape %channels shape = [D, Q, ceil(1.0 * S / Q) * B]

    // What a token gets from those of its chunk: the kernel sum over n of Re(c p q^(t - s)), as a matrix.
    %j = hydra.iota shape = [1, Q, 1] axis = 1 dtype = f32
    %q_re, %q_im = hydra.call @powers(%log_rho, %phi, %j)
    %k_re = hydra.mul %q_re, %c_re
    %k_im = hydra.mul %q_im, %c_im
    %k = hydra.sub %k_re, %k_im
    %kp = hydra.mul %k, %inputs
    %kernel = hydra.sum %kp axes = [2]
    %t = hydra.iota shape = [Q, Q, Q] axis = 0
    %s = hydra.iota shape = [Q, Q, Q] axis = 1
    %distance = hydra.sub %t, %s
    %which = hydra.iota shape = [Q, Q, Q] axis = 2
    %equal = hydra.compare %distance, %which is = "eq"
    %places = hydra.cast %equal to = f32
    %one_of = hydra.reshape %places shape = [Q * Q, Q]
    %flat = hydra.matmul %kernel, %one_of transpose_b full_precision
    %matrix = hydra.reshape %flat shape = [D, Q, Q]
    %own = hydra.matmul %matrix, %xc full_precision

    // What every chunk adds to the state: p sum of q^(Q - 1 - s) x_s, real and imaginary parts.
    %last = hydra.constant value = Q - 1
    %back = hydra.sub %last, %j
    %b_re0, %b_im0 = hydra.call @powers(%log_rho, %phi, %back)
    %b_re = hydra.mul %b_re0, %inputs
    %b_im = hydra.mul %b_im0, %inputs
    %b = hydra.concat %b_re, %b_im axis = 2
    %added = hydra.matmul %b, %xc transpose_a full_precision
    %states = hydra.reshape %added shape = [D, 2, N, ceil(1.0 * S / Q), B]

    // The state behind every chunk, h' = q^Q h + what it adds, as a scan over factors and terms: real and
    // imaginary parts of either, one tensor.
    %all = hydra.constant value = Q shape = [1, 1, 1]
    %d_re, %d_im = hydra.call @powers(%log_rho, %phi, %all)
    %d = hydra.concat %d_re, %d_im axis = 1
    %d_once = hydra.reshape %d shape = [D, 2, N, 1, 1]
    %factors = hydra.broadcast %d_once shape = [D, 2, N, ceil(1.0 * S / Q), B]
    %terms = hydra.concat %factors, %states axis = 1
    %sums = hydra.prefix_scan axis = 3 over(%terms) combine(%before) with(%here) {
      %a_re = hydra.slice %before axis = 1 start = 0 size = 1
      %a_im = hydra.slice %before axis = 1 start = 1 size = 1
      %g_re = hydra.slice %before axis = 1 start = 2 size = 1
      %g_im = hydra.slice %before axis = 1 start = 3 size = 1
      %e_re = hydra.slice %here axis = 1 start = 0 size = 1
      %e_im = hydra.slice %here axis = 1 start = 1 size = 1
      %h_re = hydra.slice %here axis = 1 start = 2 size = 1
      %h_im = hydra.slice %here axis = 1 start = 3 size = 1
      %m0 = hydra.mul %a_re, %e_re
      %m1 = hydra.mul %a_im, %e_im
      %m_re = hydra.sub %m0, %m1
      %m2 = hydra.mul %a_re, %e_im
      %m3 = hydra.mul %a_im, %e_re
      %m_im = hydra.add %m2, %m3
      %n0 = hydra.mul %e_re, %g_re
      %n1 = hydra.mul %e_im, %g_im
      %n2 = hydra.sub %n0, %n1
      %n_re = hydra.add %n2, %h_re
      %n3 = hydra.mul %e_re, %g_im
      %n4 = hydra.mul %e_im, %g_re
      %n5 = hydra.add %n3, %n4
      %n_im = hydra.add %n5, %h_im
      %both = hydra.concat %m_re, %m_im, %n_re, %n_im axis = 1
      hydra.yield %both
    }
    %behind = hydra.slice %sums axis = 1 start = 2 size = 2

    // What a token gets from the chunks before: Re(c q^(t + 1) h).
    %j1 = hydra.add %j, %one
    %r_re, %r_im = hydra.call @powers(%log_rho, %phi, %j1)
    %f0 = hydra.mul %r_re, %c_re
    %f1 = hydra.mul %r_im, %c_im
    %f_re = hydra.sub %f0, %f1
    %f2 = hydra.mul %r_re, %c_im
    %f3 = hydra.mul %r_im, %c_re
    %f4 = hydra.add %f2, %f3
    %f_im = hydra.neg %f4
    %f = hydra.concat %f_re, %f_im axis = 2
    %later = hydra.pad %behind axis = 3 before = 1 after = 0
    %ahead = hydra.slice %later axis = 3 start = 0 size = ceil(1.0 * S / Q)
    %h = hydra.reshape %ahead shape = [D, 2 * N, ceil(1.0 * S / Q) * B]
    %from = hydra.matmul %f, %h full_precision

    %mixed = hydra.add %own, %from
    %by_chunk = hydra.reshape %mixed shape = [D, Q, ceil(1.0 * S / Q), B]
    %tokens_first = hydra.transpose %by_chunk order = [3, 2, 1, 0]
    %joined = hydra.reshape %tokens_first shape = [B, Q * ceil(1.0 * S / Q), D]
    %y = hydra.slice %joined axis = 1 start = 0 size = S
    hydra.yield %y
  }

  // [B, S, D]: the average of all channels, and omega x.
  hydra.def @moving_average(%x, %alpha, %delta, %theta, %gamma_re, %gamma_im, %omega, %begins) {
    %log_rho, %phi, %p, %c_re, %c_im = hydra.call @average_terms(%alpha, %delta, %theta, %gamma_re, %gamma_im)
    %averaged = hydra.when packed {
      %a = hydra.call @average_of_documents(%x, %log_rho, %phi, %p, %c_re, %c_im, %begins)
      hydra.yield %a
    } else {
      %a = hydra.call @average_of_rows(%x, %log_rho, %phi, %p, %c_re, %c_im)
      hydra.yield %a
    }
    %skipped = hydra.mul %x, %omega
    %y = hydra.add %averaged, %skipped
    hydra.yield %y
  }

  hydra.def @average_of_rows(%x, %log_rho, %phi, %p, %c_re, %c_im) {
    %averaged = hydra.when ema == sequential {
      %none = hydra.constant value = 0 shape = [B, 1, D, N]
      %a, %end_re, %end_im = hydra.call @average_by_tokens(%x, %log_rho, %phi, %p, %c_re, %c_im, %none, %none)
      hydra.yield %a
    } else {
      %a = hydra.call @average_by_chunks(%x, %log_rho, %phi, %p, %c_re, %c_im)
      hydra.yield %a
    }
    hydra.yield %averaged
  }

  //===-- The model ---------------------------------------------------------------------------===//

  // One row of gamma and beta: queries or keys from their normalised rows [B, S, H, dh], without positions.
  hydra.def @affine(%x, %gamma, %beta) {
    %one = hydra.constant value = 1
    %factor = hydra.add %gamma, %one
    %factors = hydra.reshape %factor shape = [1, 1, H, dh]
    %offsets = hydra.reshape %beta shape = [1, 1, H, dh]
    %scaled = hydra.mul %x, %factors
    %y = hydra.add %scaled, %offsets
    hydra.yield %y
  }

  hydra.def @embedded(%tokens) {
    %table = hydra.use @embed
    %rows = hydra.embedding %tokens, %table
    %start = hydra.when scale_emb {
      %factor = hydra.constant value = sqrt(D)
      %scaled = hydra.mul %rows, %factor
      hydra.yield %scaled
    } else {
      hydra.yield %rows
    }
    hydra.yield %start
  }

  // Of the norm of a layer's input and its average over time: what attention works on. Queries and keys share
  // a projection.
  hydra.def @projections(%xt, %average) {
    %one = hydra.constant value = 1
    %rms_w = hydra.use @rms_w
    %rms_factor = hydra.add %rms_w, %one
    %mx = hydra.rms_norm %average, %rms_factor eps = eps

    %wz = hydra.use @wz
    %bz = hydra.use @bz
    %z0 = hydra.linear %mx, %wz, %bz
    %heads = hydra.reshape %z0 shape = [B, S, H, dh]
    %squares = hydra.mul %heads, %heads
    %mean = hydra.mean %squares axes = [3] keep
    %epsilon = hydra.constant value = eps
    %positive = hydra.add %mean, %epsilon
    %r_z = hydra.rsqrt %positive
    %zn = hydra.mul %heads, %r_z
    %qk_gamma = hydra.use @qk_gamma
    %qk_beta = hydra.use @qk_beta
    %gamma_q = hydra.slice %qk_gamma axis = 0 start = 0 size = 1
    %gamma_k = hydra.slice %qk_gamma axis = 0 start = 1 size = 1
    %beta_q = hydra.slice %qk_beta axis = 0 start = 0 size = 1
    %beta_k = hydra.slice %qk_beta axis = 0 start = 1 size = 1
    %root = hydra.constant value = 1 / sqrt(dh)
    %zs = hydra.mul %zn, %root
    %q = hydra.call @affine(%zs, %gamma_q, %beta_q)
    %k = hydra.call @affine(%zs, %gamma_k, %beta_k)
    %wv = hydra.use @wv
    %bv = hydra.use @bv
    %v0 = hydra.linear %xt, %wv, %bv
    %v1 = hydra.silu %v0
    %values = hydra.reshape %v1 shape = [B, S, H, dv]
    hydra.yield %q, %k, %values, %mx
  }

  // The rest of a layer behind its input `x`.
  hydra.def @rest(%x, %mx, %o0) {
    %one = hydra.constant value = 1
    %o = hydra.reshape %o0 shape = [B, S, v]
    %wr = hydra.use @wr
    %br = hydra.use @br
    %r0 = hydra.linear %mx, %wr, %br
    %gate = hydra.silu %r0
    %gated = hydra.mul %o, %gate
    %wh1 = hydra.use @wh1
    %bh1 = hydra.use @bh1
    %wh2 = hydra.use @wh2
    %from_average = hydra.linear %mx, %wh1, %bh1
    %from_heads = hydra.linear %gated, %wh2
    %sum = hydra.add %x, %from_average
    %y = hydra.add %sum, %from_heads

    // The feed-forward part adds to what came into the layer.
    %ln_w = hydra.use @ffn_ln_w
    %ln_b = hydra.use @ffn_ln_b
    %ln_factor = hydra.add %ln_w, %one
    %h = hydra.layer_norm %y, %ln_factor, %ln_b eps = eps
    %fc1 = hydra.use @fc1
    %fc2 = hydra.use @fc2
    %u0 = hydra.linear %h, %fc1
    %u1 = hydra.silu %u0
    %u = hydra.when swiglu {
      %fc3 = hydra.use @fc3
      %u2 = hydra.linear %h, %fc3
      %product = hydra.mul %u1, %u2
      hydra.yield %product
    } else {
      hydra.yield %u1
    }
    %f = hydra.linear %u, %fc2
    %out = hydra.add %x, %f
    hydra.yield %out
  }

  // Rows [B, S, H, dh] rotated by so many positions, which broadcast to [B, S, 1, 1, 1].
  hydra.def @rotated(%x, %position) {
    %pair = hydra.iota shape = [1, 1, 1, dh / 2, 1] axis = 3 dtype = f32
    %fall = hydra.constant value = -2.0 * log(rope) / dh
    %exponent = hydra.mul %pair, %fall
    %frequency = hydra.exp %exponent
    %angle = hydra.mul %frequency, %position
    %cos = hydra.cos %angle
    %sin = hydra.sin %angle
    %pairs = hydra.reshape %x shape = [B, S, H, dh / 2, 2]
    %x0 = hydra.slice %pairs axis = 4 start = 0 size = 1
    %x1 = hydra.slice %pairs axis = 4 start = 1 size = 1
    %x0c = hydra.mul %x0, %cos
    %x1s = hydra.mul %x1, %sin
    %x0s = hydra.mul %x0, %sin
    %x1c = hydra.mul %x1, %cos
    %y0 = hydra.sub %x0c, %x1s
    %y1 = hydra.add %x0s, %x1c
    %turned = hydra.concat %y0, %y1 axis = 4
    %y = hydra.reshape %turned shape = [B, S, H, dh]
    hydra.yield %y
  }

  // Attention of queries [B, S, H, dh] to keys [B, K, H, dh], each to those from number `from` to its own. The numbers of
  // queries and where they begin broadcast to [B, 1, S, 1], those of keys to [1, 1, 1, K].
  hydra.def @attend(%q, %keys, %values, %of_query, %of_key, %from) {
    %qh = hydra.transpose %q order = [0, 2, 1, 3]
    %kh = hydra.transpose %keys order = [0, 2, 1, 3]
    %vh = hydra.transpose %values order = [0, 2, 1, 3]
    %scores = hydra.matmul %qh, %kh transpose_b dtype = f32
    %not_later = hydra.compare %of_key, %of_query is = "le"
    %not_before = hydra.compare %of_key, %from is = "ge"
    %never = hydra.constant value = -1.0e30
    %seen = hydra.select %not_later, %scores, %never
    %masked = hydra.select %not_before, %seen, %never
    %weights = hydra.softmax %masked
    %oh = hydra.matmul %weights, %vh
    %o = hydra.transpose %oh order = [0, 2, 1, 3]
    hydra.yield %o
  }

  // Where documents begin (1 there, 0 elsewhere), and how far a token is from the beginning of its own [B, S, 1].
  hydra.def @documents(%tokens) {
    %end = hydra.constant value = eos dtype = i32
    %ends0 = hydra.compare %tokens, %end is = "eq"
    %ends = hydra.cast %ends0 to = f32
    %before = hydra.pad %ends axis = 1 before = 1 after = 0
    %behind = hydra.slice %before axis = 1 start = 0 size = S
    %t = hydra.iota shape = [B, S] axis = 1 dtype = f32
    %none = hydra.constant value = 0
    %start0 = hydra.mul %t, %behind
    %start = hydra.prefix_scan axis = 1 over(%start0) combine(%a) with(%b) {
      %latest = hydra.max %a, %b
      hydra.yield %latest
    }
    %position0 = hydra.sub %t, %start
    %first = hydra.compare %position0, %none is = "eq"
    %begins0 = hydra.cast %first to = f32
    %begins = hydra.reshape %begins0 shape = [B, S, 1]
    %position = hydra.reshape %position0 shape = [B, S, 1]
    hydra.yield %begins, %position
  }

  // Attention of queries and keys [B, S, H, dh] without positions within chunks of Cs, which begin anew where
  // documents do.
  hydra.def @attend_in_documents(%q0, %k0, %values, %position) {
    %angles = hydra.reshape %position shape = [B, S, 1, 1, 1]
    %q = hydra.call @rotated(%q0, %angles)
    %k = hydra.call @rotated(%k0, %angles)
    %i = hydra.iota shape = [1, 1, S, 1] axis = 2 dtype = f32
    %j = hydra.iota shape = [1, 1, 1, S] axis = 3 dtype = f32
    %at = hydra.reshape %position shape = [B, 1, S, 1]
    %length = hydra.constant value = Cs
    %chunks = hydra.div %at, %length
    %chunk0 = hydra.cast %chunks to = i32
    %chunk = hydra.cast %chunk0 to = f32
    %whole = hydra.mul %chunk, %length
    %within = hydra.sub %at, %whole
    %from = hydra.sub %i, %within
    %o = hydra.call @attend(%q, %k, %values, %i, %j, %from)
    hydra.yield %o
  }

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.call @embedded(%tokens)
    %begins, %position = hydra.when packed {
      %b, %p = hydra.call @documents(%tokens)
      hydra.yield %b, %p
    } else {
      %none = hydra.constant value = 0
      hydra.yield %none, %none
    }
    %end = hydra.for @layers carry(%x = %start) {
      %tn_w = hydra.use @tn_w
      %tn_b = hydra.use @tn_b
      %xt = hydra.call @norm_of_rows(%x, %tn_w, %tn_b, %begins, %position)
      %alpha = hydra.use @alpha
      %delta = hydra.use @delta
      %theta = hydra.use @theta
      %gamma_re = hydra.use @gamma_re
      %gamma_im = hydra.use @gamma_im
      %omega = hydra.use @omega
      %average = hydra.call @moving_average(%xt, %alpha, %delta, %theta, %gamma_re, %gamma_im, %omega, %begins)
      %q0, %k0, %values, %mx = hydra.call @projections(%xt, %average)
      // Attention within chunks.
      %o = hydra.when packed {
        %a = hydra.call @attend_in_documents(%q0, %k0, %values, %position)
        hydra.yield %a
      } else {
        %q = hydra.rope %q0 base = rope period = Cs
        %k = hydra.rope %k0 base = rope period = Cs
        %a = hydra.attention %q, %k, %values scale = 1.0 causal chunk = Cs
        hydra.yield %a
      }
      %out = hydra.call @rest(%x, %mx, %o)
      hydra.yield %out
    }
    %norm_w = hydra.use @norm_w
    %norm_b = hydra.use @norm_b
    %final = hydra.call @norm_of_rows(%end, %norm_w, %norm_b, %begins, %position)
    hydra.yield %final
  }

  hydra.def @norm_of_rows(%x, %w, %b, %begins, %position) {
    %y = hydra.when packed {
      %n = hydra.call @timestep_norm_of_documents(%x, %w, %b, %begins, %position)
      hydra.yield %n
    } else {
      %n = hydra.call @timestep_norm(%x, %w, %b)
      hydra.yield %n
    }
    hydra.yield %y
  }

  hydra.def @head() {
    %head = hydra.when tied {
      %embed = hydra.use @embed
      hydra.yield %embed
    } else {
      %lm_head = hydra.use @lm_head
      hydra.yield %lm_head
    }
    hydra.yield %head
  }

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final = hydra.call @trunk(%tokens)
    %head = hydra.call @head()
    %own = hydra.when packed {
      // What follows the end of a document belongs to the next one.
      %end = hydra.constant value = eos dtype = i32
      %ignored = hydra.constant value = -100 dtype = i32
      %ends = hydra.compare %tokens, %end is = "eq"
      %inside = hydra.select %ends, %ignored, %labels
      hydra.yield %inside
    } else {
      hydra.yield %labels
    }
    %loss = hydra.linear_cross_entropy %final, %head, %own
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %final = hydra.call @trunk(%tokens)
    %head = hydra.call @head()
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits
  }

  //===-- Reading on --------------------------------------------------------------------------===//

  // The next S tokens of sequences of which `position` [1] f32 were read: scores, and what the tokens after them
  // need to know; all zeros before the first token. However a sequence is cut, the scores are the same.
  // norms: mean and variance of groups so far; averages: h; keys and values of the last Cs tokens.
  hydra.entry @continue(%tokens: [B, S] i32, %position: [1] f32, %norms: [L, 2, B, G] f32, %last_norm: [2, B, G] f32,
                        %averages: [L, 2, B, D, N] f32, %keys: [L, B, Cs, H, dh] f32, %values: [L, B, Cs, H, dv] f32) dims(B, S) {
    %start = hydra.call @embedded(%tokens)
    %norms_after, %averages_after, %keys_after, %values_after, %end = hydra.for @layers
        over(%norm = %norms, %average_before = %averages, %keys_before = %keys, %values_before = %values) carry(%x = %start) {
      %tn_w = hydra.use @tn_w
      %tn_b = hydra.use @tn_b
      %xt, %norm_after = hydra.call @timestep_norm_behind(%x, %tn_w, %tn_b, %norm, %position)
      %alpha = hydra.use @alpha
      %delta = hydra.use @delta
      %theta = hydra.use @theta
      %gamma_re = hydra.use @gamma_re
      %gamma_im = hydra.use @gamma_im
      %omega = hydra.use @omega
      %log_rho, %phi, %p, %c_re, %c_im = hydra.call @average_terms(%alpha, %delta, %theta, %gamma_re, %gamma_im)
      %re0 = hydra.slice %average_before axis = 0 start = 0 size = 1
      %im0 = hydra.slice %average_before axis = 0 start = 1 size = 1
      %re = hydra.reshape %re0 shape = [B, 1, D, N]
      %im = hydra.reshape %im0 shape = [B, 1, D, N]
      %averaged, %end_re, %end_im = hydra.call @average_by_tokens(%xt, %log_rho, %phi, %p, %c_re, %c_im, %re, %im)
      %skipped = hydra.mul %xt, %omega
      %average = hydra.add %averaged, %skipped
      %q0, %k0, %v1, %mx = hydra.call @projections(%xt, %average)
      %q1 = hydra.rope %q0 base = rope
      %k1 = hydra.rope %k0 base = rope
      // What was rotated for positions from 0 is rotated further, all by the same angles.
      %angles = hydra.reshape %position shape = [1, 1, 1, 1, 1]
      %q = hydra.call @rotated(%q1, %angles)
      %k = hydra.call @rotated(%k1, %angles)
      %all_keys = hydra.concat %keys_before, %k axis = 1
      %all_values = hydra.concat %values_before, %v1 axis = 1
      // The last Cs keys before the call and its own: those of the query's chunk.
      %i = hydra.iota shape = [1, 1, S, 1] axis = 2 dtype = f32
      %j = hydra.iota shape = [1, 1, 1, Cs + S] axis = 3 dtype = f32
      %back = hydra.constant value = Cs
      %of_query = hydra.add %i, %position
      %j_now = hydra.add %j, %position
      %of_key = hydra.sub %j_now, %back
      %chunks = hydra.div %of_query, %back
      %chunk0 = hydra.cast %chunks to = i32
      %chunk = hydra.cast %chunk0 to = f32
      %from = hydra.mul %chunk, %back
      %o = hydra.call @attend(%q, %all_keys, %all_values, %of_query, %of_key, %from)
      %out = hydra.call @rest(%x, %mx, %o)

      %keys_kept = hydra.slice %all_keys axis = 1 start = S size = Cs
      %values_kept = hydra.slice %all_values axis = 1 start = S size = Cs
      %re1 = hydra.reshape %end_re shape = [1, B, D, N]
      %im1 = hydra.reshape %end_im shape = [1, B, D, N]
      %average_after = hydra.concat %re1, %im1 axis = 0
      hydra.yield %norm_after, %average_after, %keys_kept, %values_kept, %out
    }
    %norm_w = hydra.use @norm_w
    %norm_b = hydra.use @norm_b
    %final, %last_after = hydra.call @timestep_norm_behind(%end, %norm_w, %norm_b, %last_norm, %position)
    %head = hydra.call @head()
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits, norms = %norms_after, last_norm = %last_after, averages = %averages_after,
        keys = %keys_after, values = %values_after
  }
}
