// Megalodon (arXiv:2404.08801): attention within chunks of a fixed length, and a complex exponential moving average that
// carries everything else; norms over all that was seen so far; residuals over two hops. models.md section 5.
//
//   ema               the moving average works on all tokens at once (scan), token by token (sequential), or on whole rows as
//                     a convolution by Fourier transforms (fft); auto: of which the predicted step is fastest
//   packed            a row holds several documents, each ended by the token `eos`, and each as if in a row of its own
//   masked            tokens `pad`, in front or behind, change nothing for others, and nothing is learnt from them
//   attention_window  attention is to so many tokens instead of chunks
//   prior_count       the norms begin with so many tokens of a learned mean and variance
//   rescale_nffn      channels of the feed-forward part have factors
//   dropout           training drops this part of what the two halves of a layer add, hidden_dropout of what is within,
//                     attention_dropout of the weights of attention, and dropkey of the keys of each query
//   first_form        what the first code of this model in Python computed, as weights of megalodon-hf want it (models.md
//                     section 5.9): norms over the means of groups alone, biases everywhere, the factor of the LayerNorm as
//                     it is, and rotations of channels dh / 2 apart

hydra.model @megalodon version 1 {
  hydra.symbols dims(V = 32000, D, L, H, z, v, F, N = 16, Cs, G, Q = 32, eos = 0, pad = 0, attention_window = 0, prior_count = 0)
                choices(ema = scan of (scan, sequential, fft, auto), init_mode = he of (he, xavier, normal, truncated))
                reals(eps = 1.0e-5, rope = 1.0e4, dropout = 0.0, hidden_dropout = 0.0, attention_dropout = 0.0, dropkey = 0.0)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1) flags(packed = false, masked = false)
                flags(swiglu = false, tied = false, scale_emb = false, rescale_nffn = false, first_form = false)

  hydra.derive dh = z / H // width of a head's queries and keys
  hydra.derive dv = v / H // and of its values
  // Tokens that the norms begin with, of which the first form has none.
  hydra.derive prior = prior_count / select(first_form and prior_count > 0, 0, 1)
  // Channels of a group. A single one has no variance in the first token: it needs such tokens.
  hydra.derive gs = D / select(G == D and prior < 2 and not first_form, 0, G)

  // How matrices start. One kind of numbers says all modes: a normal one cut at 40 deviations is not cut, and one cut at 0.001
  // of them is uniform but for 5e-7 of its density.
  hydra.derive cut = select(init_mode == xavier, 0.001, select(init_mode == truncated, 3.0, 40.0))
  hydra.derive fixed_std = select(init_mode == truncated, 1.0, 0.02)
  hydra.derive std_z = select(init_mode == he, 1 / sqrt(3 * D), select(init_mode == xavier, sqrt(6.0 / (D + z)) / 0.001, fixed_std))
  hydra.derive std_v = select(init_mode == he, 1 / sqrt(3 * D), select(init_mode == xavier, sqrt(6.0 / (D + v)) / 0.001, fixed_std))
  hydra.derive std_h = select(init_mode == he, 1 / sqrt(3 * D), select(init_mode == xavier, sqrt(6.0 / (D + D)) / 0.001, fixed_std))
  hydra.derive std_o = select(init_mode == he, 1 / sqrt(3 * v), select(init_mode == xavier, sqrt(6.0 / (v + D)) / 0.001, fixed_std))
  hydra.derive std_up = select(init_mode == he, 1 / sqrt(3 * D), select(init_mode == xavier, sqrt(6.0 / (D + F)) / 0.001, fixed_std))
  hydra.derive std_down = select(init_mode == he, 1 / sqrt(3 * F), select(init_mode == xavier, sqrt(6.0 / (F + D)) / 0.001, fixed_std))

  hydra.preset @tiny {D = 64, L = 2, H = 2, z = 32, v = 64, F = 128, Cs = 16, G = 8, N = 4, V = 97, Q = 8}
  hydra.preset @ref {D = 64, L = 2, H = 2, z = 32, v = 64, F = 128, Cs = 16, G = 8, N = 4, V = 97, Q = 8}
  hydra.preset @bytes {D = 128, L = 2, H = 2, z = 64, v = 256, F = 344, Cs = 128, G = 16, N = 8, V = 256, tied = true}
  hydra.preset @mega200M {D = 1024, L = 12, H = 1, z = 256, v = 2048, F = 2560, Cs = 2048, G = 32}
  hydra.preset @"mega1.3B" {D = 2048, L = 24, H = 2, z = 512, v = 4096, F = 4864, Cs = 2048, G = 64}
  hydra.preset @"mega1.3B-pg19"
      {D = 2048, L = 24, H = 2, z = 512, v = 4096, F = 3584, Cs = 2048, G = 64, swiglu = true, tied = true, scale_emb = true}
  hydra.preset @"mega7.1B" {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 11264, Cs = 2048, G = 64}
  hydra.preset @"mega7.3B" {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 8192, Cs = 2048, G = 64, swiglu = true}
  hydra.preset @"paper-7B" {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 8192, Cs = 4096, G = 64, swiglu = true, rope = 1.0e5}
  hydra.preset @"profile-train"
      {D = 384, L = 6, H = 3, z = 192, v = 384, F = 1024, Cs = 512, G = 32, tied = true, N = 8, V = 256, adam_eps = 1.0e-6}
      settings {batch = 2, lr = 3.0e-4}
  hydra.preset @"profile-infer" {D = 512, L = 4, H = 8, z = 1024, v = 1024, F = 2048, Cs = 256, G = 32, tied = true, V = 256}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @embed [V, D] init = trunc_normal(1 / sqrt(D), 3.0) from "model.embed.weight"
  hydra.stack @layers[L] {
    // TimestepNorm.
    hydra.param @tn_w     [D]    init = zeros                               from "model.layers.{layer}.attn.timenorm.weight"
    hydra.param @tn_b     [D]    init = zeros                               from "model.layers.{layer}.attn.timenorm.bias"
    hydra.param @tn_prior_mean   [G] init = zeros when prior > 0            from "model.layers.{layer}.attn.timenorm.prior_mean"
    hydra.param @tn_prior_logvar [G] init = zeros when prior > 0            from "model.layers.{layer}.attn.timenorm.prior_logv"
    // The moving average.
    hydra.param @alpha    [D, N] init = normal(0.2)                         from "model.layers.{layer}.attn.cema.alpha"
    hydra.param @delta    [D, N] init = normal(0.2)                         from "model.layers.{layer}.attn.cema.delta"
    hydra.param @theta    [D]
        init = shuffle(logit(clamp(pow(D, -(index + 1.0) / D), 1.0e-6, 1 - 1.0e-6))) from "model.layers.{layer}.attn.cema.theta"
    hydra.param @gamma_re [D, N] init = normal(1.0)                         from "model.layers.{layer}.attn.cema.gamma_real"
    hydra.param @gamma_im [D, N] init = zeros                               from "model.layers.{layer}.attn.cema.gamma_imag"
    hydra.param @omega    [D]    init = trunc_normal(0.25, 4.0)             from "model.layers.{layer}.attn.cema.omega"
    // Attention.
    hydra.param @rms_w    [D]    init = zeros                               from "model.layers.{layer}.attn.rmsnorm.gamma"
    hydra.param @wz       [z, D] init = trunc_normal(std_z, cut)            from "model.layers.{layer}.attn.wz.weight"
    hydra.param @bz       [z]    init = zeros                               from "model.layers.{layer}.attn.wz.bias"
    hydra.param @wv       [v, D] init = trunc_normal(std_v, cut)            from "model.layers.{layer}.attn.wv.weight"
    hydra.param @bv       [v]    init = zeros                               from "model.layers.{layer}.attn.wv.bias"
    hydra.param @wr       [v, D] init = trunc_normal(std_v, cut)            from "model.layers.{layer}.attn.wr.weight"
    hydra.param @br       [v]    init = zeros                               from "model.layers.{layer}.attn.wr.bias"
    hydra.param @wh1      [D, D] init = trunc_normal(std_h, cut)            from "model.layers.{layer}.attn.wh1.weight"
    hydra.param @bh1      [D]    init = zeros                               from "model.layers.{layer}.attn.wh1.bias"
    hydra.param @wh2      [D, v] init = trunc_normal(std_o, cut)            from "model.layers.{layer}.attn.wh2.weight"
    hydra.param @bh2      [D]    init = zeros when first_form               from "model.layers.{layer}.attn.wh2.bias"
    hydra.param @qk_gamma [2, z] init = zeros                               from "model.layers.{layer}.attn.gamma"
    hydra.param @qk_beta  [2, z] init = zeros                               from "model.layers.{layer}.attn.beta"
    // Feed-forward.
    hydra.param @ffn_ln_w [D]    init = constant(select(first_form, 1, 0))  from "model.layers.{layer}.ffn.norm.weight"
    hydra.param @ffn_ln_b [D]    init = zeros                               from "model.layers.{layer}.ffn.norm.bias"
    hydra.param @fc1      [F, D] init = trunc_normal(std_up, cut)           from "model.layers.{layer}.ffn.fc1.weight"
    hydra.param @b1       [F]    init = zeros when first_form               from "model.layers.{layer}.ffn.fc1.bias"
    hydra.param @fc2      [D, F] init = trunc_normal(std_down, cut)         from "model.layers.{layer}.ffn.fc2.weight"
    hydra.param @b2       [D]    init = zeros when first_form               from "model.layers.{layer}.ffn.fc2.bias"
    hydra.param @fc3      [F, D] init = trunc_normal(std_up, cut) when swiglu from "model.layers.{layer}.ffn.fc3.weight"
    hydra.param @b3       [F]    init = zeros when swiglu and first_form    from "model.layers.{layer}.ffn.fc3.bias"
    hydra.param @alpha_l  [D]    init = constant(0.1 * pow(0.5, layer)) when rescale_nffn and not first_form
        from "model.layers.{layer}.ffn.alpha"
    hydra.param @ffn_factor [1]  init = constant(0.1 * pow(0.5, layer)) when rescale_nffn and first_form frozen
  }
  hydra.param @norm_w  [D]    init = zeros from "model.norm.weight"
  hydra.param @norm_b  [D]    init = zeros from "model.norm.bias"
  hydra.param @norm_prior_mean   [G] init = zeros when prior > 0 from "model.norm.prior_mean"
  hydra.param @norm_prior_logvar [G] init = zeros when prior > 0 from "model.norm.prior_logv"
  hydra.param @lm_head [V, D] init = trunc_normal(1 / sqrt(D), 3.0) when not tied from "lm_head.weight"

  //===-- TimestepNorm ------------------------------------------------------------------------===//

  // Sums over all rows up to each, of [B, S, 2 G]: within chunks of R rows, all C of them at once, and over the chunks before.
  hydra.def @sums_in_chunks(%x) dims(R, C) {
    %rows = hydra.let reshape(pad(%x, axis = 1, before = 0, after = R * C - S), [B, C, R, 2 * G])
    %none, %nothing = hydra.let constant(value = 0, shape = [B, C, 1, 2 * G]), constant(value = 0, shape = [B, 1, 1, 2 * G])
    %own, %sums = hydra.scan axis = 2 chunk = 1 over(%row = %rows) carry(%sum = %none) {
      %next = hydra.let %sum + %row
      hydra.yield %next, %next
    }
    %before, %all = hydra.scan axis = 1 chunk = 1 over(%chunk = %sums) carry(%sum = %nothing) {
      %next = hydra.let %sum + %chunk
      hydra.yield %sum, %next
    }
    %y = hydra.let slice(reshape(%own + %before, [B, R * C, 2 * G]), axis = 1, start = 0, size = S)
    hydra.yield %y
  }

  // Of the tokens of a document up to each, the first of which `begins` [B, S, 1] marks: the sum, or the first one.
  // Marks are as wide as rows of x, W numbers: then every number is combined by itself.
  hydra.def @in_document(%x, %begins) dims(W) flags(summed = true) {
    %marks = hydra.let broadcast(%begins, [B, S, W])
    %all, %begun = hydra.prefix_scan axis = 1 over(%here = %x, %b1 = %marks) combine(%before, %b0) {
      %both, %any = hydra.let select(%b1 > 0, %here, when(summed, %before + %here, %before)), max(%b0, %b1)
      hydra.yield %both, %any
    }
    hydra.yield %all
  }

  // Of all tokens up to each: the sum, or the maximum.
  hydra.def @in_row(%x) flags(summed = true) {
    %all = hydra.prefix_scan axis = 1 over(%here = %x) combine(%before) {
      %both = hydra.let when(summed, %before + %here, max(%before, %here))
      hydra.yield %both
    }
    hydra.yield %all
  }

  hydra.def @token(%x) dims(i) = slice(%x, axis = 1, start = i, size = 1)
  // With masks, rows [B, S, …] with 0 for padding.
  hydra.def @unpadded(%x, %at) = when(masked, %x * %at.valid, %x)

  // Of a group's channels in every token: means, and second moments about them [B, S, G].
  hydra.def @of_groups(%x) {
    %groups = hydra.let reshape(%x, [B, S, G, gs])
    %mean = hydra.let mean(%groups, 3)
    %centred = hydra.let %groups - %mean
    %means, %own = hydra.let reshape(%mean, [B, S, G]), mean(%centred * %centred, axes = [3])
    hydra.yield %means, %own
  }

  // Mean and variance of a group over all tokens up to each [B, S, G], in documents and with masks as `at` has it. `before` are
  // those of the tokens that the norm begins with: a prior, or with `behind` as many as `before.count`.
  hydra.def @moments_so_far(%x, %at, %before) flags(behind) {
    %means, %own = hydra.call @of_groups(%x)
    // Moments are taken about the mean so far, or the first token's: then nothing cancels. Mean and variance do not depend on
    // the first token's, so it needs no derivative.
    %anchor = hydra.let when(packed or masked,
        detach(@in_document(%means, when(masked, %at.first, %at.begins), W = G, summed = false)),
        when(behind, select(%before.count > 0, %before.mean, @token(%means, i = 0)), detach(@token(%means, i = 0))))
    %shifted = hydra.let %means - %anchor
    %moments = hydra.let @unpadded(concat(%shifted, %own + %shifted * %shifted, axis = 2), %at)
    %sums = hydra.let when(packed or masked, @in_document(%moments, %at.begins, W = 2 * G),
        @sums_in_chunks(%moments, R = min(Q, S), C = ceil(1.0 * S / min(Q, S))))
    %first, %second = hydra.let slice(%sums, axis = 2, start = 0, size = G), slice(%sums, axis = 2, start = G, size = G)
    %count = hydra.let when(masked, %at.count + prior, when(packed, %at.position + (1 + prior),
        when(behind, @numbers() + 1 + %before.count, @numbers() + (1 + prior))))
    %off = hydra.let when(prior > 0 and not behind, %before.mean - %anchor, 0)
    %first_sum = hydra.let when(prior > 0 and not behind, %first + %off * prior, %first)
    %second_sum = hydra.let when(behind, %second + %before.variance * %before.count,
        when(prior > 0, %second + (%before.variance + %off * %off) * prior, %second))
    %mean = hydra.let %first_sum / %count
    %seen = hydra.let bundle(variance = %second_sum / %count - %mean * %mean, mean = %mean + %anchor)
    hydra.yield %seen
  }
  hydra.def @numbers() = iota(axis = 1, shape = [1, S, 1], dtype = f32)
  // Mean and variance of the tokens of a prior [1, 1, G].
  hydra.def @prior_of(%mean, %logvar) = bundle(mean = reshape(%mean, [1, 1, G]), variance = reshape(exp(%logvar), [1, 1, G]))

  // The same from token to token: what is carried are mean and variance so far [B, 1, G], and of how many tokens [B, 1, 1].
  hydra.def @moments_behind(%x, %at, %before) {
    %mean = hydra.let when(prior > 0, broadcast(%before.mean, [B, 1, G]), constant(value = 0, shape = [B, 1, G]))
    %variance = hydra.let when(prior > 0, broadcast(%before.variance, [B, 1, G]), constant(value = 0, shape = [B, 1, G]))
    %start = hydra.let bundle(mean = %mean, variance = %variance, count = constant(value = prior, shape = [B, 1, 1]))
    %all, %end = hydra.scan axis = 1 chunk = S over(%xs = %x) carry(%seen = %start) {
      %now = hydra.let @moments_so_far(%xs, %at, %seen, behind = true)
      %next = hydra.let bundle(mean = @token(%now.mean, i = S - 1), variance = @token(%now.variance, i = S - 1),
                               count = %seen.count + S)
      hydra.yield %now, %next
    }
    hydra.yield %all
  }

  // The first form: mean and variance of the groups' means in the tokens so far, which begin with one of mean 0 and variance 1
  // that counts in the sum of squares alone.
  hydra.def @moments_of_means(%x, %at) {
    %means = hydra.let @unpadded(reshape(mean(reshape(%x, [B, S, G, gs]), 3), [B, S, G]), %at)
    %count = hydra.let when(masked, %at.count, when(packed, %at.position, iota(axis = 1, shape = [B, S, 1], dtype = f32, positions)) + 1)
    %sum = hydra.let @so_far(%means, %at)
    %mean, %mean_before = hydra.let %sum / %count, (%sum - %means) / max(%count - 1, 1)
    %squares = hydra.let @so_far(@unpadded((%means - %mean_before) * (%means - %mean), %at), %at)
    %seen = hydra.let bundle(mean = %mean, variance = max((%squares + 1) / %count, 1.0e-6))
    hydra.yield %seen
  }
  // The sum over all tokens up to each, or over those of its document.
  hydra.def @so_far(%x, %at) = when(packed or masked, @in_document(%x, %at.begins, W = G), @in_row(%x))

  // (x - mean) / sqrt(variance + eps) in groups of channels, with the norm's own factor and bias; of padding 0.
  hydra.def @timestep_norm(%x, %w, %b, %at, %before) {
    %seen = hydra.let when(first_form, @moments_of_means(%x, %at), when(continued and not packed and not masked,
        @moments_behind(%x, %at, %before), @moments_so_far(%x, %at, %before, behind = false)))
    %r = hydra.let rsqrt(%seen.variance + eps)
    %off = hydra.let reshape(%x, [B, S, G, gs]) - reshape(%seen.mean, [B, S, G, 1])
    %y = hydra.let @unpadded(reshape(%off * reshape(%r, [B, S, G, 1]), [B, S, D]) * (%w + 1) + %b, %at)
    hydra.yield %y
  }

  //===-- The moving average ------------------------------------------------------------------===//

  // Complex numbers are bundles of two tensors, re and im.
  hydra.def @times(%a, %b) = bundle(re = @real_of_product(%a, %b), im = %a.re * %b.im + %a.im * %b.re)
  hydra.def @real_of_product(%a, %b) = %a.re * %b.re - %a.im * %b.im
  hydra.def @polar(%size, %angle) = bundle(re = %size * cos(%angle), im = %size * sin(%angle))
  // q^j = rho^j (cos, sin)(j phi) for exponents %j [1, n, 1]: [D, n, N].
  hydra.def @powers(%terms, %j) = @polar(exp(@by_channel(%terms.log_rho) * %j), @by_channel(%terms.phi) * %j)

  // What the parameters of the moving average stand for: log |q| and arg q [D, N], p and c [D, 1, N].
  hydra.def @average_terms() {
    %p = hydra.let sigmoid(@alpha)
    %frequency = hydra.let (iota(axis = 1, shape = [1, N], dtype = f32) + 1) * (6.283185307179586 / N)
    %c = hydra.let bundle(re = @by_channel(@gamma_re * (1 / sqrt(N))), im = @by_channel(@gamma_im * (1 / sqrt(N))))
    %terms = hydra.let bundle(log_rho = log(1 - %p * sigmoid(@delta)), phi = reshape(sigmoid(@theta), [D, 1]) * %frequency,
                              p = @by_channel(%p), c = %c)
    hydra.yield %terms
  }
  hydra.def @by_channel(%x) = reshape(%x, [D, 1, N])

  // Numbers of channels, for each sequence: [B, 1, D, N].
  hydra.def @of_all_sequences(%x) = broadcast(reshape(%x, [1, 1, D, N]), [B, 1, D, N])
  hydra.def @complex_of_all_sequences(%x) = bundle(re = @of_all_sequences(%x.re), im = @of_all_sequences(%x.im))

  // One token after the other, in documents from zero: h = q h + p x for N complex numbers a channel [B, 1, D, N], and
  // y = sum over n of Re(c h). Each sequence has its own q, p and c, whose gradients are summed behind the scan.
  hydra.def @average_by_tokens(%x, %at) {
    %terms = hydra.let @average_terms()
    %q = hydra.let @complex_of_all_sequences(@powers(%terms, constant(value = 1, shape = [1, 1, 1])))
    %p, %c, %inputs = hydra.let @of_all_sequences(%terms.p), @complex_of_all_sequences(%terms.c), reshape(%x, [B, S, D, 1])
    %tokens = hydra.let when(packed, bundle(x = %inputs, keep = reshape(1 - %at.begins, [B, S, 1, 1])), bundle(x = %inputs))
    %start = hydra.let bundle(re = constant(value = 0, shape = [B, 1, D, N]), im = constant(value = 0, shape = [B, 1, D, N]))
    %y, %end = hydra.scan axis = 1 chunk = 1 over(%t = %tokens) carry(%h = %start) {
      %turned = hydra.let @times(%q, when(packed, bundle(re = %h.re * %t.keep, im = %h.im * %t.keep), %h))
      %next = hydra.let bundle(re = %turned.re + %t.x * %p, im = %turned.im)
      %yt = hydra.let sum(@real_of_product(%c, %next), axes = [3])
      hydra.yield %yt, %next
    }
    hydra.yield %y
  }

  // The same for all tokens at once: c takes p, since a state that begins as 0 is a multiple of p.
  hydra.def @average_in_rows(%x, %at) {
    %terms = hydra.let @average_terms()
    %q = hydra.let @powers(%terms, constant(value = 1, shape = [1, 1, 1]))
    %c = hydra.let bundle(re = %terms.c.re * %terms.p, im = %terms.c.im * %terms.p)
    %y = hydra.let when(packed,
        linear_recurrence(%x, @of_channels(%q.re), @of_channels(%q.im), @of_channels(%c.re), @of_channels(%c.im), %at.begins),
        linear_recurrence(%x, @of_channels(%q.re), @of_channels(%q.im), @of_channels(%c.re), @of_channels(%c.im)))
    hydra.yield %y
  }
  hydra.def @of_channels(%x) = reshape(%x, [D, N])

  // The same as a convolution of whole rows, padded with zeros to T, the smallest power of two from 2 S, so that nothing
  // comes round from their ends.
  hydra.def @average_by_transforms(%x) dims(T, C) {
    // The kernel sum over n of Re(c p q^j), by j = Q a + b: powers of either, and one product of matrices.
    %terms = hydra.let @average_terms()
    %p = hydra.let %terms.p * (1.0 / T) // of both transforms
    %near = hydra.let @powers(%terms, iota(axis = 1, shape = [1, Q, 1], dtype = f32))
    %far = hydra.let @times(@powers(%terms, iota(axis = 1, shape = [1, C, 1], dtype = f32) * Q), %terms.c)
    %parts = hydra.let concat(%far.re * %p, -(%far.im * %p), axis = 2)
    %kernels = hydra.let matmul(%parts, concat(%near.re, %near.im, axis = 2), transpose_b, full_precision)
    %kernel = hydra.let slice(reshape(%kernels, [1, D, C * Q]), axis = 2, start = 0, size = S)
    %a, %b = hydra.let @spectrum(transpose(%x, [0, 2, 1]), T = T), @spectrum(%kernel, T = T)
    // The first and the last number of either spectrum are real, and so are those of the product.
    %product = hydra.let @times(@complex(%a), @complex(%b))
    %whole = hydra.let irfft(concat(%product.re, %product.im, axis = 3), real_ends)
    %y = hydra.let transpose(slice(%whole, axis = 2, start = 0, size = S), [0, 2, 1])
    hydra.yield %y
  }
  hydra.def @spectrum(%x) dims(T) = rfft(pad(%x, axis = 2, before = 0, after = T - S))
  hydra.def @complex(%x) = bundle(re = slice(%x, axis = 3, start = 0, size = 1), im = slice(%x, axis = 3, start = 1, size = 1))

  // [B, S, D]: the average of all channels, and omega x. Padding is 0 behind the norm: the average of it only decays.
  hydra.def @moving_average(%x, %at) = when(ema == sequential or continued, @average_by_tokens(%x, %at),
      when(ema == fft and not packed,
           @average_by_transforms(%x, T = round(pow(2.0, ceil(log(2.0 * S) / log(2.0) - 1.0e-12))), C = ceil(1.0 * S / Q)),
           @average_in_rows(%x, %at))) + %x * @omega

  //===-- The model ---------------------------------------------------------------------------===//

  // Queries or keys from their normalised rows [B, S, H, dh], without positions.
  hydra.def @affine(%x, %gamma, %beta) = %x * (%gamma + 1) + %beta
  hydra.def @row(%x) dims(i) = reshape(slice(%x, axis = 0, start = i, size = 1), [1, 1, H, dh])

  // Of the norm of a layer's input and its average over time: what attention works on. Queries and keys share a projection.
  hydra.def @projections(%xt, %average) {
    %mx = hydra.let dropout(rms_norm(%average, @rms_w + 1, eps = eps), p = hidden_dropout)
    %heads = hydra.let reshape(linear(%mx, @wz, @bz), [B, S, H, dh])
    %zn = hydra.let %heads * rsqrt(mean(%heads * %heads, 3) + eps)
    %gamma_q, %gamma_k = hydra.let @row(@qk_gamma, i = 0), @row(@qk_gamma, i = 1)
    %beta_q, %beta_k = hydra.let @row(@qk_beta, i = 0), @row(@qk_beta, i = 1)
    %zs = hydra.let %zn * (1 / sqrt(dh))
    %q, %k = hydra.let @affine(%zs, %gamma_q, %beta_q), @affine(%zs, %gamma_k, %beta_k)
    %values = hydra.let reshape(silu(linear(%xt, @wv, @bv)), [B, S, H, dv])
    hydra.yield %q, %k, %values, %mx
  }

  // The rest of a layer behind its input `x`.
  hydra.def @rest(%x, %mx, %o) {
    %gated = hydra.let dropout(reshape(%o, [B, S, v]) * silu(linear(%mx, @wr, @br)), p = hidden_dropout)
    %from_average, %from_heads = hydra.let linear(%mx, @wh1, @bh1), when(first_form, linear(%gated, @wh2, @bh2), linear(%gated, @wh2))
    %y = hydra.let when(dropout > 0.0, %x + dropout(%from_average + %from_heads, p = dropout), %x + %from_average + %from_heads)
    // The feed-forward part adds to what came into the layer.
    %h = hydra.let layer_norm(%y, when(first_form, @ffn_ln_w, @ffn_ln_w + 1), @ffn_ln_b, eps = eps)
    %u = hydra.let silu(when(first_form, linear(%h, @fc1, @b1), linear(%h, @fc1)))
    %f = hydra.let dropout(when(swiglu, %u * when(first_form, linear(%h, @fc3, @b3), linear(%h, @fc3)), %u), p = hidden_dropout)
    %fed = hydra.let dropout(when(first_form, linear(%f, @fc2, @b2), linear(%f, @fc2)), p = dropout)
    %out = hydra.let %x + when(rescale_nffn, %fed * when(first_form, @ffn_factor, @alpha_l), %fed)
    hydra.yield %out
  }

  // Rows [B, S, H, dh] rotated by the positions in their documents.
  hydra.def @rotated(%x, %at) {
    %speed = hydra.let exp(iota(axis = 3, shape = [1, 1, 1, dh / 2, 1], dtype = f32) * (-2.0 * log(rope) / dh))
    %angle = hydra.let %speed * reshape(%at.position, [B, S, 1, 1, 1])
    %cos, %sin = hydra.let cos(%angle), sin(%angle)
    %pairs = hydra.let when(first_form, transpose(reshape(%x, [B, S, H, 2, dh / 2]), [0, 1, 2, 4, 3]), reshape(%x, [B, S, H, dh / 2, 2]))
    %x0, %x1 = hydra.let slice(%pairs, axis = 4, start = 0, size = 1), slice(%pairs, axis = 4, start = 1, size = 1)
    %turned = hydra.let concat(%x0 * %cos - %x1 * %sin, %x0 * %sin + %x1 * %cos, axis = 4)
    %y = hydra.let reshape(when(first_form, transpose(%turned, [0, 1, 2, 4, 3]), %turned), [B, S, H, dh])
    hydra.yield %y
  }

  // Where documents begin (1 there, 0 elsewhere), and how far a token is from the beginning of its own [B, S, 1].
  hydra.def @documents(%tokens) {
    %t = hydra.iota shape = [B, S] axis = 1 dtype = f32 positions
    %position = hydra.let reshape(when(packed, %t - @in_row(%t * @behind_ends(%tokens), summed = false), %t), [B, S, 1])
    %at = hydra.let bundle(begins = cast(%position == 0, to = f32), position = %position)
    hydra.yield %at
  }
  hydra.def @behind_ends(%tokens) =
      slice(pad(cast(%tokens == eos, to = f32), axis = 1, before = 1, after = 0), axis = 1, start = 0, size = S)

  // With masks: what of that is no padding (1 there, 0 elsewhere), which is the first such token of its document, and how many
  // of them the document has up to a token, at least 1 [B, S, 1].
  hydra.def @padded(%tokens) {
    %valid = hydra.let reshape(1 - cast(%tokens == pad, to = f32), [B, S, 1])
    %row = hydra.let @documents(%tokens)
    %count = hydra.let @in_document(%valid, %row.begins, W = 1)
    %first = hydra.let %valid * cast(%count == 1, to = f32)
    %at = hydra.let bundle(begins = %row.begins, position = %row.position, valid = %valid, first = %first, count = max(%count, 1))
    hydra.yield %at
  }

  // Attention of queries and keys [B, S, H, dh] without positions within chunks of Cs, or in a window, in documents, where
  // chunks begin anew. Nothing attends to padding, and what then attends to nothing gets 0.
  hydra.def @attend_in_documents(%q0, %k0, %values, %at) {
    // The numbers of queries and keys, and those of the first keys that queries attend to.
    %i, %j = hydra.let iota(axis = 2, shape = [1, 1, S, 1], dtype = f32), iota(axis = 3, shape = [1, 1, 1, S], dtype = f32)
    %position = hydra.let reshape(%at.position, [B, 1, S, 1])
    %from = hydra.let %i - when(attention_window > 0, min(%position, attention_window - 1),
        %position - cast(cast(%position / Cs, to = i32), to = f32) * Cs)
    %q, %k = hydra.let transpose(@rotated(%q0, %at), [0, 2, 1, 3]), transpose(@rotated(%k0, %at), [0, 2, 1, 3])
    %scores = hydra.let matmul(%q, %k, transpose_b, dtype = f32)
    %unseen = hydra.let when(masked or dropkey > 0.0, constant(value = -inf), -1.0e30)
    %kept = hydra.let when(masked, select(reshape(%at.valid, [B, 1, 1, S]) > 0.5, %scores, %unseen), %scores)
    %seen = hydra.let select(%j >= %from, select(%j <= %i, %kept, %unseen), %unseen)
    %weights = hydra.let dropout(softmax(when(dropkey == 0.0, %seen, @with_keys_dropped(%seen))), p = attention_dropout)
    %o = hydra.let transpose(matmul(%weights, transpose(%values, [0, 2, 1, 3])), [0, 2, 1, 3])
    hydra.yield %o
  }

  // Scores [B, H, S, S], of which training drops a part in front of the softmax. A query without any key left gets 0.
  hydra.def @with_keys_dropped(%scores) =
      select(dropout(constant(value = 1, shape = [B, H, S, S]), p = dropkey) > 0.5, %scores, constant(value = -inf))

  // The same of rows that are one document.
  hydra.def @attend_in_row(%q, %k, %values) = when(attention_window > 0,
      attention(@rotated_in_row(%q), @rotated_in_row(%k), %values, scale = 1.0, causal, window = attention_window, dropout = attention_dropout, dropkey = dropkey),
      attention(@rotated_in_chunk(%q), @rotated_in_chunk(%k), %values, scale = 1.0, causal, chunk = Cs, dropout = attention_dropout, dropkey = dropkey))
  hydra.def @rotated_in_row(%x) = when(first_form, rope(%x, base = rope, half_split), rope(%x, base = rope))
  hydra.def @rotated_in_chunk(%x) = when(first_form, rope(%x, base = rope, half_split, period = Cs), rope(%x, base = rope, period = Cs))

  // Token ids to the final hidden states [B, S, D].
  hydra.def @trunk(%tokens) {
    %start = hydra.let when(scale_emb, embedding(%tokens, @embed) * sqrt(D), embedding(%tokens, @embed))
    %at = hydra.let when(masked, @padded(%tokens), when(packed, @documents(%tokens), 0))
    %end = hydra.for @layers carry(%x = %start) {
      %xt = hydra.let @timestep_norm(%x, @tn_w, @tn_b, %at, when(prior > 0, @prior_of(@tn_prior_mean, @tn_prior_logvar), 0))
      %average = hydra.let @moving_average(%xt, %at)
      %q0, %k0, %values, %mx = hydra.call @projections(%xt, %average)
      %o = hydra.let when(packed or masked, @attend_in_documents(%q0, %k0, %values, %at), @attend_in_row(%q0, %k0, %values))
      %out = hydra.let @rest(%x, %mx, %o)
      hydra.yield %out
    }
    %final = hydra.let @timestep_norm(%end, @norm_w, @norm_b, %at, when(prior > 0, @prior_of(@norm_prior_mean, @norm_prior_logvar), 0))
    hydra.yield %final
  }

  // The mean cross entropy of every token's successor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final = hydra.let @trunk(%tokens)
    // What follows the end of a document belongs to the next one.
    %in_document = hydra.let when(packed, select(%tokens == eos, -100, %labels), %labels)
    %own = hydra.let when(masked, select(%in_document == pad, -100, %in_document), %in_document)
    %loss = hydra.let linear_cross_entropy(%final, when(tied, @embed, @lm_head), %own)
    hydra.return loss = %loss
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), when(tied, @embed, @lm_head))
    hydra.return logits = %logits
  }
}
