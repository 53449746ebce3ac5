// HYDRA: attention in a compressed width behind causal convolutions (CCGQA), feed-forward parts that each token
// passes as often as a router says (Mixture-of-Recursions), and that in the middle blocks only the k tokens
// with the largest scores pass (Mixture-of-Depths). models.md section 3.
//
// The tokens that a feed-forward part is for are brought together first (`hydra.compact`, `hydra.take_rows`), so
// that its work can follow their number; who is not among them gets zero.
//
// A curriculum goes from `mor = fixed` over `blend`, where `s` grows from 0 to 1, to the router's own depths
// (models.md 3.10); docs/training.md has the flags.

hydra.model @hydra version 1 {
  hydra.symbols dims(V = 50257, D, C = 4, H, Hk, F, Nb, R, min_depth = 1, T = 256)
                reals(kappa = 0.5, w_aux, ponder_scale = 0.01, rope = 1.0e4, eps = 1.0e-6, embed_lr = 0.1)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                reals(loss_aware = 0.0)
                flags(blend = false, advantage = false)
                choices(mor = dynamic of (fixed, dynamic, static), mod = topk of (dense, topk, static))
  hydra.derive Lq = D / C   // width of the compressed queries
  hydra.derive hd = Lq / H  // width of a head
  hydra.derive Kd = Hk * hd // width of all key heads
  hydra.derive residual_std = 0.02 / sqrt(2 * Nb * R)

  hydra.preset @ref    {D = 96,   Nb = 3,  R = 3, H = 6,  Hk = 3, F = 256,  w_aux = 0.1, V = 97, kappa = 0.75}
  hydra.preset @bytes  {D = 256,  Nb = 3,  R = 2, H = 4,  Hk = 2, F = 512,  w_aux = 0.05, V = 256}

  // F = 256 ceil(int(3.6 D) / 256)
  hydra.preset @debug  {D = 512,  Nb = 2,  R = 2, H = 8,  Hk = 2, F = 2048, w_aux = 0.05}
  hydra.preset @"50M"  {D = 512,  Nb = 8,  R = 3, H = 8,  Hk = 2, F = 2048, w_aux = 0.05}
  hydra.preset @debug_tall_skinny
                       {D = 384,  Nb = 12, R = 2, H = 6,  Hk = 2, F = 1536, w_aux = 0.01}
  hydra.preset @"100M" {D = 768,  Nb = 8,  R = 4, H = 12, Hk = 3, F = 2816, w_aux = 0.1}
  hydra.preset @DIAG   {D = 768,  Nb = 8,  R = 5, H = 12, Hk = 3, F = 2816, w_aux = 0.01}
  hydra.preset @"250M" {D = 1024, Nb = 10, R = 4, H = 16, Hk = 4, F = 3840, w_aux = 0.0173}
  hydra.preset @"300M" {D = 1152, Nb = 12, R = 4, H = 18, Hk = 3, F = 4352, w_aux = 0.02}
  hydra.preset @"500M" {D = 1792, Nb = 14, R = 4, H = 28, Hk = 4, F = 6656, w_aux = 0.025}
  hydra.preset @"750M" {D = 1536, Nb = 18, R = 4, H = 24, Hk = 4, F = 5632, w_aux = 0.0382}
  hydra.preset @"1B"   {D = 1792, Nb = 20, R = 4, H = 28, Hk = 4, F = 6656, w_aux = 0.049}
  hydra.preset @"1.5B" {D = 2048, Nb = 22, R = 4, H = 32, Hk = 4, F = 7424, w_aux = 0.0685}
  // The published profile: ratio 2.67, dense MoD, the optimizer's own defaults.
  hydra.preset @"profile-100M"
      {D = 768, Nb = 8, R = 4, H = 12, Hk = 3, F = 2304, w_aux = 0.5, min_depth = 0, mod = dense,
       beta2 = 0.999, wd = 0.01}
  hydra.preset @"profile-100M-as-run"
      {D = 768, Nb = 4, R = 6, H = 12, Hk = 3, F = 2304, w_aux = 0.5, min_depth = 0, mod = dense,
       beta2 = 0.999, wd = 0.01}

  hydra.group @decay    adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)
  hydra.group @no_decay adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0)
  hydra.group @embed    adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0, lr_scale = embed_lr)

  hydra.param @tok_emb [V, D] init = normal(0.02) group = @embed
  hydra.stack @layers[Nb] {
    hydra.param @norm1      [D]              init = ones                 group = @no_decay
    hydra.param @qkv        [Lq + 2 * Kd, D] init = normal(0.02)         group = @decay
    hydra.param @q_conv1    [Lq, hd, 3]      init = normal(0.02)         group = @decay
    hydra.param @q_conv2    [Lq, Lq, 3]      init = normal(0.02)         group = @decay
    hydra.param @k_conv1    [Kd, hd, 3]      init = normal(0.02)         group = @decay
    hydra.param @k_conv2    [Kd, Kd, 3]      init = normal(0.02)         group = @decay
    hydra.param @tau        [1]              init = constant(sqrt(hd))   group = @no_decay
    hydra.param @o_proj     [D, Lq]          init = normal(residual_std) group = @decay
    hydra.param @norm2      [D]              init = ones                 group = @no_decay
    hydra.param @gate_up    [2 * F, D]       init = normal(0.02)         group = @decay
    hydra.param @down       [D, F]           init = normal(residual_std) group = @decay
    hydra.param @rec_bias   [R, D]           init = zeros                group = @no_decay
    hydra.param @rec_embed  [R, D]           init = normal(0.02)         group = @embed
    hydra.param @mor_w      [D]              init = normal(0.02)         group = @decay
    hydra.param @mor_b      [1]
        init = constant(logit(0.2 + 0.3 * layer / max(1, Nb - 1)))       group = @no_decay
    // Mixture-of-Depths: not in the first and the last block.
    hydra.param @mod_w      [D]              init = normal(0.02)         group = @decay
        when layer >= 1 and layer <= Nb - 2
    hydra.param @mod_b      [1]
        init = constant(logit(clamp(kappa, 1.0e-4, 1 - 1.0e-4)))         group = @no_decay
        when layer >= 1 and layer <= Nb - 2
    hydra.param @final_norm [D]              init = ones                 group = @no_decay
  }
  hydra.param @norm [D] init = ones group = @no_decay

  // Mean and variance of tokens' losses, averaged over the batches before, and the number of those.
  hydra.state @ce_mean    [] init = zeros when advantage
  hydra.state @ce_var     [] init = zeros when advantage
  hydra.state @ce_batches [] init = zeros when advantage

  //===-- Attention ---------------------------------------------------------------------------===//

  // The rows of `x` [B, S, C] one later, zeros in front.
  hydra.def @later(%x) {
    %padded = hydra.pad %x axis = 1 before = 1 after = 0
    %y = hydra.slice %padded axis = 1 start = 0 size = S
    hydra.yield %y
  }

  // What a causal convolution of three taps reads of rows [B, S, C]: rows t - 2, t - 1 and t, side by side.
  hydra.def @taps(%x) {
    %x1 = hydra.call @later(%x)
    %x2 = hydra.call @later(%x1)
    %y = hydra.concat %x2, %x1, %x axis = 2
    hydra.yield %y
  }
  // The same of rows with the two before them in front [B, S + 2, C].
  hydra.def @taps_behind(%x) {
    %x2 = hydra.slice %x axis = 1 start = 0 size = S
    %x1 = hydra.slice %x axis = 1 start = 1 size = S
    %x0 = hydra.slice %x axis = 1 start = 2 size = S
    %y = hydra.concat %x2, %x1, %x0 axis = 2
    hydra.yield %y
  }

  // A convolution of queries, of their taps [B, S, 3 Lq], each head for itself: [B, S, Lq].
  hydra.def @convolve_query_heads(%taps, %w) {
    %by_head = hydra.reshape %taps shape = [B, S, 3, H, hd]
    %heads = hydra.transpose %by_head order = [3, 0, 1, 2, 4]
    %rows = hydra.reshape %heads shape = [H, B * S, 3 * hd]
    %w0 = hydra.reshape %w shape = [H, hd, hd, 3]
    %w1 = hydra.transpose %w0 order = [0, 1, 3, 2]
    %w2 = hydra.reshape %w1 shape = [H, hd, 3 * hd]
    %y0 = hydra.matmul %rows, %w2 transpose_b
    %y1 = hydra.reshape %y0 shape = [H, B, S, hd]
    %y2 = hydra.transpose %y1 order = [1, 2, 0, 3]
    %y = hydra.reshape %y2 shape = [B, S, Lq]
    hydra.yield %y
  }
  // The same of keys: [B, S, Kd].
  hydra.def @convolve_key_heads(%taps, %w) {
    %by_head = hydra.reshape %taps shape = [B, S, 3, Hk, hd]
    %heads = hydra.transpose %by_head order = [3, 0, 1, 2, 4]
    %rows = hydra.reshape %heads shape = [Hk, B * S, 3 * hd]
    %w0 = hydra.reshape %w shape = [Hk, hd, hd, 3]
    %w1 = hydra.transpose %w0 order = [0, 1, 3, 2]
    %w2 = hydra.reshape %w1 shape = [Hk, hd, 3 * hd]
    %y0 = hydra.matmul %rows, %w2 transpose_b
    %y1 = hydra.reshape %y0 shape = [Hk, B, S, hd]
    %y2 = hydra.transpose %y1 order = [1, 2, 0, 3]
    %y = hydra.reshape %y2 shape = [B, S, Kd]
    hydra.yield %y
  }
  // One of all channels of queries: [B, S, Lq].
  hydra.def @convolve_queries(%taps, %w) {
    %w0 = hydra.transpose %w order = [0, 2, 1]
    %w1 = hydra.reshape %w0 shape = [Lq, 3 * Lq]
    %y = hydra.linear %taps, %w1
    hydra.yield %y
  }
  // The same of keys: [B, S, Kd].
  hydra.def @convolve_keys(%taps, %w) {
    %w0 = hydra.transpose %w order = [0, 2, 1]
    %w1 = hydra.reshape %w0 shape = [Kd, 3 * Kd]
    %y = hydra.linear %taps, %w1
    hydra.yield %y
  }

  // Rows of a head with length 1.
  hydra.def @unit(%x) {
    %squares = hydra.mul %x, %x
    %sum = hydra.sum %squares axes = [3] keep
    // Bounded before the root, which has no derivative at zero.
    %least = hydra.constant value = 1.0e-24
    %square = hydra.max %sum, %least
    %length = hydra.sqrt %square
    %y = hydra.div %x, %length
    hydra.yield %y
  }

  // Queries [B, S, Lq], keys [B, S, Kd], the half of the values' channels that is a token's own, and the one that is
  // the next one's [B, S, Kd / 2].
  hydra.def @compressed(%n) {
    %qkv = hydra.use @qkv
    %f = hydra.linear %n, %qkv
    %q = hydra.slice %f axis = 2 start = 0 size = Lq
    %k = hydra.slice %f axis = 2 start = Lq size = Kd
    %v_now = hydra.slice %f axis = 2 start = Lq + Kd size = Kd / 2
    %v_next = hydra.slice %f axis = 2 start = Lq + Kd + Kd / 2 size = Kd / 2
    hydra.yield %q, %k, %v_now, %v_next
  }

  // Queries [B, S, H, hd] and keys [B, S, Hk, hd] of what they were before and behind the convolutions, rotated for
  // positions from 0.
  hydra.def @heads(%q0, %k0, %q1, %k1) {
    // Queries and keys see each other's mean over heads; as many heads of both see each other.
    %q_heads = hydra.reshape %q0 shape = [B, S, H, hd]
    %k_heads = hydra.reshape %k0 shape = [B, S, Hk, hd]
    %q_convolved = hydra.reshape %q1 shape = [B, S, H, hd]
    %k_convolved = hydra.reshape %k1 shape = [B, S, Hk, hd]
    %half = hydra.constant value = 0.5
    %to_q, %to_k = hydra.when H == Hk {
      %both = hydra.add %q_heads, %k_heads
      hydra.yield %both, %both
    } else {
      %q_mean = hydra.mean %q_heads axes = [2] keep
      %k_mean = hydra.mean %k_heads axes = [2] keep
      hydra.yield %k_mean, %q_mean
    }
    %to_q_half = hydra.mul %to_q, %half
    %to_k_half = hydra.mul %to_k, %half
    %q2 = hydra.add %q_convolved, %to_q_half
    %k2 = hydra.add %k_convolved, %to_k_half
    %tau = hydra.use @tau
    %q3 = hydra.call @unit(%q2)
    %k3 = hydra.call @unit(%k2)
    %k4 = hydra.mul %k3, %tau
    %q = hydra.rope %q3 base = rope
    %k = hydra.rope %k4 base = rope
    hydra.yield %q, %k
  }

  hydra.def @attention(%n) {
    %q0, %k0, %v_now, %v_next = hydra.call @compressed(%n)
    %v_before = hydra.call @later(%v_next)
    %v0 = hydra.concat %v_now, %v_before axis = 2
    %v = hydra.reshape %v0 shape = [B, S, Hk, hd]

    %q_conv1 = hydra.use @q_conv1
    %q_conv2 = hydra.use @q_conv2
    %k_conv1 = hydra.use @k_conv1
    %k_conv2 = hydra.use @k_conv2
    %q0_taps = hydra.call @taps(%q0)
    %k0_taps = hydra.call @taps(%k0)
    %q1 = hydra.call @convolve_query_heads(%q0_taps, %q_conv1)
    %k1 = hydra.call @convolve_key_heads(%k0_taps, %k_conv1)
    %q1_taps = hydra.call @taps(%q1)
    %k1_taps = hydra.call @taps(%k1)
    %q2 = hydra.call @convolve_queries(%q1_taps, %q_conv2)
    %k2 = hydra.call @convolve_keys(%k1_taps, %k_conv2)
    %q, %k = hydra.call @heads(%q0, %k0, %q2, %k2)
    %o0 = hydra.attention %q, %k, %v scale = 1 / sqrt(hd) causal
    %o = hydra.reshape %o0 shape = [B, S, Lq]
    %o_proj = hydra.use @o_proj
    %y = hydra.linear %o, %o_proj
    hydra.yield %y
  }

  //===-- The routed feed-forward part ----------------------------------------------------------===//

  // Of rows [B S, D].
  hydra.def @mlp(%z) {
    %gate_up = hydra.use @gate_up
    %down = hydra.use @down
    %both = hydra.linear %z, %gate_up
    %gate = hydra.slice %both axis = 1 start = 0 size = F
    %up = hydra.slice %both axis = 1 start = F size = F
    %act = hydra.silu %gate
    %hidden = hydra.mul %act, %up
    %y = hydra.linear %hidden, %down
    hydra.yield %y
  }

  // The feed-forward part of all tokens [B, S, D].
  hydra.def @mlp_of_all(%z) {
    %rows = hydra.reshape %z shape = [B * S, D]
    %y0 = hydra.call @mlp(%rows)
    %y = hydra.reshape %y0 shape = [B, S, D]
    hydra.yield %y
  }

  // The same of the tokens that go on [B, S, 1]; zero for the others.
  hydra.def @mlp_of_some(%z, %going) {
    %rows = hydra.reshape %z shape = [B * S, D]
    %mask = hydra.reshape %going shape = [B * S]
    %index, %place, %count = hydra.compact %mask
    %together = hydra.take_rows %rows, %index, %place
    %y0 = hydra.call @mlp(%together)
    %y1 = hydra.take_rows %y0, %place, %index
    %y = hydra.reshape %y1 shape = [B, S, D]
    hydra.yield %y
  }

  // Of all tokens, unless their depths differ.
  hydra.def @mlp_of_going(%z, %going) {
    %y = hydra.when mor == dynamic {
      %some = hydra.call @mlp_of_some(%z, %going)
      hydra.yield %some
    } else {
      %all = hydra.call @mlp_of_all(%z)
      hydra.yield %all
    }
    hydra.yield %y
  }

  // Of one number a token [B, S, 1]: mean and unbiased variance.
  hydra.def @moments(%x) {
    %mean = hydra.mean %x axes = [0, 1, 2]
    %off = hydra.sub %x, %mean
    %squares = hydra.mul %off, %off
    %sum = hydra.sum %squares axes = [0, 1, 2]
    %share = hydra.constant value = 1.0 / max(1, B * S - 1)
    %variance = hydra.mul %sum, %share
    hydra.yield %mean, %variance
  }

  // A router's logit for every token [B, S, 1]. Summed in f32 of unrounded numbers: its order decides.
  hydra.def @score(%x, %w, %b) {
    %products = hydra.mul %x, %w
    %sum = hydra.sum %products axes = [2] keep
    %y = hydra.add %sum, %b
    hydra.yield %y
  }

  // Mixture-of-Depths: the router's scores of tokens [B, S, 1], the same within bounds, probabilities.
  hydra.def @depth_router(%z) {
    %mod_w = hydra.use @mod_w
    %mod_b = hydra.use @mod_b
    %u = hydra.call @score(%z, %mod_w, %mod_b)
    %ten = hydra.constant value = 10
    %minus_ten = hydra.constant value = -10
    %above = hydra.max %u, %minus_ten
    %clamped = hydra.min %above, %ten
    %p = hydra.sigmoid %clamped
    hydra.yield %u, %clamped, %p
  }

  // Who is among the k largest of a sequence [B, S, 1].
  hydra.def @largest(%u) {
    %numbers = hydra.reshape %u shape = [B, S]
    %largest = hydra.top_k %numbers k = max(1, min(S, floor(S * kappa)))
    %chosen = hydra.reshape %largest shape = [B, S, 1]
    hydra.yield %chosen
  }

  // With static routing: what passed and what did not, by probability.
  hydra.def @softly(%y, %z, %p) {
    %mixed = hydra.when mod == static {
      %one = hydra.constant value = 1
      %rest = hydra.sub %one, %p
      %passed = hydra.mul %y, %p
      %kept = hydra.mul %z, %rest
      %m = hydra.add %passed, %kept
      hydra.yield %m
    } else {
      hydra.yield %y
    }
    hydra.yield %mixed
  }

  // The loss that keeps the router balanced, and mean and variance of the probabilities.
  hydra.def @balance(%p) {
    %mean, %variance = hydra.call @moments(%p)
    %capacity = hydra.constant value = kappa
    %miss = hydra.sub %mean, %capacity
    %miss_squared = hydra.mul %miss, %miss
    %steepness = hydra.constant value = -5.0 / max(0.5 * kappa * (1 - kappa), 0.01)
    %exponent = hydra.mul %variance, %steepness
    %indifference = hydra.exp %exponent
    %half = hydra.constant value = 0.5
    %half_indifference = hydra.mul %indifference, %half
    %sum = hydra.add %miss_squared, %half_indifference
    %weight = hydra.constant value = w_aux
    %aux = hydra.mul %sum, %weight
    hydra.yield %aux, %mean, %variance
  }

  // A recursion's input: of `h`, with what only this recursion adds.
  hydra.def @recursion_input(%h, %bias, %embed) {
    %norm2 = hydra.use @norm2
    %h1 = hydra.add %h, %bias
    %h2 = hydra.add %h1, %embed
    %z = hydra.rms_norm %h2, %norm2 eps = eps
    hydra.yield %z
  }

  // How many tokens are marked [B, S, 1].
  hydra.def @number_of(%marked) {
    %ones = hydra.cast %marked to = f32
    %y = hydra.sum %ones axes = [0, 1, 2]
    hydra.yield %y
  }

  // What a recursion adds to all tokens, and of middle blocks what the router says: the loss that keeps it
  // balanced, mean and variance of its probabilities, its bounded scores [B, S, 1]. Also how many tokens pass the
  // feed-forward part.
  hydra.def @pass_of_all(%h, %bias, %embed) {
    %z = hydra.call @recursion_input(%h, %bias, %embed)
    %delta, %aux, %mean, %variance, %scores, %rows = hydra.when layer >= 1 and layer <= Nb - 2 {
      %u, %clamped, %p = hydra.call @depth_router(%z)
      %d, %count = hydra.when mod == topk {
        %chosen = hydra.call @largest(%u)
        %y = hydra.call @mlp_of_some(%z, %chosen)
        %n = hydra.call @number_of(%chosen)
        hydra.yield %y, %n
      } else {
        %y = hydra.call @mlp_of_all(%z)
        %mixed = hydra.call @softly(%y, %z, %p)
        %all = hydra.constant value = B * S
        hydra.yield %mixed, %all
      }
      %a, %m, %v = hydra.call @balance(%p)
      hydra.yield %d, %a, %m, %v, %clamped, %count
    } else {
      %y = hydra.call @mlp_of_all(%z)
      %count = hydra.constant value = B * S
      %none = hydra.constant value = 0
      %no_scores = hydra.constant value = 0 shape = [B, S, 1]
      hydra.yield %y, %none, %none, %none, %no_scores, %count
    }
    hydra.yield %delta, %aux, %mean, %variance, %scores, %rows
  }

  // The same of the tokens that go on [B, S, 1].
  hydra.def @pass_of_some(%h, %bias, %embed, %going) {
    %z = hydra.call @recursion_input(%h, %bias, %embed)
    %delta, %aux, %mean, %variance, %scores, %rows = hydra.when layer >= 1 and layer <= Nb - 2 {
      %u, %clamped, %p = hydra.call @depth_router(%z)
      %d, %count = hydra.when mod == topk {
        %chosen = hydra.call @largest(%u)
        %none = hydra.constant value = 0
        %chosen_f = hydra.cast %chosen to = f32
        %going_f = hydra.cast %going to = f32
        %both = hydra.mul %chosen_f, %going_f
        %passing = hydra.compare %both, %none is = "gt"
        %y = hydra.call @mlp_of_some(%z, %passing)
        %n = hydra.call @number_of(%passing)
        hydra.yield %y, %n
      } else {
        %y = hydra.call @mlp_of_going(%z, %going)
        %mixed = hydra.call @softly(%y, %z, %p)
        %n = hydra.call @number_of(%going)
        hydra.yield %mixed, %n
      }
      %a, %m, %v = hydra.call @balance(%p)
      hydra.yield %d, %a, %m, %v, %clamped, %count
    } else {
      %y = hydra.call @mlp_of_going(%z, %going)
      %count = hydra.call @number_of(%going)
      %none = hydra.constant value = 0
      %no_scores = hydra.constant value = 0 shape = [B, S, 1]
      hydra.yield %y, %none, %none, %none, %no_scores, %count
    }
    hydra.yield %delta, %aux, %mean, %variance, %scores, %rows
  }

  // What the block's value is once recursion `r` has made `passed` of the tokens in `active`: `sum` so far.
  hydra.def @value_after(%passed, %sum, %active, %r, %position, %depth, %total) {
    %distance = hydra.sub %position, %r
    %square = hydra.mul %distance, %distance
    %exponent = hydra.neg %square
    %weight = hydra.exp %exponent
    %value = hydra.when mor == static {
      %share = hydra.div %weight, %total
      %part = hydra.mul %passed, %share
      %mixture = hydra.add %sum, %part
      hydra.yield %mixture
    } else {
      %half = hydra.constant value = 0.5
      %to = hydra.add %r, %half
      %stays = hydra.compare %depth, %to is = "ge"
      // The value itself; its derivative goes to the router too.
      %one = hydra.constant value = 1
      %held = hydra.detach %weight
      %above_one = hydra.add %weight, %one
      %straight = hydra.sub %above_one, %held
      %ends = hydra.mul %passed, %straight
      %ending = hydra.select %active, %ends, %sum
      %kept = hydra.select %stays, %sum, %ending
      hydra.yield %kept
    }
    hydra.yield %value
  }

  // How many tokens have each depth [R].
  hydra.def @histogram(%depth) {
    %r = hydra.iota shape = [1, 1, R] axis = 2 dtype = f32
    %half = hydra.constant value = 0.5
    %from = hydra.sub %r, %half
    %to = hydra.add %r, %half
    %reached = hydra.compare %depth, %from is = "ge"
    %left = hydra.compare %depth, %to is = "ge"
    %reached_f = hydra.cast %reached to = f32
    %left_f = hydra.cast %left to = f32
    %exactly = hydra.sub %reached_f, %left_f
    %counts = hydra.sum %exactly axes = [0, 1]
    hydra.yield %counts
  }

  // Every token passes all recursions, from the block's middle `h0`: its last value, the balance loss of the last
  // recursion, mean and variance and scores of that one's Mixture-of-Depths; how many tokens pass each feed-forward part
  // [R].
  hydra.def @all_recursions(%h0) {
    %rec_bias = hydra.use @rec_bias
    %rec_embed = hydra.use @rec_embed
    %none = hydra.constant value = 0
    %no_scores = hydra.constant value = 0 shape = [B, S, 1]
    %rows, %end, %aux, %mean, %variance, %scores = hydra.scan axis = 0 chunk = 1 over(%bias = %rec_bias, %embed = %rec_embed)
        carry(%cur = %h0, %a = %none, %m = %none, %v = %none, %u = %no_scores) {
      %delta, %pa, %pm, %pv, %pu, %count = hydra.call @pass_of_all(%cur, %bias, %embed)
      %next = hydra.add %cur, %delta
      %row = hydra.reshape %count shape = [1]
      hydra.yield %row, %next, %pa, %pm, %pv, %pu
    }
    hydra.yield %end, %aux, %mean, %variance, %scores, %rows
  }

  // Mixture-of-Recursions: the same, of the recursions that the router gives each token; the loss for the router's
  // spread, how many tokens have each depth, and the router's probabilities [B, S, 1].
  hydra.def @routed_recursions(%h0, %warm) {
    %one = hydra.constant value = 1
    %none = hydra.constant value = 0
    %mor_w = hydra.use @mor_w
    %mor_b = hydra.use @mor_b
    %l = hydra.call @score(%h0, %mor_w, %mor_b)
    %half = hydra.constant value = 0.5
    %l_half = hydra.mul %l, %half
    %t = hydra.tanh %l_half
    %three = hydra.constant value = 3
    %squashed = hydra.mul %t, %three
    %p = hydra.sigmoid %squashed
    %mean_p, %variance_p = hydra.call @moments(%p)
    %mean_l, %variance_l = hydra.call @moments(%squashed)
    %cost = hydra.when R == 1 {
      hydra.yield %none
    } else {
      %price = hydra.constant value = 0.0005
      %paid = hydra.mul %mean_p, %price
      hydra.yield %paid
    }
    %minus_ten = hydra.constant value = -10
    %exponent = hydra.mul %variance_p, %minus_ten
    %indifference = hydra.exp %exponent
    %hundredth = hydra.constant value = 0.01
    %spread = hydra.mul %indifference, %hundredth
    %lacking0 = hydra.sub %half, %variance_l
    %lacking = hydra.max %lacking0, %none
    %tenth = hydra.constant value = 0.1
    %push = hydra.mul %lacking, %tenth
    %owed0 = hydra.add %cost, %spread
    %owed = hydra.add %owed0, %push
    %warmed = hydra.mul %owed, %warm
    %five = hydra.constant value = 5
    %ponder = hydra.min %warmed, %five
    // Depth (as a real number, rounded where it is compared), and its distances to each recursion.
    %reach = hydra.constant value = R - 1
    %position = hydra.mul %p, %reach
    %above = hydra.constant value = R - 1 - min(min_depth, R - 1)
    %least = hydra.constant value = min(min_depth, R - 1)
    %more = hydra.mul %p, %above
    %depth = hydra.add %more, %least
    %all = hydra.iota shape = [1, 1, R] axis = 2 dtype = f32
    %distances = hydra.sub %position, %all
    %squares = hydra.mul %distances, %distances
    %exponents = hydra.neg %squares
    %weights = hydra.exp %exponents
    %total0 = hydra.sum %weights axes = [2] keep
    %tiny = hydra.constant value = 1.0e-8
    %total = hydra.add %total0, %tiny

    %rec_bias = hydra.use @rec_bias
    %rec_embed = hydra.use @rec_embed
    %nothing = hydra.constant value = 0 shape = [B, S, D]
    %bias0 = hydra.slice %rec_bias axis = 0 start = 0 size = 1
    %embed0 = hydra.slice %rec_embed axis = 0 start = 0 size = 1
    %r0 = hydra.constant value = 0 shape = [1, 1, 1]
    %zero = hydra.constant value = 0 shape = [B, S, 1]
    %everyone = hydra.compare %zero, %zero is = "eq"
    %delta0, %aux0, %mean0, %variance0, %scores0, %count0 = hydra.call @pass_of_all(%h0, %bias0, %embed0)
    %row0 = hydra.reshape %count0 shape = [1]
    %passed0 = hydra.add %h0, %delta0
    %value0 = hydra.call @value_after(%passed0, %nothing, %everyone, %r0, %position, %depth, %total)
    %result, %balance, %mean, %variance, %scores, %rows = hydra.when R == 1 {
      hydra.yield %value0, %aux0, %mean0, %variance0, %scores0, %row0
    } else {
      %biases = hydra.slice %rec_bias axis = 0 start = 1 size = R - 1
      %embeds = hydra.slice %rec_embed axis = 0 start = 1 size = R - 1
      %numbers0 = hydra.iota shape = [R - 1, 1, 1] axis = 0 dtype = f32
      %numbers = hydra.add %numbers0, %one
      %later, %end, %value, %last, %last_mean, %last_variance, %last_scores = hydra.scan axis = 0 chunk = 1
          over(%bias = %biases, %embed = %embeds, %r = %numbers)
          carry(%cur = %passed0, %sum = %value0, %a = %aux0, %m = %mean0, %v = %variance0, %u = %scores0) {
        %from = hydra.sub %r, %half
        %reached = hydra.when mor == dynamic {
          hydra.yield %depth
        } else {
          %deepest = hydra.constant value = R shape = [B, S, 1]
          hydra.yield %deepest
        }
        %active = hydra.compare %reached, %from is = "ge"
        %delta, %aux, %pm, %pv, %pu, %count = hydra.call @pass_of_some(%cur, %bias, %embed, %active)
        %passed = hydra.add %cur, %delta // of tokens that stay behind: nothing
        %next = hydra.call @value_after(%passed, %sum, %active, %r, %position, %depth, %total)
        %row = hydra.reshape %count shape = [1]
        hydra.yield %row, %passed, %next, %aux, %pm, %pv, %pu
      }
      %all_rows = hydra.concat %row0, %later axis = 0
      hydra.yield %value, %last, %last_mean, %last_variance, %last_scores, %all_rows
    }
    %counts = hydra.when mor == static {
      %c = hydra.call @histogram(%position)
      hydra.yield %c
    } else {
      %c = hydra.call @histogram(%depth)
      hydra.yield %c
    }
    hydra.yield %result, %balance, %mean, %variance, %scores, %rows, %ponder, %counts, %p
  }

  // As the configuration has it: depths that all tokens share, or the router's. Fixed depth counts all tokens
  // at the last recursion.
  hydra.def @recursions(%h0, %warm) {
    %value, %aux, %mean, %variance, %scores, %rows, %ponder, %counts, %p = hydra.when mor == fixed {
      %end, %a, %m, %v, %u, %n = hydra.call @all_recursions(%h0)
      %none = hydra.constant value = 0
      %nowhere = hydra.constant value = 0 shape = [B, S, 1]
      %deepest = hydra.constant value = R - 1 shape = [B, S, 1]
      %c = hydra.call @histogram(%deepest)
      hydra.yield %end, %a, %m, %v, %u, %n, %none, %c, %nowhere
    } else {
      %end, %a, %m, %v, %u, %n, %cost, %c, %probabilities = hydra.call @routed_recursions(%h0, %warm)
      hydra.yield %end, %a, %m, %v, %u, %n, %cost, %c, %probabilities
    }
    hydra.yield %value, %aux, %mean, %variance, %scores, %rows, %ponder, %counts, %p
  }

  //===-- The model ---------------------------------------------------------------------------===//

  // What a block makes of its middle `h0`. While blending, a part `s` of that of its router's depths and the rest of
  // that of full depth; the losses are those of the router's.
  hydra.def @block_end(%h0, %s, %warm) {
    %value, %aux, %mean, %variance, %scores, %rows, %ponder, %counts, %p = hydra.call @recursions(%h0, %warm)
    %final_norm = hydra.use @final_norm
    %own = hydra.rms_norm %value, %final_norm eps = eps
    %out = hydra.when blend and not mor == fixed {
      %end, %a, %m, %v, %u, %count = hydra.call @all_recursions(%h0)
      %fixed = hydra.rms_norm %end, %final_norm eps = eps
      %one = hydra.constant value = 1
      %rest = hydra.sub %one, %s
      %part = hydra.mul %own, %s
      %others = hydra.mul %fixed, %rest
      %blended = hydra.add %part, %others
      hydra.yield %blended
    } else {
      hydra.yield %own
    }
    hydra.yield %out, %aux, %mean, %variance, %scores, %rows, %ponder, %counts, %p
  }

  // log(1 + e^-x).
  hydra.def @softplus_of_minus(%x) {
    %minus = hydra.neg %x
    %e = hydra.exp %minus
    %one = hydra.constant value = 1
    %sum = hydra.add %one, %e
    %y = hydra.log %sum
    hydra.yield %y
  }

  hydra.def @embedded(%tokens) {
    %table = hydra.use @tok_emb
    %rows = hydra.embedding %tokens, %table
    %factor = hydra.constant value = sqrt(D)
    %y = hydra.mul %rows, %factor
    hydra.yield %y
  }

  // A block's middle, of its input and what attention makes of that.
  hydra.def @behind_attention(%x, %mixed) {
    %half = hydra.constant value = 0.5
    %a = hydra.mul %mixed, %half
    %h0 = hydra.add %x, %a
    hydra.yield %h0
  }

  // The last hidden values [B, S, D]; sums over blocks: of the balance and ponder losses, of the depth routers'
  // probabilities, of the Mixture-of-Depths' scores and log(1 + e^-score) [B, S, 1]; what @routing tells of blocks.
  hydra.def @trunk(%tokens, %s, %warm) {
    %start = hydra.call @embedded(%tokens)
    %none = hydra.constant value = 0
    %nothing = hydra.constant value = 0 shape = [B, S, 1]
    %rows, %depths, %means, %variances, %end, %aux, %ponder, %p, %scores, %softplus = hydra.for @layers
        carry(%x = %start, %aux_sum = %none, %ponder_sum = %none, %p_sum = %nothing, %score_sum = %nothing, %softplus_sum = %nothing) {
      %norm1 = hydra.use @norm1
      %n = hydra.rms_norm %x, %norm1 eps = eps
      %mixed = hydra.call @attention(%n)
      %h0 = hydra.call @behind_attention(%x, %mixed)
      %out, %balance, %mean, %variance, %u, %passed, %spread, %counts, %probabilities = hydra.call @block_end(%h0, %s, %warm)
      %aux_next = hydra.add %aux_sum, %balance
      %ponder_next = hydra.add %ponder_sum, %spread
      %p_next = hydra.add %p_sum, %probabilities
      %score_next, %softplus_next = hydra.when layer >= 1 and layer <= Nb - 2 {
        %sum = hydra.add %score_sum, %u
        %l = hydra.call @softplus_of_minus(%u)
        %softplus_sum1 = hydra.add %softplus_sum, %l
        hydra.yield %sum, %softplus_sum1
      } else {
        hydra.yield %score_sum, %softplus_sum
      }
      %mean_row = hydra.reshape %mean shape = [1]
      %variance_row = hydra.reshape %variance shape = [1]
      hydra.yield %passed, %counts, %mean_row, %variance_row, %out, %aux_next, %ponder_next, %p_next, %score_next, %softplus_next
    }
    %norm = hydra.use @norm
    %final = hydra.rms_norm %end, %norm eps = eps
    hydra.yield %final, %aux, %ponder, %p, %scores, %softplus, %rows, %depths, %means, %variances
  }

  // What tokens' losses `e` [B, S] say about their depths `p`, summed over blocks: deep where the loss is large.
  // From the thousandth batch on; before, losses only enter their mean and variance.
  hydra.def @advantage(%e, %ce, %valid, %p, %lambda) {
    %mean0 = hydra.use @ce_mean
    %var0 = hydra.use @ce_var
    %batches0 = hydra.use @ce_batches
    %one = hydra.constant value = 1
    %none = hydra.constant value = 0
    %off = hydra.sub %e, %ce
    %squares = hydra.mul %off, %off
    %counted = hydra.mul %squares, %valid
    %sum = hydra.sum %counted axes = [0, 1]
    %n = hydra.sum %valid axes = [0, 1]
    %less_one = hydra.sub %n, %one
    %freedom = hydra.max %less_one, %one
    %variance = hydra.div %sum, %freedom
    %keep = hydra.constant value = 0.99
    %take = hydra.constant value = 0.01
    %mean1 = hydra.mul %mean0, %keep
    %mean2 = hydra.mul %ce, %take
    %mean3 = hydra.add %mean1, %mean2
    %var1 = hydra.mul %var0, %keep
    %var2 = hydra.mul %variance, %take
    %var3 = hydra.add %var1, %var2
    %first = hydra.compare %batches0, %none is = "eq"
    %mean = hydra.select %first, %ce, %mean3
    %var = hydra.select %first, %variance, %var3
    %batches = hydra.add %batches0, %one
    %least = hydra.constant value = 0.01
    %deviation0 = hydra.sqrt %var
    %deviation = hydra.max %deviation0, %least
    %above = hydra.sub %e, %mean
    %normal = hydra.div %above, %deviation
    %bounded = hydra.tanh %normal
    %thousandth = hydra.constant value = 999.5
    %started = hydra.compare %batches, %thousandth is = "gt"
    %a = hydra.select %started, %bounded, %none
    %held = hydra.detach %a
    %depths = hydra.reshape %p shape = [B, S]
    %products = hydra.mul %held, %depths
    %product = hydra.mean %products axes = [0, 1]
    %reach = hydra.constant value = 1 - R
    %weighted = hydra.mul %product, %reach
    %advantage = hydra.mul %weighted, %lambda
    hydra.yield %advantage, %mean, %var, %batches
  }

  // The Mixture-of-Depths' scores, summed over blocks, against the tokens with the largest losses `e` [B, S] of
  // their sequence: cross entropy of yes or no, in which the few have as much weight as the many.
  hydra.def @loss_aware(%e, %valid, %scores, %softplus) {
    %k = hydra.constant value = max(1, min(S, floor(S * kappa)))
    %none = hydra.constant value = 0
    %one = hydra.constant value = 1
    %never = hydra.constant value = -inf
    %counts = hydra.compare %valid, %none is = "gt"
    %ranked = hydra.select %counts, %e, %never
    %largest = hydra.top_k %ranked k = max(1, min(S, floor(S * kappa)))
    %teacher = hydra.cast %largest to = f32
    %length = hydra.constant value = S
    %others = hydra.sub %length, %k
    %ratio = hydra.div %others, %k
    %positive = hydra.max %ratio, %one
    %u = hydra.reshape %scores shape = [B, S]
    %l = hydra.reshape %softplus shape = [B, S]
    %not_teacher = hydra.sub %one, %teacher
    %negatives = hydra.mul %not_teacher, %u
    %more = hydra.sub %positive, %one
    %extra = hydra.mul %teacher, %more
    %weights = hydra.add %extra, %one
    %positives = hydra.mul %weights, %l
    %losses = hydra.add %negatives, %positives
    %counted = hydra.mul %losses, %valid
    %sum = hydra.sum %counted axes = [0, 1]
    %n0 = hydra.sum %valid axes = [0, 1]
    %n = hydra.max %n0, %one
    %mean = hydra.div %sum, %n
    %weight = hydra.constant value = loss_aware
    %loss = hydra.mul %mean, %weight
    hydra.yield %loss
  }

  // The cross entropy; what the routers learn from tokens' losses; the new averages of those.
  hydra.def @judge(%final, %labels, %p, %scores, %softplus, %lambda) {
    %head = hydra.use @tok_emb
    %none = hydra.constant value = 0
    %ce, %lesson, %mean, %var, %batches = hydra.when advantage or loss_aware > 0.0 {
      %loss, %e = hydra.linear_cross_entropy %final, %head, %labels rows
      %ignored = hydra.constant value = -100 dtype = i32
      %valid0 = hydra.compare %labels, %ignored is = "ne"
      %valid = hydra.cast %valid0 to = f32
      %adv, %m, %v, %n = hydra.when advantage {
        %adv, %m, %v, %n = hydra.call @advantage(%e, %loss, %valid, %p, %lambda)
        hydra.yield %adv, %m, %v, %n
      } else {
        hydra.yield %none, %none, %none, %none
      }
      %aware = hydra.when loss_aware > 0.0 and not mor == fixed {
        %a = hydra.call @loss_aware(%e, %valid, %scores, %softplus)
        hydra.yield %a
      } else {
        hydra.yield %none
      }
      %both = hydra.add %adv, %aware
      hydra.yield %loss, %both, %m, %v, %n
    } else {
      %loss = hydra.linear_cross_entropy %final, %head, %labels
      hydra.yield %loss, %none, %none, %none, %none
    }
    hydra.yield %ce, %lesson, %mean, %var, %batches
  }

  // The mean cross entropy of every token's successor, and the losses of the routers; the head is the
  // embedding. Numbers of a step: the routers' part while blending; how far the ponder loss has warmed up; the
  // weight of the advantage loss, and a factor.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0,
                    %adv_lambda: [] f32 = 0.02, %adv_mult: [] f32 = 1.0) dims(B, S) {
    %final, %aux, %ponder, %p, %scores, %softplus, %rows, %depths, %means, %variances = hydra.call @trunk(%tokens, %s, %warm)
    %ce, %lesson, %mean, %var, %batches = hydra.call @judge(%final, %labels, %p, %scores, %softplus, %adv_lambda)
    %most = hydra.constant value = 100
    %aux_bounded = hydra.min %aux, %most
    %scale = hydra.constant value = ponder_scale
    %ten = hydra.constant value = 10
    %ponder_part, %lesson_part = hydra.when blend {
      %ponder_s = hydra.mul %ponder, %s
      %lesson_s = hydra.mul %lesson, %s
      hydra.yield %ponder_s, %lesson_s
    } else {
      hydra.yield %ponder, %lesson
    }
    %ponder_bounded = hydra.min %ponder_part, %most
    %ponder_scaled = hydra.mul %ponder_bounded, %scale
    %routed = hydra.add %ce, %aux_bounded
    %pondered = hydra.add %routed, %ponder_scaled
    %loss = hydra.when advantage or loss_aware > 0.0 {
      %lesson_times = hydra.mul %lesson_part, %adv_mult
      %learnt = hydra.min %lesson_times, %ten
      %sum = hydra.add %pondered, %learnt
      hydra.yield %sum
    } else {
      hydra.yield %pondered
    }
    hydra.return loss = %loss updates(@ce_mean = %mean, @ce_var = %var, @ce_batches = %batches)
  }

  // What the routers do: the parts of the loss; of every block how many tokens have each depth [Nb, R] and the mean
  // depth [Nb, 1]; mean and standard deviation of the Mixture-of-Depths' probabilities [Nb, 1] in the last recursion of
  // middle blocks, which keep near `mod_target`; how many tokens pass the feed-forward part of each recursion [Nb, R],
  // and what part that is of all tokens in all recursions [Nb, 1].
  hydra.entry @routing(%tokens: [B, S] i32, %labels: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %final, %aux, %ponder, %p, %scores, %softplus, %rows, %depths, %means, %variances = hydra.call @trunk(%tokens, %s, %warm)
    %head = hydra.use @tok_emb
    %ce = hydra.linear_cross_entropy %final, %head, %labels
    %deviations = hydra.sqrt %variances
    %r = hydra.iota shape = [1, R] axis = 1 dtype = f32
    %passes = hydra.mul %depths, %r
    %sums = hydra.sum %passes axes = [1] keep
    %token = hydra.constant value = 1.0 / (B * S)
    %mean_depths = hydra.mul %sums, %token
    %means_of_rows = hydra.mean %rows axes = [1] keep
    %computed = hydra.mul %means_of_rows, %token
    %target = hydra.constant value = kappa
    hydra.return ce = %ce, aux = %aux, ponder = %ponder, depths = %depths, mean_depth = %mean_depths,
        mod_mean = %means, mod_std = %deviations, mod_target = %target, rows = %rows, computed = %computed
  }

  // What held-out text is measured by: the cross entropy alone.
  hydra.entry @eval(%tokens: [B, S] i32, %labels: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %final, %aux, %ponder, %p, %scores, %softplus, %rows, %depths, %means, %variances = hydra.call @trunk(%tokens, %s, %warm)
    %head = hydra.use @tok_emb
    %ce = hydra.linear_cross_entropy %final, %head, %labels
    hydra.return loss = %ce
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32, %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %final, %aux, %ponder, %p, %scores, %softplus, %rows, %depths, %means, %variances = hydra.call @trunk(%tokens, %s, %warm)
    %head = hydra.use @tok_emb
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits
  }

  //===-- Reading on --------------------------------------------------------------------------===//

  // Rows [B, S, H + Hk, hd] that were rotated for positions from 0, rotated further for positions from `position`
  // [1]: all of them by the same angles.
  hydra.def @further(%x, %position) {
    %pair = hydra.iota shape = [hd / 2] axis = 0 dtype = f32
    %fall = hydra.constant value = -2.0 * log(rope) / hd
    %exponent = hydra.mul %pair, %fall
    %frequency = hydra.exp %exponent
    %angle = hydra.mul %frequency, %position
    %cos0 = hydra.cos %angle
    %sin0 = hydra.sin %angle
    %cos = hydra.reshape %cos0 shape = [1, 1, 1, hd / 2, 1]
    %sin = hydra.reshape %sin0 shape = [1, 1, 1, hd / 2, 1]
    %pairs = hydra.reshape %x shape = [B, S, H + Hk, hd / 2, 2]
    %x0 = hydra.slice %pairs axis = 4 start = 0 size = 1
    %x1 = hydra.slice %pairs axis = 4 start = 1 size = 1
    %x0c = hydra.mul %x0, %cos
    %x1s = hydra.mul %x1, %sin
    %x0s = hydra.mul %x0, %sin
    %x1c = hydra.mul %x1, %cos
    %y0 = hydra.sub %x0c, %x1s
    %y1 = hydra.add %x0s, %x1c
    %turned = hydra.concat %y0, %y1 axis = 4
    %y = hydra.reshape %turned shape = [B, S, H + Hk, hd]
    hydra.yield %y
  }

  // Attention of S queries behind `position` tokens to the T keys before them and their own [B, T + S, Hk, hd], as
  // far as there were tokens, not later than the query.
  hydra.def @attend(%q, %keys, %values, %position) {
    %q_heads = hydra.transpose %q order = [0, 2, 1, 3]
    %rows = hydra.reshape %q_heads shape = [B, Hk, H / Hk * S, hd]
    %k_heads = hydra.transpose %keys order = [0, 2, 1, 3]
    %v_heads = hydra.transpose %values order = [0, 2, 1, 3]
    %products = hydra.matmul %rows, %k_heads transpose_b dtype = f32
    %scale = hydra.constant value = 1 / sqrt(hd)
    %scaled = hydra.mul %products, %scale
    %scores = hydra.reshape %scaled shape = [B, H, S, T + S]
    %i = hydra.iota shape = [S, 1] axis = 0 dtype = f32
    %j = hydra.iota shape = [1, T + S] axis = 1 dtype = f32
    %back = hydra.constant value = T
    %none = hydra.constant value = 0
    %behind = hydra.sub %j, %back
    %later = hydra.compare %behind, %i is = "gt"
    %of_key = hydra.add %behind, %position
    %missing = hydra.compare %of_key, %none is = "lt"
    %never = hydra.constant value = -1.0e30
    %seen = hydra.select %later, %never, %scores
    %masked = hydra.select %missing, %never, %seen
    %weights0 = hydra.softmax %masked
    %weights = hydra.reshape %weights0 shape = [B, Hk, H / Hk * S, T + S]
    %o0 = hydra.matmul %weights, %v_heads
    %o1 = hydra.reshape %o0 shape = [B, H, S, hd]
    %o2 = hydra.transpose %o1 order = [0, 2, 1, 3]
    %o = hydra.reshape %o2 shape = [B, S, Lq]
    hydra.yield %o
  }

  // The next S tokens of sequences of which `position` [1] f32 were read: scores, and what the tokens after them need
  // to know; all zeros before the first token. However a sequence of up to T tokens is cut, the scores are the same,
  // if the Mixture-of-Depths is dense: what passes it is chosen among the tokens of a call. Of longer ones a call sees
  // the T tokens before it.
  // taps1, taps2: what the last two tokens are before and between the convolutions; shifted: the last one's part of
  // the next one's values.
  hydra.entry @continue(%tokens: [B, S] i32, %position: [1] f32, %keys: [Nb, B, T, Hk, hd] f32, %values: [Nb, B, T, Hk, hd] f32,
                        %taps1: [Nb, B, 2, Lq + Kd] f32, %taps2: [Nb, B, 2, Lq + Kd] f32, %shifted: [Nb, B, 1, Kd / 2] f32,
                        %s: [] f32 = 1.0, %warm: [] f32 = 1.0) dims(B, S) {
    %start = hydra.call @embedded(%tokens)
    %keys_after, %values_after, %taps1_after, %taps2_after, %shifted_after, %end = hydra.for @layers
        over(%ks = %keys, %vs = %values, %first = %taps1, %second = %taps2, %v_last = %shifted) carry(%x = %start) {
      %norm1 = hydra.use @norm1
      %n = hydra.rms_norm %x, %norm1 eps = eps
      %q0, %k0, %v_now, %v_next = hydra.call @compressed(%n)
      %v_all = hydra.concat %v_last, %v_next axis = 1
      %v_before = hydra.slice %v_all axis = 1 start = 0 size = S
      %v0 = hydra.concat %v_now, %v_before axis = 2
      %v = hydra.reshape %v0 shape = [B, S, Hk, hd]

      %q_conv1 = hydra.use @q_conv1
      %q_conv2 = hydra.use @q_conv2
      %k_conv1 = hydra.use @k_conv1
      %k_conv2 = hydra.use @k_conv2
      %qk0 = hydra.concat %q0, %k0 axis = 2
      %qk0_all = hydra.concat %first, %qk0 axis = 1
      %q0_all = hydra.slice %qk0_all axis = 2 start = 0 size = Lq
      %k0_all = hydra.slice %qk0_all axis = 2 start = Lq size = Kd
      %q0_taps = hydra.call @taps_behind(%q0_all)
      %k0_taps = hydra.call @taps_behind(%k0_all)
      %q1 = hydra.call @convolve_query_heads(%q0_taps, %q_conv1)
      %k1 = hydra.call @convolve_key_heads(%k0_taps, %k_conv1)
      %qk1 = hydra.concat %q1, %k1 axis = 2
      %qk1_all = hydra.concat %second, %qk1 axis = 1
      %q1_all = hydra.slice %qk1_all axis = 2 start = 0 size = Lq
      %k1_all = hydra.slice %qk1_all axis = 2 start = Lq size = Kd
      %q1_taps = hydra.call @taps_behind(%q1_all)
      %k1_taps = hydra.call @taps_behind(%k1_all)
      %q2 = hydra.call @convolve_queries(%q1_taps, %q_conv2)
      %k2 = hydra.call @convolve_keys(%k1_taps, %k_conv2)
      %q3, %k3 = hydra.call @heads(%q0, %k0, %q2, %k2)
      %qk3 = hydra.concat %q3, %k3 axis = 2
      %qk = hydra.call @further(%qk3, %position)
      %q = hydra.slice %qk axis = 2 start = 0 size = H
      %k = hydra.slice %qk axis = 2 start = H size = Hk
      %all_keys = hydra.concat %ks, %k axis = 1
      %all_values = hydra.concat %vs, %v axis = 1
      %o = hydra.call @attend(%q, %all_keys, %all_values, %position)
      %o_proj = hydra.use @o_proj
      %mixed = hydra.linear %o, %o_proj
      %h0 = hydra.call @behind_attention(%x, %mixed)
      %out, %balance, %mean, %variance, %u, %rows, %spread, %counts, %p = hydra.call @block_end(%h0, %s, %warm)

      %keys_kept = hydra.slice %all_keys axis = 1 start = S size = T
      %values_kept = hydra.slice %all_values axis = 1 start = S size = T
      %first_kept = hydra.slice %qk0_all axis = 1 start = S size = 2
      %second_kept = hydra.slice %qk1_all axis = 1 start = S size = 2
      %v_kept = hydra.slice %v_all axis = 1 start = S size = 1
      hydra.yield %keys_kept, %values_kept, %first_kept, %second_kept, %v_kept, %out
    }
    %norm = hydra.use @norm
    %final = hydra.rms_norm %end, %norm eps = eps
    %head = hydra.use @tok_emb
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits, keys = %keys_after, values = %values_after, taps1 = %taps1_after,
        taps2 = %taps2_after, shifted = %shifted_after
  }
}
