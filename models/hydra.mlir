// HYDRA: attention in a compressed width behind causal convolutions (CCGQA), feed-forward parts that each token
// passes as often as a router says (Mixture-of-Recursions), and that in the middle blocks only the k tokens
// with the largest scores pass (Mixture-of-Depths). models.md section 3.
//
// The tokens that a feed-forward part is for are brought together first (`hydra.compact`, `hydra.take_rows`), so
// that its work can follow their number; who is not among them gets zero. The schedule of the curriculum
// (`s`, the warm-up of the ponder loss) and the advantage loss are not part of it: this is s = 1.

hydra.model @hydra version 1 {
  hydra.symbols dims(V = 50257, D, C = 4, H, Hk, F, Nb, R, min_depth = 1)
                reals(kappa = 0.5, w_aux, ponder_scale = 0.01, rope = 1.0e4, eps = 1.0e-6, embed_lr = 0.1)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
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

  //===-- Attention ---------------------------------------------------------------------------===//

  // The rows of `x` [B, S, C] one later, zeros in front.
  hydra.def @later(%x) {
    %padded = hydra.pad %x axis = 1 before = 1 after = 0
    %y = hydra.slice %padded axis = 1 start = 0 size = S
    hydra.yield %y
  }

  // What a causal convolution of three taps reads: rows t - 2, t - 1 and t, side by side.
  hydra.def @taps(%x) {
    %x1 = hydra.call @later(%x)
    %x2 = hydra.call @later(%x1)
    %y = hydra.concat %x2, %x1, %x axis = 2
    hydra.yield %y
  }

  // Two convolutions of the queries [B, S, Lq]: each head for itself, then all channels.
  hydra.def @convolve_queries(%x, %w1, %w2) {
    %taps = hydra.call @taps(%x)
    %by_head = hydra.reshape %taps shape = [B, S, 3, H, hd]
    %heads = hydra.transpose %by_head order = [3, 0, 1, 2, 4]
    %rows = hydra.reshape %heads shape = [H, B * S, 3 * hd]
    %w10 = hydra.reshape %w1 shape = [H, hd, hd, 3]
    %w11 = hydra.transpose %w10 order = [0, 1, 3, 2]
    %w12 = hydra.reshape %w11 shape = [H, hd, 3 * hd]
    %y0 = hydra.matmul %rows, %w12 transpose_b
    %y1 = hydra.reshape %y0 shape = [H, B, S, hd]
    %y2 = hydra.transpose %y1 order = [1, 2, 0, 3]
    %y = hydra.reshape %y2 shape = [B, S, Lq]
    %taps2 = hydra.call @taps(%y)
    %w20 = hydra.transpose %w2 order = [0, 2, 1]
    %w21 = hydra.reshape %w20 shape = [Lq, 3 * Lq]
    %z = hydra.linear %taps2, %w21
    %z1 = hydra.reshape %z shape = [B, S, H, hd]
    hydra.yield %z1
  }
  // The same of the keys [B, S, Kd].
  hydra.def @convolve_keys(%x, %w1, %w2) {
    %taps = hydra.call @taps(%x)
    %by_head = hydra.reshape %taps shape = [B, S, 3, Hk, hd]
    %heads = hydra.transpose %by_head order = [3, 0, 1, 2, 4]
    %rows = hydra.reshape %heads shape = [Hk, B * S, 3 * hd]
    %w10 = hydra.reshape %w1 shape = [Hk, hd, hd, 3]
    %w11 = hydra.transpose %w10 order = [0, 1, 3, 2]
    %w12 = hydra.reshape %w11 shape = [Hk, hd, 3 * hd]
    %y0 = hydra.matmul %rows, %w12 transpose_b
    %y1 = hydra.reshape %y0 shape = [Hk, B, S, hd]
    %y2 = hydra.transpose %y1 order = [1, 2, 0, 3]
    %y = hydra.reshape %y2 shape = [B, S, Kd]
    %taps2 = hydra.call @taps(%y)
    %w20 = hydra.transpose %w2 order = [0, 2, 1]
    %w21 = hydra.reshape %w20 shape = [Kd, 3 * Kd]
    %z = hydra.linear %taps2, %w21
    %z1 = hydra.reshape %z shape = [B, S, Hk, hd]
    hydra.yield %z1
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

  hydra.def @attention(%n) {
    %qkv = hydra.use @qkv
    %f = hydra.linear %n, %qkv
    %q0 = hydra.slice %f axis = 2 start = 0 size = Lq
    %k0 = hydra.slice %f axis = 2 start = Lq size = Kd
    // Half of the values' channels come from the token before.
    %v_now = hydra.slice %f axis = 2 start = Lq + Kd size = Kd / 2
    %v_before = hydra.slice %f axis = 2 start = Lq + Kd + Kd / 2 size = Kd / 2
    %v_shifted = hydra.call @later(%v_before)
    %v0 = hydra.concat %v_now, %v_shifted axis = 2
    %v = hydra.reshape %v0 shape = [B, S, Hk, hd]

    %q_conv1 = hydra.use @q_conv1
    %q_conv2 = hydra.use @q_conv2
    %k_conv1 = hydra.use @k_conv1
    %k_conv2 = hydra.use @k_conv2
    %q1 = hydra.call @convolve_queries(%q0, %q_conv1, %q_conv2)
    %k1 = hydra.call @convolve_keys(%k0, %k_conv1, %k_conv2)

    // Queries and keys see each other's mean over heads; as many heads of both see each other.
    %q_heads = hydra.reshape %q0 shape = [B, S, H, hd]
    %k_heads = hydra.reshape %k0 shape = [B, S, Hk, hd]
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
    %q2 = hydra.add %q1, %to_q_half
    %k2 = hydra.add %k1, %to_k_half
    %tau = hydra.use @tau
    %q3 = hydra.call @unit(%q2)
    %k3 = hydra.call @unit(%k2)
    %k4 = hydra.mul %k3, %tau
    %q = hydra.rope %q3 base = rope
    %k = hydra.rope %k4 base = rope
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
    %share = hydra.constant value = 1.0 / (B * S - 1)
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

  // Mixture-of-Depths: the router's scores of tokens [B, S, 1], and probabilities.
  hydra.def @depth_router(%z) {
    %mod_w = hydra.use @mod_w
    %mod_b = hydra.use @mod_b
    %u = hydra.call @score(%z, %mod_w, %mod_b)
    %ten = hydra.constant value = 10
    %minus_ten = hydra.constant value = -10
    %above = hydra.max %u, %minus_ten
    %clamped = hydra.min %above, %ten
    %p = hydra.sigmoid %clamped
    hydra.yield %u, %p
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

  // The first recursion, which all tokens take: what it adds to them, and of middle blocks what the router
  // says.
  hydra.def @first_pass(%h, %bias, %embed) {
    %z = hydra.call @recursion_input(%h, %bias, %embed)
    %delta, %aux, %mean, %variance = hydra.when layer >= 1 and layer <= Nb - 2 {
      %u, %p = hydra.call @depth_router(%z)
      %d = hydra.when mod == topk {
        %chosen = hydra.call @largest(%u)
        %y = hydra.call @mlp_of_some(%z, %chosen)
        hydra.yield %y
      } else {
        %y = hydra.call @mlp_of_all(%z)
        %mixed = hydra.call @softly(%y, %z, %p)
        hydra.yield %mixed
      }
      %a, %m, %v = hydra.call @balance(%p)
      hydra.yield %d, %a, %m, %v
    } else {
      %y = hydra.call @mlp_of_all(%z)
      %none = hydra.constant value = 0
      hydra.yield %y, %none, %none, %none
    }
    hydra.yield %delta, %aux, %mean, %variance
  }

  // A later one, of the tokens that go on [B, S, 1].
  hydra.def @pass(%h, %bias, %embed, %going) {
    %z = hydra.call @recursion_input(%h, %bias, %embed)
    %delta, %aux, %mean, %variance = hydra.when layer >= 1 and layer <= Nb - 2 {
      %u, %p = hydra.call @depth_router(%z)
      %d = hydra.when mod == topk {
        %chosen = hydra.call @largest(%u)
        %none = hydra.constant value = 0
        %chosen_f = hydra.cast %chosen to = f32
        %going_f = hydra.cast %going to = f32
        %both = hydra.mul %chosen_f, %going_f
        %passing = hydra.compare %both, %none is = "gt"
        %y = hydra.call @mlp_of_some(%z, %passing)
        hydra.yield %y
      } else {
        %y = hydra.call @mlp_of_going(%z, %going)
        %mixed = hydra.call @softly(%y, %z, %p)
        hydra.yield %mixed
      }
      %a, %m, %v = hydra.call @balance(%p)
      hydra.yield %d, %a, %m, %v
    } else {
      %y = hydra.call @mlp_of_going(%z, %going)
      %none = hydra.constant value = 0
      hydra.yield %y, %none, %none, %none
    }
    hydra.yield %delta, %aux, %mean, %variance
  }

  // What the block's value is once recursion `r` has made `passed` of the tokens in `active`: `sum` so far.
  hydra.def @value_after(%passed, %sum, %active, %r, %position, %depth, %total) {
    %value = hydra.when mor == fixed {
      hydra.yield %passed
    } else {
      %distance = hydra.sub %position, %r
      %square = hydra.mul %distance, %distance
      %exponent = hydra.neg %square
      %weight = hydra.exp %exponent
      %v = hydra.when mor == static {
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
      hydra.yield %v
    }
    hydra.yield %value
  }

  // How many tokens have each depth [1, R].
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
    %row = hydra.reshape %counts shape = [1, R]
    hydra.yield %row
  }

  // Mixture-of-Recursions, from the block's middle `h0`: its last value, the balance loss of the last
  // recursion, the loss for the router's spread; how many tokens have each depth, and mean and variance of
  // the last recursion's Mixture-of-Depths.
  hydra.def @recursions(%h0) {
    %one = hydra.constant value = 1
    %none = hydra.constant value = 0
    %p, %ponder = hydra.when mor == fixed {
      %nowhere = hydra.constant value = 0 shape = [B, S, 1]
      hydra.yield %nowhere, %none
    } else {
      %mor_w = hydra.use @mor_w
      %mor_b = hydra.use @mor_b
      %l = hydra.call @score(%h0, %mor_w, %mor_b)
      %half = hydra.constant value = 0.5
      %l_half = hydra.mul %l, %half
      %t = hydra.tanh %l_half
      %three = hydra.constant value = 3
      %squashed = hydra.mul %t, %three
      %prob = hydra.sigmoid %squashed
      %mean, %variance = hydra.call @moments(%prob)
      %mean_l, %variance_l = hydra.call @moments(%squashed)
      %cost = hydra.when R == 1 {
        hydra.yield %none
      } else {
        %price = hydra.constant value = 0.0005
        %paid = hydra.mul %mean, %price
        hydra.yield %paid
      }
      %minus_ten = hydra.constant value = -10
      %exponent = hydra.mul %variance, %minus_ten
      %indifference = hydra.exp %exponent
      %hundredth = hydra.constant value = 0.01
      %spread = hydra.mul %indifference, %hundredth
      %lacking0 = hydra.sub %half, %variance_l
      %lacking = hydra.max %lacking0, %none
      %tenth = hydra.constant value = 0.1
      %push = hydra.mul %lacking, %tenth
      %sum0 = hydra.add %cost, %spread
      %sum = hydra.add %sum0, %push
      %five = hydra.constant value = 5
      %bounded = hydra.min %sum, %five
      hydra.yield %prob, %bounded
    }
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
    %delta0, %aux0, %mean0, %variance0 = hydra.call @first_pass(%h0, %bias0, %embed0)
    %passed0 = hydra.add %h0, %delta0
    %value0 = hydra.call @value_after(%passed0, %nothing, %everyone, %r0, %position, %depth, %total)
    %result, %balance, %mean, %variance = hydra.when R == 1 {
      hydra.yield %value0, %aux0, %mean0, %variance0
    } else {
      %biases = hydra.slice %rec_bias axis = 0 start = 1 size = R - 1
      %embeds = hydra.slice %rec_embed axis = 0 start = 1 size = R - 1
      %numbers0 = hydra.iota shape = [R - 1, 1, 1] axis = 0 dtype = f32
      %numbers = hydra.add %numbers0, %one
      %end, %value, %last, %last_mean, %last_variance = hydra.scan axis = 0 chunk = 1 over(%bias = %biases, %embed = %embeds, %r = %numbers)
          carry(%cur = %passed0, %sum = %value0, %a = %aux0, %m = %mean0, %v = %variance0) {
        %half = hydra.constant value = 0.5
        %from = hydra.sub %r, %half
        %reached = hydra.when mor == dynamic {
          hydra.yield %depth
        } else {
          %deepest = hydra.constant value = R shape = [B, S, 1]
          hydra.yield %deepest
        }
        %active = hydra.compare %reached, %from is = "ge"
        %delta, %aux, %pm, %pv = hydra.call @pass(%cur, %bias, %embed, %active)
        %passed = hydra.add %cur, %delta // of tokens that stay behind: nothing
        %next = hydra.call @value_after(%passed, %sum, %active, %r, %position, %depth, %total)
        hydra.yield %passed, %next, %aux, %pm, %pv
      }
      hydra.yield %value, %last, %last_mean, %last_variance
    }
    %counts = hydra.when mor == static {
      %c = hydra.call @histogram(%position)
      hydra.yield %c
    } else {
      %c = hydra.call @histogram(%depth)
      hydra.yield %c
    }
    hydra.yield %result, %balance, %ponder, %counts, %mean, %variance
  }

  //===-- The model ---------------------------------------------------------------------------===//

  hydra.def @trunk(%tokens) {
    %table = hydra.use @tok_emb
    %embedded = hydra.embedding %tokens, %table
    %factor = hydra.constant value = sqrt(D)
    %start = hydra.mul %embedded, %factor
    %none = hydra.constant value = 0
    %no_counts = hydra.constant value = 0 shape = [Nb, R]
    %no_numbers = hydra.constant value = 0 shape = [Nb, 1]
    %blocks = hydra.iota shape = [Nb, 1] axis = 0
    %first = hydra.constant value = 0 dtype = i32
    %following = hydra.constant value = 1 dtype = i32
    %end, %aux, %ponder, %depths, %means, %variances, %count = hydra.for @layers
        carry(%x = %start, %aux_sum = %none, %ponder_sum = %none, %d = %no_counts, %m = %no_numbers, %v = %no_numbers, %block = %first) {
      %norm1 = hydra.use @norm1
      %n = hydra.rms_norm %x, %norm1 eps = eps
      %mixed = hydra.call @attention(%n)
      %half = hydra.constant value = 0.5
      %a = hydra.mul %mixed, %half
      %h0 = hydra.add %x, %a
      %value, %balance, %spread, %counts, %mean, %variance = hydra.call @recursions(%h0)
      %final_norm = hydra.use @final_norm
      %out = hydra.rms_norm %value, %final_norm eps = eps
      %aux_next = hydra.add %aux_sum, %balance
      %ponder_next = hydra.add %ponder_sum, %spread
      // What only @routing returns.
      %here = hydra.compare %blocks, %block is = "eq"
      %d_next = hydra.select %here, %counts, %d
      %m_next = hydra.select %here, %mean, %m
      %v_next = hydra.select %here, %variance, %v
      %block_next = hydra.add %block, %following
      hydra.yield %out, %aux_next, %ponder_next, %d_next, %m_next, %v_next, %block_next
    }
    %norm = hydra.use @norm
    %final = hydra.rms_norm %end, %norm eps = eps
    hydra.yield %final, %aux, %ponder, %depths, %means, %variances
  }

  // The mean cross entropy of every token's successor, and the losses of the routers; the head is the
  // embedding.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final, %aux, %ponder, %depths, %means, %variances = hydra.call @trunk(%tokens)
    %head = hydra.use @tok_emb
    %ce = hydra.linear_cross_entropy %final, %head, %labels
    %most = hydra.constant value = 100
    %aux_bounded = hydra.min %aux, %most
    %ponder_bounded = hydra.min %ponder, %most
    %scale = hydra.constant value = ponder_scale
    %ponder_scaled = hydra.mul %ponder_bounded, %scale
    %routed = hydra.add %ce, %aux_bounded
    %loss = hydra.add %routed, %ponder_scaled
    hydra.return loss = %loss
  }

  // What the routers do: the parts of the loss; how many tokens have each depth, in every block [Nb, R];
  // mean and standard deviation of the Mixture-of-Depths' probabilities [Nb, 1], in the last recursion of
  // middle blocks. Of S tokens it passes floor(kappa S).
  hydra.entry @routing(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final, %aux, %ponder, %depths, %means, %variances = hydra.call @trunk(%tokens)
    %head = hydra.use @tok_emb
    %ce = hydra.linear_cross_entropy %final, %head, %labels
    %deviations = hydra.sqrt %variances
    hydra.return ce = %ce, aux = %aux, ponder = %ponder, depths = %depths, mod_mean = %means, mod_std = %deviations
  }

  // What held-out text is measured by: the cross entropy alone.
  hydra.entry @eval(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %final, %aux, %ponder, %depths, %means, %variances = hydra.call @trunk(%tokens)
    %head = hydra.use @tok_emb
    %ce = hydra.linear_cross_entropy %final, %head, %labels
    hydra.return loss = %ce
  }

  // The scores of every next token [B, S, V].
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %final, %aux, %ponder, %depths, %means, %variances = hydra.call @trunk(%tokens)
    %head = hydra.use @tok_emb
    %logits = hydra.linear %final, %head
    hydra.return logits = %logits
  }
}
