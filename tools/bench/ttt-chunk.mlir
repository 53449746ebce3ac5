// One chunk of a TTT layer in its two forms (models/ttt.mlir has the layer): every head has a matrix W, takes
// one step on it for each token, at the first W of the chunk, and reads it with queries.
hydra.model @ttt_chunk version 1 {
  hydra.symbols dims(N, H, d, b) reals(eps = 1.0e-5, eta = 0.01)
  hydra.preset @chunk {N = 16, H = 64, d = 128, b = 16}
  hydra.preset @tiny  {N = 2,  H = 2,  d = 16,  b = 4}

  hydra.param @q [N, H, b, d] init = normal(1.0)
  hydra.param @k [N, H, b, d] init = normal(1.0)
  hydra.param @v [N, H, b, d] init = normal(1.0)
  hydra.param @w [N, H, d, d] init = normal(0.02)
  hydra.param @gamma [H, d] init = ones
  hydra.param @beta  [H, d] init = zeros

  hydra.def @normalise(%x) {
    %centred = hydra.let %x - mean(%x, 3)
    %r = hydra.let rsqrt(mean(%centred * %centred, 3) + eps)
    %n = hydra.let %centred * %r
    hydra.yield %n, %r
  }
  // Minus the steps of all tokens: eta times the derivative of |k + LN(W k) - v|^2 / b in W k.
  hydra.def @steps(%gamma, %beta) {
    %t = hydra.let matmul(@k, @w, transpose_b)
    %x, %r = hydra.call @normalise(%t)
    %g = hydra.let (@k + (%x * %gamma + %beta) - @v) * %gamma * (-2.0 * eta / b)
    %u = hydra.let (%g - mean(%g, 3) - %x * mean(%g * %x, 3)) * %r
    hydra.yield %u
  }

  // All tokens at once: a query sees the steps of the tokens before it.
  hydra.entry @dual() {
    %gamma, %beta = hydra.let reshape(@gamma, [1, H, 1, d]), reshape(@beta, [1, H, 1, d])
    %u = hydra.call @steps(%gamma, %beta)
    %row, %column = hydra.let iota(axis = 0, shape = [b, b]), iota(axis = 1, shape = [b, b])
    %seen = hydra.let select(%column < %row, matmul(@q, @k, transpose_b), 0)
    %read = hydra.let matmul(@q, @w, transpose_b) + matmul(%seen, %u)
    %n, %r = hydra.call @normalise(%read)
    %z = hydra.let @q + (%n * %gamma + %beta)
    %end = hydra.let @w + matmul(%u, @k, transpose_a)
    hydra.return z = %z, end = %end
  }
  // Token by token.
  hydra.entry @primal() {
    %gamma, %beta = hydra.let reshape(@gamma, [1, H, 1, d]), reshape(@beta, [1, H, 1, d])
    %u = hydra.call @steps(%gamma, %beta)
    %q, %k, %first = hydra.let @q, @k, @w
    %z, %end = hydra.scan axis = 2 chunk = 1 over(%qi = %q, %ki = %k, %ui = %u) carry(%w = %first) {
      %read = hydra.let matmul(%qi, %w, transpose_b)
      %n, %r = hydra.call @normalise(%read)
      %zi = hydra.let %qi + (%n * %gamma + %beta)
      %next = hydra.let %w + matmul(%ui, %ki, transpose_a)
      hydra.yield %zi, %next
    }
    hydra.return z = %z, end = %end
  }
}
