// HYDRA: attention in a compressed width behind causal convolutions (CCGQA), feed-forward parts that each token passes as
// often as a router says (Mixture-of-Recursions), and that in the middle blocks only the k tokens with the largest scores
// pass (Mixture-of-Depths). models.md section 3.
//
// The tokens that a feed-forward part is for are gathered first (`hydra.compact`, `hydra.take_rows`), so that its
// work can follow their number; who is not among them gets zero.
//
// A curriculum goes from `mor = fixed` over `blend`, where `s` grows from 0 to 1, to the router's own depths (models.md
// 3.10); docs/training.md has the flags. Parts of the attention can be left out (`use_…`), and `compat_…` does what HYDRA's
// own program did by mistake (models.md 3.2, 3.6).

hydra.model @hydra version 1 {
  hydra.symbols dims(V = 50257, D, C = 4, H, Hk, F, Nb, R, min_depth = 1, conv = 3)
                reals(kappa = 0.5, w_aux, ponder_scale = 0.01, rope = 1.0e4, eps = 1.0e-6, embed_lr = 0.1)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                reals(loss_aware = 0.0, depth_alpha = 0.0)
                flags(blend = false, advantage = false, auto_nudge = false)
                flags(use_rope = true, use_qk_norm = true, use_convs = true, use_qk_mean = true, use_value_shift = true)
                flags(compat_rope_nograd = false, compat_ponder_off = false)
                choices(mor = dynamic of (fixed, dynamic, static), mod = topk of (dense, topk, static))
                choices(mod_static_skip = keep of (keep, zero))
  hydra.derive Lq = D / C   // width of the compressed queries
  hydra.derive hd = Lq / H  // width of a head
  hydra.derive Kd = Hk * hd // width of all key heads
  hydra.derive residual_std = 0.02 / sqrt(2 * Nb * R)
  // By how much deeper wider models begin.
  hydra.derive depth_scale = min(2.0, pow(D / 768.0, depth_alpha))

  hydra.preset @tiny   {D = 96,   Nb = 3,  R = 3, H = 6,  Hk = 3, F = 256,  w_aux = 0.1, V = 97, kappa = 0.75}
  hydra.preset @ref    {D = 96,   Nb = 3,  R = 3, H = 6,  Hk = 3, F = 256,  w_aux = 0.1, V = 97, kappa = 0.75}
  hydra.preset @bytes  {D = 256,  Nb = 3,  R = 2, H = 4,  Hk = 2, F = 512,  w_aux = 0.05, V = 256}
  // F = 256 ceil(int(3.6 D) / 256), min_lr = 0.3 lr
  hydra.preset @debug  {D = 512,  Nb = 2,  R = 2, H = 8,  Hk = 2, F = 2048, w_aux = 0.05}
      settings {batch = 32, accum = 2, clip = 2.0, lr = 2.58e-4, min_lr = 7.74e-5, schedule = wsd}
  hydra.preset @"50M"  {D = 512,  Nb = 8,  R = 3, H = 8,  Hk = 2, F = 2048, w_aux = 0.05}
      settings {batch = 24, accum = 2, clip = 4.0, lr = 1.41e-4, min_lr = 4.23e-5, schedule = wsd}
  hydra.preset @debug_tall_skinny {D = 384,  Nb = 12, R = 2, H = 6,  Hk = 2, F = 1536, w_aux = 0.01}
      settings {batch = 32, accum = 1, clip = 5.0, lr = 1.0e-4, min_lr = 3.0e-5, schedule = wsd}
  hydra.preset @"100M" {D = 768,  Nb = 8,  R = 4, H = 12, Hk = 3, F = 2816, w_aux = 0.1}
      settings {batch = 16, accum = 4, clip = 5.0, lr = 6.74e-5, min_lr = 2.022e-5, schedule = wsd}
  hydra.preset @DIAG   {D = 768,  Nb = 8,  R = 5, H = 12, Hk = 3, F = 2816, w_aux = 0.01}
      settings {batch = 16, accum = 4, clip = 5.0, lr = 1.41e-4, min_lr = 4.23e-5, schedule = wsd}
  hydra.preset @"250M" {D = 1024, Nb = 10, R = 4, H = 16, Hk = 4, F = 3840, w_aux = 0.0173}
      settings {batch = 12, accum = 8, clip = 5.0, lr = 6.32e-5, min_lr = 1.896e-5, schedule = wsd}
  hydra.preset @"300M" {D = 1152, Nb = 12, R = 4, H = 18, Hk = 3, F = 4352, w_aux = 0.02}
      settings {batch = 10, accum = 8, clip = 5.0, lr = 5.77e-5, min_lr = 1.731e-5, schedule = wsd}
  hydra.preset @"500M" {D = 1792, Nb = 14, R = 4, H = 28, Hk = 4, F = 6656, w_aux = 0.025}
      settings {batch = 4, accum = 15, clip = 5.0, lr = 5.5e-5, min_lr = 1.65e-5, schedule = wsd}
  hydra.preset @"750M" {D = 1536, Nb = 18, R = 4, H = 24, Hk = 4, F = 5632, w_aux = 0.0382}
      settings {batch = 4, accum = 16, clip = 5.0, lr = 3.65e-5, min_lr = 1.095e-5, schedule = wsd}
  hydra.preset @"1B"   {D = 1792, Nb = 20, R = 4, H = 28, Hk = 4, F = 6656, w_aux = 0.049}
      settings {batch = 2, accum = 30, clip = 5.0, lr = 3.16e-5, min_lr = 9.48e-6, schedule = wsd}
  hydra.preset @"1.5B" {D = 2048, Nb = 22, R = 4, H = 32, Hk = 4, F = 7424, w_aux = 0.0685}
      settings {batch = 1, accum = 60, clip = 5.0, lr = 2.58e-5, min_lr = 7.74e-6, schedule = wsd}
  // The published profile: ratio 2.67, dense MoD, the optimizer's own defaults.
  hydra.preset @"profile-100M"
      {D = 768, Nb = 8, R = 4, H = 12, Hk = 3, F = 2304, w_aux = 0.5, min_depth = 0, mod = dense, beta2 = 0.999, wd = 0.01}
      settings {batch = 4, seq = 1024, lr = 1.0e-4}
  hydra.preset @"profile-100M-as-run"
      {D = 768, Nb = 4, R = 6, H = 12, Hk = 3, F = 2304, w_aux = 0.5, min_depth = 0, mod = dense, beta2 = 0.999, wd = 0.01}
      settings {batch = 4, seq = 1024, lr = 1.0e-4}

  hydra.group @decay    adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)
  hydra.group @no_decay adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0)
  hydra.group @embed    adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0, lr_scale = embed_lr)

  hydra.param @tok_emb [V, D] init = normal(0.02) group = @embed from "tok_emb.weight"
  hydra.stack @layers[Nb] {
    hydra.param @norm1      [D]              init = ones                 group = @no_decay from "layers.{layer}.norm1.weight"
    hydra.param @qkv        [Lq + 2 * Kd, D] init = normal(0.02)         group = @decay    from "layers.{layer}.attention.qkv_proj.weight"
    hydra.param @q_conv1    [Lq, hd, conv]   init = normal(0.02)         group = @decay    when use_convs from "layers.{layer}.attention.q_conv.conv1.weight"
    hydra.param @q_conv2    [Lq, Lq, conv]   init = normal(0.02)         group = @decay    when use_convs from "layers.{layer}.attention.q_conv.conv2.weight"
    hydra.param @k_conv1    [Kd, hd, conv]   init = normal(0.02)         group = @decay    when use_convs from "layers.{layer}.attention.k_conv.conv1.weight"
    hydra.param @k_conv2    [Kd, Kd, conv]   init = normal(0.02)         group = @decay    when use_convs from "layers.{layer}.attention.k_conv.conv2.weight"
    hydra.param @tau        [1]              init = constant(sqrt(hd))   group = @no_decay when use_qk_norm from "layers.{layer}.attention.key_temperature"
    hydra.param @o_proj     [D, Lq]          init = normal(residual_std) group = @decay    from "layers.{layer}.attention.o_proj.weight"
    hydra.param @norm2      [D]              init = ones                 group = @no_decay from "layers.{layer}.norm2.weight"
    hydra.param @gate_up    [2 * F, D]       init = normal(0.02)         group = @decay    from "layers.{layer}.mlp.gate_up.weight"
    hydra.param @down       [D, F]           init = normal(residual_std) group = @decay    from "layers.{layer}.mlp.down.weight"
    hydra.param @rec_bias   [R, D]           init = zeros                group = @no_decay from "layers.{layer}.mor_executor.recursion_bias"
    hydra.param @rec_embed  [R, D]           init = normal(0.02)         group = @embed    from "layers.{layer}.mor_executor.recursion_embed.weight"
    hydra.param @mor_w      [D]              init = normal(0.02)         group = @decay    from "layers.{layer}.mor_router.router.weight"
    hydra.param @mor_b      [1] init = constant(logit(select(depth_alpha == 0.0, 0.2 + 0.3 * layer / max(1, Nb - 1),
                                              1 - (0.8 - 0.3 * layer / max(1, Nb - 1)) / depth_scale))) group = @no_decay
        from "layers.{layer}.mor_router.router.bias"
    // Mixture-of-Depths: not in the first and the last block.
    hydra.param @mod_w [D] init = normal(0.02) group = @decay when layer >= 1 and layer <= Nb - 2
        from "layers.{layer}.mod_mlp_wrapper.mod_router.router.weight"
    hydra.param @mod_b [1] init = constant(logit(clamp(kappa, 1.0e-4, 1 - 1.0e-4))) group = @no_decay
        when layer >= 1 and layer <= Nb - 2 from "layers.{layer}.mod_mlp_wrapper.mod_router.router.bias"
    hydra.param @final_norm [D]              init = ones                 group = @no_decay from "layers.{layer}.final_norm.weight"
  }
  hydra.param @norm [D] init = ones group = @no_decay from "norm.weight"

  // Mean and variance of tokens' losses, averaged over the batches before, and the number of those.
  hydra.state @ce_mean    [] init = zeros when advantage
  hydra.state @ce_var     [] init = zeros when advantage
  hydra.state @ce_batches [] init = zeros when advantage

  // What `auto_nudge` multiplies the lesson of the routers by, for how many batches more, and how many batches pass before
  // it may change again.
  hydra.state @nudge      [] init = ones  when auto_nudge
  hydra.state @nudge_left [] init = zeros when auto_nudge
  hydra.state @nudge_wait [] init = zeros when auto_nudge

  //===-- Attention ---------------------------------------------------------------------------===//

  // The rows of `x` [B, S, C] one later, zeros in front.
  hydra.def @later(%x) = slice(pad(%x, axis = 1, before = 1, after = 0), axis = 1, start = 0, size = S)

  // What a causal convolution of three taps reads of rows [B, S, C]: rows t - 2, t - 1 and t, side by side. Of other numbers
  // of taps it is written for any: rows t, t - 1, …, and weights are turned round.
  hydra.def @taps(%x) dims(width) = when(conv == 3, concat(@later(@later(%x)), @later(%x), %x, axis = 2), @any_taps(%x, width = width))
  hydra.def @any_taps(%x) dims(width) {
    %numbers = hydra.iota axis = 0 shape = [conv]
    %rows, %end = hydra.scan axis = 0 chunk = 1 over(%number = %numbers) carry(%row = %x) {
      %tap, %next = hydra.let reshape(%row, [1, B, S, width]), @later(%row)
      hydra.yield %tap, %next
    }
    %taps = hydra.let reshape(transpose(%rows, [1, 2, 0, 3]), [B, S, conv * width])
    hydra.yield %taps
  }
  // Weights [out, in, conv] in the order of @taps.
  hydra.def @in_order(%w) = when(conv == 3, %w, linear(%w, @turned_round()))
  hydra.def @turned_round() = cast(iota(axis = 0, shape = [conv, conv]) + iota(axis = 1, shape = [conv, conv]) == conv - 1, to = f32)

  // A convolution of taps [B, S, conv n hd], each of n heads for itself: [B, S, n hd].
  hydra.def @convolve_heads(%taps, %w) dims(n) {
    %rows = hydra.let reshape(transpose(reshape(%taps, [B, S, conv, n, hd]), [3, 0, 1, 2, 4]), [n, B * S, conv * hd])
    %w1 = hydra.let reshape(transpose(reshape(@in_order(%w), [n, hd, hd, conv]), [0, 1, 3, 2]), [n, hd, conv * hd])
    %y = hydra.let reshape(transpose(reshape(matmul(%rows, %w1, transpose_b), [n, B, S, hd]), [1, 2, 0, 3]), [B, S, n * hd])
    hydra.yield %y
  }
  // One of all channels, of which there are `width`: [B, S, width].
  hydra.def @convolve(%taps, %w) dims(width) = linear(%taps, reshape(transpose(@in_order(%w), [0, 2, 1]), [width, conv * width]))

  // Rows of a head with length 1. Bounded before the root, which has no derivative at zero.
  hydra.def @unit(%x) = %x / sqrt(max(sum(%x * %x, 3), 1.0e-24))

  // Queries [B, S, Lq], keys [B, S, Kd], the half of the values' channels that is a token's own, and the one that is the
  // next one's [B, S, Kd / 2].
  hydra.def @compressed(%n) {
    %f = hydra.let linear(%n, @qkv)
    %q, %k = hydra.let slice(%f, axis = 2, start = 0, size = Lq), slice(%f, axis = 2, start = Lq, size = Kd)
    %v_now = hydra.slice %f axis = 2 start = Lq + Kd size = Kd / 2
    %v_next = hydra.slice %f axis = 2 start = Lq + Kd + Kd / 2 size = Kd / 2
    hydra.yield %q, %k, %v_now, %v_next
  }

  // Queries [B, S, H, hd] and keys [B, S, Hk, hd] of what they were before and behind the convolutions, rotated for
  // positions from 0.
  hydra.def @heads(%q0, %k0, %q1, %k1) {
    // Queries and keys see each other's mean over heads; as many heads of both see each other.
    %q_heads, %k_heads = hydra.let reshape(%q0, [B, S, H, hd]), reshape(%k0, [B, S, Hk, hd])
    %to_k = hydra.let when(H == Hk, %q_heads + %k_heads, mean(%q_heads, 2)) * 0.5
    %to_q = hydra.let when(H == Hk, %q_heads + %k_heads, mean(%k_heads, 2)) * 0.5
    %q2 = hydra.let when(use_qk_mean, reshape(%q1, [B, S, H, hd]) + %to_q, reshape(%q1, [B, S, H, hd]))
    %k2 = hydra.let when(use_qk_mean, reshape(%k1, [B, S, Hk, hd]) + %to_k, reshape(%k1, [B, S, Hk, hd]))
    %q3, %k3 = hydra.let when(use_qk_norm, @unit(%q2), %q2), when(use_qk_norm, @unit(%k2) * @tau, %k2)
    %q, %k = hydra.let when(use_rope, @rotated(%q3), %q3), when(use_rope, @rotated(%k3), %k3)
    hydra.yield %q, %k
  }
  hydra.def @rotated(%x) = rope(when(compat_rope_nograd, detach(%x), %x), base = rope)

  hydra.def @attention(%n) {
    %q0, %k0, %v_now, %v_next = hydra.call @compressed(%n)
    %v = hydra.let reshape(concat(%v_now, when(use_value_shift, @later(%v_next), %v_next), axis = 2), [B, S, Hk, hd])
    %q2, %k2 = hydra.when use_convs {
      %q0_taps, %k0_taps = hydra.let @taps(%q0, width = Lq), @taps(%k0, width = Kd)
      %q1, %k1 = hydra.let @convolve_heads(%q0_taps, @q_conv1, n = H), @convolve_heads(%k0_taps, @k_conv1, n = Hk)
      %q1_taps, %k1_taps = hydra.let @taps(%q1, width = Lq), @taps(%k1, width = Kd)
      %qc, %kc = hydra.let @convolve(%q1_taps, @q_conv2, width = Lq), @convolve(%k1_taps, @k_conv2, width = Kd)
      hydra.yield %qc, %kc
    } else {
      hydra.yield %q0, %k0
    }
    %q, %k = hydra.call @heads(%q0, %k0, %q2, %k2)
    %y = hydra.let linear(reshape(attention(%q, %k, %v, scale = 1 / sqrt(hd), causal), [B, S, Lq]), @o_proj)
    hydra.yield %y
  }

  //===-- The routed feed-forward part ----------------------------------------------------------===//

  // Of rows [B S, D].
  hydra.def @mlp(%z) {
    %both = hydra.let linear(%z, @gate_up)
    %gate, %up = hydra.let slice(%both, axis = 1, start = 0, size = F), slice(%both, axis = 1, start = F, size = F)
    %y = hydra.let linear(silu(%gate) * %up, @down)
    hydra.yield %y
  }

  // The feed-forward part of all tokens [B, S, D].
  hydra.def @mlp_of_all(%z) = reshape(@mlp(reshape(%z, [B * S, D])), [B, S, D])

  // The same of the tokens that go on [B, S, 1]; zero for the others.
  hydra.def @mlp_of_some(%z, %going) {
    %rows, %mask = hydra.let reshape(%z, [B * S, D]), reshape(%going, [B * S])
    %index, %place, %count = hydra.compact %mask
    %y = hydra.let reshape(take_rows(@mlp(take_rows(%rows, %index, %place)), %place, %index), [B, S, D])
    hydra.yield %y
  }

  // Of one number a token [B, S, 1]: mean and unbiased variance.
  hydra.def @moments(%x) {
    %mean = hydra.let mean(%x, axes = [0, 1, 2])
    %off = hydra.let %x - %mean
    %variance = hydra.let sum(%off * %off, axes = [0, 1, 2]) * (1.0 / max(1, B * S - 1))
    hydra.yield %mean, %variance
  }

  // A router's logit for every token [B, S, 1]. Summed in f32 of unrounded numbers: its order decides.
  hydra.def @score(%x, %w, %b) = sum(%x * %w, 2) + %b

  // Who is among the k largest of every sequence [B, S].
  hydra.def @largest(%u) = top_k(%u, k = max(1, min(S, floor(S * kappa))))

  // How many tokens are marked [B, S, 1].
  hydra.def @number_of(%marked) = sum(cast(%marked, to = f32), axes = [0, 1, 2])

  // The loss that keeps the router balanced, of mean and variance of its probabilities.
  hydra.def @balance(%mean, %variance) {
    %miss = hydra.let %mean - kappa
    %indifference = hydra.let exp(%variance * (-5.0 / max(0.5 * kappa * (1 - kappa), 0.01)))
    %y = hydra.let (%miss * %miss + %indifference * 0.5) * w_aux
    hydra.yield %y
  }

  // The feed-forward part of tokens that go on [B, S, 1]: of all, unless `some`, whose depths differ; and their number.
  hydra.def @mlp_of(%z, %going) flags(some) = when(some and mor == dynamic, @mlp_of_some(%z, %going), @mlp_of_all(%z)),
                                              when(some, @number_of(%going), B * S)

  // What a recursion makes of `h`: it adds to the tokens that go on [B, S, 1], or with `some = false` to all. How many pass
  // the feed-forward part [1]; and what the router of middle blocks says: the loss that keeps it balanced, mean and
  // variance of its probabilities, its bounded scores [B, S, 1].
  hydra.def @pass(%h, %bias, %embed, %going) flags(some) {
    %z = hydra.let rms_norm(%h + %bias + %embed, @norm2, eps = eps)
    %delta, %count, %router = hydra.when layer >= 1 and layer <= Nb - 2 {
      // Mixture-of-Depths.
      %u = hydra.let @score(%z, @mod_w, @mod_b)
      %scores = hydra.let min(max(%u, -10), 10)
      %p = hydra.let sigmoid(%scores)
      %d, %n = hydra.when mod == topk {
        %chosen = hydra.let reshape(@largest(reshape(%u, [B, S])), [B, S, 1])
        %passing = hydra.let when(some, cast(%chosen, to = f32) * cast(%going, to = f32) > 0, %chosen)
        %y, %n = hydra.let @mlp_of_some(%z, %passing), @number_of(%passing)
        hydra.yield %y, %n
      } else {
        %y, %n = hydra.call @mlp_of(%z, %going, some = some)
        // With static routing: what passed and what did not, by probability.
        %rest = hydra.let 1 - %p
        %mixed = hydra.let when(mod == static, when(mod_static_skip == keep, %y * %p + %z * %rest, %y * %p), %y)
        hydra.yield %mixed, %n
      }
      %mean, %variance = hydra.call @moments(%p)
      %says = hydra.let bundle(aux = @balance(%mean, %variance), mean = %mean, variance = %variance, scores = %scores)
      hydra.yield %d, %n, %says
    } else {
      %y, %n = hydra.call @mlp_of(%z, %going, some = some)
      %silent = hydra.let @silent_router()
      hydra.yield %y, %n, %silent
    }
    %row, %passed = hydra.let reshape(%count, [1]), %h + %delta // of tokens that stay behind: nothing
    hydra.yield %passed, %row, %router
  }
  hydra.def @silent_router() = bundle(aux = 0, mean = 0, variance = 0, scores = constant(value = 0, shape = [B, S, 1]))

  // What the block's value is once recursion `r` has made `passed` of the tokens in `active`: `sum` so far.
  hydra.def @value_after(%passed, %sum, %active, %r, %route) {
    %weight = hydra.let @weight_at(%r, %route)
    // The value itself, unless tokens keep that of a deeper recursion; its derivative goes to the router too.
    %value = hydra.let when(mor == static, %sum + %passed * (%weight / %route.total),
        select(%route.depth >= %r + 0.5, %sum, select(%active, %passed * (%weight + 1 - detach(%weight)), %sum)))
    hydra.yield %value
  }
  hydra.def @weight_at(%r, %route) {
    %distance = hydra.let %route.position - %r
    %weight = hydra.let exp(-(%distance * %distance))
    hydra.yield %weight
  }

  // The same of all recursions together, where nothing changes tokens that stay behind: what `passed` in the end, by the
  // weight of the last recursion that a token was in.
  hydra.def @value_at_end(%passed, %route) {
    %later = hydra.let iota(axis = 2, shape = [1, 1, R - 1], dtype = f32) + 1
    %last = hydra.let sum(cast(%route.depth >= %later - 0.5, to = f32), 2)
    %weight = hydra.let @weight_at(%last, %route)
    %value = hydra.let %passed * (%weight + 1 - detach(%weight))
    hydra.yield %value
  }

  // Of depths [Nb, B S], how many tokens have each [Nb, R].
  hydra.def @histogram(%depths) {
    %depth, %r = hydra.let reshape(%depths, [Nb, B * S, 1]), iota(axis = 2, shape = [1, 1, R], dtype = f32)
    %has = hydra.let cast(%depth >= %r - 0.5, to = f32) - cast(%depth >= %r + 0.5, to = f32)
    %counts = hydra.let reshape(sum(%has, 1), [Nb, R])
    hydra.yield %counts
  }

  // Every token passes all recursions, from the block's middle `h0`, and counts at the last one: its last value; how many
  // tokens pass each feed-forward part [R]; what the router of the last recursion says; the ponder loss; the depth of each
  // token [B S]; the depth router's probabilities [B, S, 1].
  hydra.def @all_recursions(%h0) {
    %biases, %embeds, %everyone, %silent = hydra.let @rec_bias, @rec_embed, @everyone(), @silent_router()
    %rows, %end, %router = hydra.scan axis = 0 chunk = 1 over(%bias = %biases, %embed = %embeds)
        carry(%cur = %h0, %says = %silent) {
      %passed, %row, %next = hydra.call @pass(%cur, %bias, %embed, %everyone, some = false)
      hydra.yield %row, %passed, %next
    }
    %block = hydra.let bundle(value = %end, passed = %rows, router = %router, ponder = 0,
                              depth = constant(value = R - 1, shape = [B * S]), p = constant(value = 0, shape = [B, S, 1]))
    hydra.yield %block
  }
  hydra.def @everyone() = constant(value = 0, shape = [B, S, 1]) == constant(value = 0, shape = [B, S, 1])

  // The loss for the router's spread: of its bounded scores `l` and probabilities `p` [B, S, 1].
  hydra.def @ponder(%l, %p, %warm) {
    %mean_p, %var_p = hydra.call @moments(%p)
    %mean_l, %var_l = hydra.call @moments(%l)
    %cost, %spread, %lacking = hydra.let when(R == 1, 0, %mean_p * 0.0005), exp(%var_p * -10) * 0.01, max(0.5 - %var_l, 0)
    %y = hydra.let min((%cost + %spread + %lacking * 0.1) * %warm, 5)
    hydra.yield %y
  }

  // Where tokens go: depth (a real number, rounded where it is compared), the position that the weights of recursions go
  // by, and the sum of those weights, all [B, S, 1].
  hydra.def @route(%p) {
    %position = hydra.let %p * (R - 1)
    %depth = hydra.let %p * (R - 1 - min(min_depth, R - 1)) + min(min_depth, R - 1)
    %distances = hydra.let %position - iota(axis = 2, shape = [1, 1, R], dtype = f32)
    %route = hydra.let bundle(position = %position, depth = %depth, total = sum(exp(-(%distances * %distances)), 2) + 1.0e-8)
    hydra.yield %route
  }

  // Mixture-of-Recursions: the same, but every token passes the recursions that the router gives it.
  hydra.def @routed_recursions(%h0, %warm) {
    %l = hydra.let tanh(@score(%h0, @mor_w, @mor_b) * 0.5) * 3
    %p = hydra.let sigmoid(%l)
    %ponder, %route = hydra.let when(compat_ponder_off, 0, @ponder(%l, %p, %warm)), @route(%p)
    %bias0, %embed0 = hydra.let slice(@rec_bias, axis = 0, start = 0, size = 1), slice(@rec_embed, axis = 0, start = 0, size = 1)
    %nothing, %r0, %everyone = hydra.let constant(value = 0, shape = [B, S, D]), constant(value = 0, shape = [1, 1, 1]), @everyone()
    %passed0, %row0, %router0 = hydra.call @pass(%h0, %bias0, %embed0, %everyone, some = false)
    %value0 = hydra.let @value_after(%passed0, %nothing, %everyone, %r0, %route)
    %value, %rows, %router = hydra.when R == 1 {
      hydra.yield %value0, %row0, %router0
    } else {
      %biases, %embeds = hydra.let slice(@rec_bias, axis = 0, start = 1, size = R - 1), slice(@rec_embed, axis = 0, start = 1, size = R - 1)
      %numbers = hydra.let iota(axis = 0, shape = [R - 1, 1, 1], dtype = f32) + 1
      %later, %end, %value, %last = hydra.scan axis = 0 chunk = 1 over(%bias = %biases, %embed = %embeds, %r = %numbers)
          carry(%cur = %passed0, %sum = %value0, %says = %router0) {
        %active = hydra.let when(mor == dynamic, %route.depth, constant(value = R, shape = [B, S, 1])) >= %r - 0.5
        %passed, %row, %next = hydra.call @pass(%cur, %bias, %embed, %active, some = true)
        %value = hydra.let when(mor == dynamic and not mod == static, %sum, @value_after(%passed, %sum, %active, %r, %route))
        hydra.yield %row, %passed, %value, %next
      }
      %all = hydra.concat %row0, %later axis = 0
      %own = hydra.let when(mor == dynamic and not mod == static, @value_at_end(%end, %route), %value)
      hydra.yield %own, %all, %last
    }
    %depth = hydra.let reshape(when(mor == static, %route.position, %route.depth), [B * S])
    %block = hydra.bundle value = %value, passed = %rows, router = %router, ponder = %ponder, depth = %depth, p = %p
    hydra.yield %block
  }

  //===-- The model ---------------------------------------------------------------------------===//

  // A block's middle `h0`, of its input and what attention makes of that, to its end. Depths are those that all tokens
  // share, which count at the last recursion, or the router's. While blending, a part `s` of the router's value and the
  // rest of that of full depth; the losses are those of the router's.
  hydra.def @block_end(%x, %mixed, %s, %warm) {
    %h0 = hydra.let %x + %mixed * 0.5
    %block = hydra.let when(mor == fixed, @all_recursions(%h0), @routed_recursions(%h0, %warm))
    %own = hydra.let rms_norm(%block.value, @final_norm, eps = eps)
    %out = hydra.let when(blend and not mor == fixed, @blended(%own, %h0, %s), %own)
    hydra.yield %out, %block
  }
  hydra.def @blended(%own, %h0, %s) {
    %full, %part = hydra.let @all_recursions(%h0), min(max(%s, 0), 1)
    %y = hydra.let %own * %part + rms_norm(%full.value, @final_norm, eps = eps) * (1 - %part)
    hydra.yield %y
  }

  hydra.def @embedded(%tokens) = embedding(%tokens, @tok_emb) * sqrt(D)

  // The last hidden values [B, S, D]; sums over blocks: of the balance and ponder losses, of the depth routers'
  // probabilities, of the Mixture-of-Depths' scores and log(1 + e^-score) [B, S, 1]; what @routing tells of blocks.
  hydra.def @trunk(%tokens, %s, %warm) {
    %start, %nothing = hydra.let @embedded(%tokens), constant(value = 0, shape = [B, S, 1])
    %zeros = hydra.let bundle(aux = 0, ponder = 0, p = %nothing, scores = %nothing, softplus = %nothing)
    %blocks, %end, %sums = hydra.for @layers carry(%x = %start, %sum = %zeros) {
      %mixed = hydra.let @attention(rms_norm(%x, @norm1, eps = eps))
      %out, %block = hydra.call @block_end(%x, %mixed, %s, %warm)
      %next = hydra.let bundle(aux = %sum.aux + %block.router.aux, ponder = %sum.ponder + %block.ponder, p = %sum.p + %block.p,
          scores = when(layer >= 1 and layer <= Nb - 2, %sum.scores + %block.router.scores, %sum.scores),
          softplus = when(layer >= 1 and layer <= Nb - 2, %sum.softplus + log(1 + exp(-%block.router.scores)), %sum.softplus))
      %tells = hydra.let bundle(passed = %block.passed, depth = %block.depth, means = reshape(%block.router.mean, [1]),
                                variances = reshape(%block.router.variance, [1]))
      hydra.yield %tells, %out, %next
    }
    %final = hydra.let rms_norm(%end, @norm, eps = eps)
    hydra.yield %final, %sums, %blocks
  }

  // What tokens' losses `e` [B, S] say about their depths `sums.p`: deep where the loss is large. From the thousandth batch
  // on; before, losses only enter their mean and variance.
  hydra.def @advantage(%e, %valid, %sums, %lambda) {
    // The loss of the batch's own rows: that of the step divides by the rows of all its micro-batches.
    %number = hydra.let sum(%valid, axes = [0, 1])
    %ce = hydra.let sum(%e * %valid, axes = [0, 1]) / max(%number, 1)
    %off = hydra.let %e - %ce
    %variance = hydra.let sum(%off * %off * %valid, axes = [0, 1]) / max(%number - 1, 1)
    %mean1, %var1 = hydra.let @ce_mean * 0.99 + %ce * 0.01, @ce_var * 0.99 + %variance * 0.01
    %mean2, %var2 = hydra.let select(@ce_batches == 0, %ce, %mean1), select(@ce_batches == 0, %variance, %var1)
    // A batch in which no row counts says nothing.
    %mean, %var = hydra.let select(%number > 0, %mean2, @ce_mean), select(%number > 0, %var2, @ce_var)
    %batches, %deviation = hydra.let @ce_batches + min(%number, 1), max(sqrt(%var), 0.01)
    %bounded = hydra.let tanh((%e - %mean) / %deviation)
    %product = hydra.let mean(detach(select(%batches > 999.5, %bounded, 0)) * reshape(%sums.p, [B, S]), axes = [0, 1])
    %lesson = hydra.let bundle(lesson = %product * (1 - R) * %lambda, mean = %mean, var = %var, batches = %batches)
    hydra.yield %lesson
  }

  // The Mixture-of-Depths' scores, summed over blocks, against the tokens with the largest losses `e` [B, S] of their
  // sequence: cross entropy of yes or no, in which the few have as much weight as the many.
  hydra.def @loss_aware(%e, %valid, %sums) {
    %teacher = hydra.let cast(@largest(select(%valid > 0, %e, -inf)), to = f32)
    %k, %length = hydra.let max(1, min(S, floor(S * kappa))), S
    %positive = hydra.let max((%length - %k) / %k, 1)
    %u, %l = hydra.let reshape(%sums.scores, [B, S]), reshape(%sums.softplus, [B, S])
    %losses = hydra.let (1 - %teacher) * %u + (%teacher * (%positive - 1) + 1) * %l
    %loss = hydra.let sum(%losses * %valid, axes = [0, 1]) / max(sum(%valid, axes = [0, 1]), 1) * loss_aware
    hydra.yield %loss
  }

  // The cross entropy, and what the routers learn from tokens' losses, with the new averages of those.
  hydra.def @judge(%final, %labels, %sums, %lambda) {
    %head = hydra.use @tok_emb
    %ce, %e = hydra.linear_cross_entropy %final, %head, %labels rows
    %valid = hydra.let cast(compare(%labels, -100, is = "ne"), to = f32)
    %adv = hydra.let when(advantage, @advantage(%e, %valid, %sums, %lambda), bundle(lesson = 0, mean = 0, var = 0, batches = 0))
    %aware = hydra.let when(loss_aware > 0.0 and not mor == fixed, @loss_aware(%e, %valid, %sums), 0)
    %judged = hydra.let bundle(ce = %ce, lesson = %adv.lesson + %aware, adv = %adv.lesson, aware = %aware, mean = %adv.mean,
                               var = %adv.var, batches = %adv.batches)
    hydra.yield %judged
  }
  hydra.def @cross_entropy(%final, %labels) = linear_cross_entropy(%final, @tok_emb, %labels)

  // What the routers do: their parts of the loss; of every block how many tokens have each depth [Nb, R] and the mean depth
  // [Nb, 1]; mean and standard deviation of the Mixture-of-Depths' probabilities [Nb, 1] in the last recursion of middle
  // blocks, which keep near `mod_target`; how many tokens pass the feed-forward part of each recursion [Nb, R], and what
  // part that is of all tokens in all recursions [Nb, 1].
  hydra.def @told(%sums, %blocks) {
    %depths, %means, %deviations = hydra.let @histogram(%blocks.depth), %blocks.means, sqrt(%blocks.variances)
    %mean_depths = hydra.let sum(%depths * iota(axis = 1, shape = [1, R], dtype = f32), 1) * (1.0 / (B * S))
    %computed = hydra.let mean(%blocks.passed, 1) * (1.0 / (B * S))
    %aux, %ponder, %rows, %target = hydra.let %sums.aux, %sums.ponder, %blocks.passed, kappa
    hydra.yield %aux, %ponder, %depths, %mean_depths, %means, %deviations, %target, %rows, %computed
  }

  // What the lesson is multiplied by from the next batch on, by the number of tokens at each depth [Nb, R]: where more than
  // nine tenths of them share a depth, 2 for the first one and 0.1 for the least that the router may give, for 50 batches,
  // and not again before 500.
  hydra.def @nudged(%depths) {
    %most = hydra.let 0.9 * (Nb * B * S)
    %at_first, %at_least = hydra.let @number_at(%depths, r = 0) > %most, @number_at(%depths, r = min(min_depth, R - 1)) > %most
    %kept, %left, %waits = hydra.let select(@nudge_left > 1.5, @nudge, 1), max(@nudge_left - 1, 0), max(@nudge_wait - 1, 0)
    // Nothing to wait for, and a depth that is shared: a product of numbers that are 0 or 1.
    %begins = hydra.let cast(%waits < 0.5, to = f32) * max(cast(%at_first, to = f32), cast(%at_least, to = f32)) > 0.5
    %nudge = hydra.let bundle(factor = select(%begins, select(%at_first, constant(value = 2.0, shape = []), 0.1), %kept),
                              left = select(%begins, 50, %left), wait = select(%begins, 500, %waits))
    hydra.yield %nudge
  }
  hydra.def @number_at(%depths) dims(r) = sum(slice(%depths, axis = 1, start = r, size = 1), axes = [0, 1])

  // The mean cross entropy of every token's successor, and the losses of the routers; the head is the embedding; and what
  // the routers do, for the log. Numbers of a step: the routers' part while blending; how far the ponder loss has warmed
  // up; the weight of the advantage loss, and a factor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0,
                    %adv_lambda: [] f32 = 0.02, %adv_mult: [] f32 = 1.0) dims(B, S) {
    %final, %sums, %blocks = hydra.call @trunk(%tokens, %s, %warm)
    %judged = hydra.let when(advantage or loss_aware > 0.0, @judge(%final, %labels, %sums, %adv_lambda),
                             bundle(ce = @cross_entropy(%final, %labels), lesson = 0, adv = 0, aware = 0, mean = 0, var = 0, batches = 0))
    hydra.section @total
    %part = hydra.let when(blend, min(max(%s, 0), 1), 1)
    %balanced, %paid = hydra.let min(%sums.aux, 100), min(%sums.ponder * %part, 100) * ponder_scale
    %pondered = hydra.let %judged.ce + %balanced + %paid
    %factor = hydra.let when(auto_nudge, %adv_mult * @nudge, %adv_mult)
    %loss = hydra.let when(advantage or loss_aware > 0.0, %pondered + min(%judged.lesson * %part * %factor, 10), %pondered)
    %adv, %aware = hydra.let when(advantage, %judged.adv * %part * %factor, 0), when(loss_aware > 0.0, %judged.aware * %part * %factor, 0)
    %ce, %mean, %var, %batches = hydra.let %judged.ce, %judged.mean, %judged.var, %judged.batches
    %aux, %ponder, %depths, %mean_depths, %means, %deviations, %target, %rows, %computed = hydra.call @told(%sums, %blocks)
    %next = hydra.let when(auto_nudge, @nudged(%depths), bundle(factor = 0, left = 0, wait = 0))
    %nudge, %nudge_left, %nudge_wait = hydra.let %next.factor, %next.left, %next.wait
    hydra.return loss = %loss, ce = %ce, aux = %aux, ponder = %ponder, depths = %depths, mean_depth = %mean_depths,
        mod_mean = %means, mod_std = %deviations, mod_target = %target, rows = %rows, computed = %computed,
        advantage = %adv when advantage, loss_aware = %aware when loss_aware > 0.0
        updates(@ce_mean = %mean, @ce_var = %var, @ce_batches = %batches, @nudge = %nudge, @nudge_left = %nudge_left,
                @nudge_wait = %nudge_wait)
  }

  // What the routers do, by itself: of what @loss gives all but the loss.
  hydra.entry @routing(%tokens: [B, S] i32, %labels: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %final, %sums, %blocks = hydra.call @trunk(%tokens, %s, %warm)
    %ce = hydra.let @cross_entropy(%final, %labels)
    %aux, %ponder, %depths, %mean_depths, %means, %deviations, %target, %rows, %computed = hydra.call @told(%sums, %blocks)
    hydra.return ce = %ce, aux = %aux, ponder = %ponder, depths = %depths, mean_depth = %mean_depths,
        mod_mean = %means, mod_std = %deviations, mod_target = %target, rows = %rows, computed = %computed
  }

  // What held-out text is measured by: the cross entropy alone.
  hydra.entry @eval(%tokens: [B, S] i32, %labels: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %final, %sums, %blocks = hydra.call @trunk(%tokens, %s, %warm)
    %ce = hydra.let @cross_entropy(%final, %labels)
    hydra.return loss = %ce
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %final, %sums, %blocks = hydra.call @trunk(%tokens, %s, %warm)
    %logits = hydra.let linear(%final, @tok_emb)
    hydra.return logits = %logits
  }
}
