// Parameters whose gradients are themselves and numbers that stay: f(p) = sum of p²/2 + p a.
hydra.model @quadratic version 1 {
  hydra.symbols dims(M, N)
  hydra.preset @tiny {M = 6, N = 4}

  hydra.group @default sgd()
  hydra.group @lion lion(wd = 0.1)
  hydra.group @muon muon()
  hydra.group @matched muon(momentum = 0.8, nesterov = false, match_adamw = true, wd = 0.0, steps = 3, lr_scale = 0.5)
  hydra.group @adafactor adafactor(wd = 0.05)
  hydra.group @slow adafactor(decay = 0.5, threshold = 0.3, eps2 = 0.2)

  hydra.param @lion.p   [M, N] init = normal(1.0) group = @lion
  hydra.param @lion.a   [M, N] init = normal(1.0) frozen
  hydra.param @tall.p   [M, N] init = normal(1.0) group = @muon
  hydra.param @tall.a   [M, N] init = normal(1.0) frozen
  hydra.param @wide.p   [N, M] init = normal(1.0) group = @matched
  hydra.param @wide.a   [N, M] init = normal(1.0) frozen
  hydra.param @matrix.p [M, N] init = normal(1.0) group = @adafactor
  hydra.param @matrix.a [M, N] init = normal(1.0) frozen
  hydra.param @cube.p   [2, N, M] init = normal(1.0) group = @slow
  hydra.param @cube.a   [2, N, M] init = normal(1.0) frozen
  hydra.param @vector.p [M] init = normal(1.0) group = @slow
  hydra.param @vector.a [M] init = normal(1.0) frozen

  hydra.def @two(%p, %a) {
    %square = hydra.mul %p, %p
    %half = hydra.constant value = 0.5
    %first = hydra.mul %half, %square
    %second = hydra.mul %p, %a
    %all = hydra.add %first, %second
    %sum = hydra.sum %all axes = [0, 1]
    hydra.yield %sum
  }

  hydra.entry @loss() {
    %lp = hydra.use @lion.p
    %la = hydra.use @lion.a
    %l = hydra.call @two(%lp, %la)
    %tp = hydra.use @tall.p
    %ta = hydra.use @tall.a
    %t = hydra.call @two(%tp, %ta)
    %wp = hydra.use @wide.p
    %wa = hydra.use @wide.a
    %w = hydra.call @two(%wp, %wa)
    %mp = hydra.use @matrix.p
    %ma = hydra.use @matrix.a
    %m = hydra.call @two(%mp, %ma)
    %cp0 = hydra.use @cube.p
    %ca0 = hydra.use @cube.a
    %cp = hydra.reshape %cp0 shape = [2 * N, M]
    %ca = hydra.reshape %ca0 shape = [2 * N, M]
    %c = hydra.call @two(%cp, %ca)
    %vp0 = hydra.use @vector.p
    %va0 = hydra.use @vector.a
    %vp = hydra.reshape %vp0 shape = [1, M]
    %va = hydra.reshape %va0 shape = [1, M]
    %v = hydra.call @two(%vp, %va)
    %s1 = hydra.add %l, %t
    %s2 = hydra.add %w, %m
    %s3 = hydra.add %c, %v
    %s4 = hydra.add %s1, %s2
    %loss = hydra.add %s3, %s4
    hydra.return loss = %loss
  }
}
