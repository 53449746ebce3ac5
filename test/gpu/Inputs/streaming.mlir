// Kernels that are bound by memory, each alone in a program, on bf16 rows (AdamW: f32).
hydra.model @streaming version 1 {
  hydra.symbols dims(D, N)
  hydra.preset @wide {D = 4096, N = 65536}
  hydra.param @g [D] bf16 init = ones

  hydra.entry @rms_norm(%x: [N, D] bf16) {
    %g = hydra.use @g
    %y = hydra.rms_norm %x, %g eps = 1.0e-5
    hydra.return y = %y
  }
  hydra.entry @rms_norm_backward(%x: [N, D] bf16, %dy: [N, D] bf16, %r: [N] f32) {
    %g = hydra.use @g
    %dx, %dw = hydra.rms_norm_grad %dy, %x, %g, %r
    hydra.return dx = %dx, dw = %dw
  }
  hydra.entry @softmax(%x: [N, D] bf16) {
    %y = hydra.softmax %x
    hydra.return y = %y
  }
  hydra.entry @softmax_backward(%y: [N, D] bf16, %dy: [N, D] bf16) {
    %yw = hydra.cast %y to = f32
    %dyw = hydra.cast %dy to = f32
    %p = hydra.mul %yw, %dyw
    %sum = hydra.sum %p axes = [1] keep
    %rows = hydra.broadcast %sum shape = [N, D]
    %d = hydra.sub %dyw, %rows
    %dxw = hydra.mul %yw, %d
    %dx = hydra.cast %dxw to = bf16
    hydra.return dx = %dx
  }
  hydra.entry @swiglu(%a: [N, D] bf16, %b: [N, D] bf16) {
    %s = hydra.silu %a
    %y = hydra.mul %s, %b
    hydra.return y = %y
  }
  hydra.entry @swiglu_backward(%a: [N, D] bf16, %b: [N, D] bf16, %dy: [N, D] bf16) {
    %aw = hydra.cast %a to = f32
    %bw = hydra.cast %b to = f32
    %dyw = hydra.cast %dy to = f32
    %sigma = hydra.sigmoid %aw
    %s = hydra.mul %aw, %sigma
    %dbw = hydra.mul %dyw, %s
    %rest = hydra.sub %aw, %s
    %scaled = hydra.mul %rest, %sigma
    %slope = hydra.add %scaled, %sigma
    %through = hydra.mul %dyw, %bw
    %daw = hydra.mul %through, %slope
    %da = hydra.cast %daw to = bf16
    %db = hydra.cast %dbw to = bf16
    hydra.return da = %da, db = %db
  }
  hydra.entry @adamw(%p: [N, D] f32, %m: [N, D] f32, %v: [N, D] f32, %grad: [N, D] f32, %lr: [] f32, %step: [] i32) {
    %p1, %m1, %v1 = hydra.adamw %p, %m, %v, %grad, %lr, %step beta1 = 0.9 beta2 = 0.95 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0
    hydra.return p = %p1, m = %m1, v = %v1
  }
}
