// Parameters whose gradients are themselves and numbers that stay, f(p) = sum of w (p²/2 + p a): in blocks of 256, of 169
// and of 134, of gradients that differ by more than what 8 bits hold, and too few for blocks.
hydra.model @blocks version 1 {
  hydra.group @default adamw8bit(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.group @slow    adamw8bit(beta1 = 0.8, beta2 = 0.999, eps = 1.0e-6, wd = 0.0, lr_scale = 0.5, min_size = 0.0)

  hydra.param @even.p  [40, 128] init = normal(1.0)
  hydra.param @even.a  [40, 128] init = normal(1.0) frozen
  hydra.param @odd.p   [65, 65] init = normal(1.0)
  hydra.param @odd.a   [65, 65] init = normal(1.0) frozen
  hydra.param @rows.p  [8, 67] init = normal(1.0) group = @slow
  hydra.param @rows.a  [8, 67] init = normal(1.0) frozen
  hydra.param @wide.p  [16, 256] init = normal(1.0)
  hydra.param @wide.a  [16, 256] init = normal(1.0) frozen
  hydra.param @few.p   [8, 8] init = normal(1.0)
  hydra.param @few.a   [8, 8] init = normal(1.0) frozen

  hydra.def @two(%p, %a) {
    %square = hydra.mul %p, %p
    %half = hydra.constant value = 0.5
    %first = hydra.mul %half, %square
    %second = hydra.mul %p, %a
    %all = hydra.add %first, %second
    hydra.yield %all
  }

  hydra.entry @loss() {
    %ep = hydra.use @even.p
    %ea = hydra.use @even.a
    %e0 = hydra.call @two(%ep, %ea)
    %e = hydra.sum %e0 axes = [0, 1]
    %op = hydra.use @odd.p
    %oa = hydra.use @odd.a
    %o0 = hydra.call @two(%op, %oa)
    %o = hydra.sum %o0 axes = [0, 1]
    %rp = hydra.use @rows.p
    %ra = hydra.use @rows.a
    %r0 = hydra.call @two(%rp, %ra)
    %r = hydra.sum %r0 axes = [0, 1]
    %wp = hydra.use @wide.p
    %wa = hydra.use @wide.a
    %w0 = hydra.call @two(%wp, %wa)
    %four = hydra.constant value = 4.0
    %exponent = hydra.mul %four, %wa
    %weight = hydra.exp %exponent
    %w1 = hydra.mul %weight, %w0
    %w = hydra.sum %w1 axes = [0, 1]
    %fp = hydra.use @few.p
    %fa = hydra.use @few.a
    %f0 = hydra.call @two(%fp, %fa)
    %f = hydra.sum %f0 axes = [0, 1]
    %s1 = hydra.add %e, %o
    %s2 = hydra.add %r, %w
    %s3 = hydra.add %s1, %s2
    %loss = hydra.add %s3, %f
    hydra.return loss = %loss
  }
}
