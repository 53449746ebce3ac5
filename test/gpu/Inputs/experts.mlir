// A mixture of experts that goes by the numbers of tokens, so that rounding changes nobody's experts; what the router
// computes weighs them.
hydra.model @experts version 1 {
  hydra.symbols dims(D, F, V, E, K) flags(narrow = false)
  hydra.preset @tiles {D = 64, F = 192, V = 97, E = 4, K = 2}
  hydra.preset @many {D = 64, F = 136, V = 97, E = 40, K = 6}
  hydra.preset @odd {D = 60, F = 100, V = 97, E = 3, K = 1}
  hydra.preset @one {D = 64, F = 96, V = 97, E = 1, K = 1}
  hydra.preset @all {D = 32, F = 40, V = 97, E = 3, K = 3}
  hydra.preset @long {D = 640, F = 1088, V = 97, E = 5, K = 2}
  hydra.preset @mixtral {D = 4096, F = 14336, V = 97, E = 8, K = 2}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @router [E, D] init = normal(0.1)
  hydra.param @gate [E, F, D] init = normal(1 / sqrt(D))
  hydra.param @up [E, F, D] init = normal(1 / sqrt(D))
  hydra.param @down [E, D, F] init = normal(1 / sqrt(F))
  hydra.param @out [V, D] init = normal(0.2)

  // The experts [B * S, E] of tokens: K of them; `narrow`: of some tokens fewer, and most go to the first.
  hydra.def @chosen(%tokens) {
    %token = hydra.let cast(reshape(%tokens, [B * S, 1]), to = f32)
    %expert = hydra.iota shape = [1, E] axis = 1 dtype = f32
    %mask = hydra.let when(narrow, %token * (%expert + 1.0) < 60.0, top_k(sin(%token * 1.7 + %expert * 2.3), k = K))
    hydra.yield %mask
  }

  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let reshape(embedding(%tokens, @e), [B * S, D])
    %mask = hydra.call @chosen(%tokens)
    %shares = hydra.let softmax(linear(%x, @router))
    %index, %group, %place, %offsets = hydra.route %mask k = K
    %rows, %own = hydra.let take_rows(%x, %index, %place), take_rows(%shares, %index, %place)
    %is = hydra.let reshape(%group, [B * S * K, 1]) == iota(shape = [1, E], axis = 1)
    %gate, %up = hydra.let grouped_linear(%rows, @gate, %offsets), grouped_linear(%rows, @up, %offsets)
    %inner = hydra.let silu(%gate) * %up * sum(select(%is, %own, 0.0), 1)
    %y = hydra.let take_rows(grouped_linear(%inner, @down, %offsets), %place, %index)
    %loss = hydra.let linear_cross_entropy(%x + %y, @out, reshape(%labels, [B * S]))
    hydra.return loss = %loss
  }
}
