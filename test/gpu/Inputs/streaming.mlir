// Kernels that are bound by memory, each alone in a program, on bf16 rows. What they read are parameters,
// drawn once. AdamW is in streaming-adamw.mlir.
hydra.model @streaming version 1 {
  hydra.symbols dims(D, N)
  hydra.preset @wide {D = 4096, N = 65536}
  hydra.param @g [D] bf16 init = ones
  hydra.param @r [N] init = ones
  hydra.param @a [N, D] bf16 init = normal(1.0)
  hydra.param @b [N, D] bf16 init = normal(1.0)
  hydra.param @c [N, D] bf16 init = normal(1.0)

  hydra.entry @rms_norm() {
    %g = hydra.use @g
    %x = hydra.use @a
    %y = hydra.rms_norm %x, %g eps = 1.0e-5
    hydra.return y = %y
  }
  hydra.entry @rms_norm_backward() {
    %g = hydra.use @g
    %r = hydra.use @r
    %x = hydra.use @a
    %dy = hydra.use @b
    %dx, %dw = hydra.rms_norm_grad %dy, %x, %g, %r
    hydra.return dx = %dx, dw = %dw
  }
  hydra.entry @softmax() {
    %x = hydra.use @a
    %y = hydra.softmax %x
    hydra.return y = %y
  }
  hydra.entry @softmax_backward() {
    %y = hydra.use @a
    %dy = hydra.use @b
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
  hydra.entry @swiglu() {
    %a = hydra.use @a
    %b = hydra.use @b
    %s = hydra.silu %a
    %y = hydra.mul %s, %b
    hydra.return y = %y
  }
  hydra.entry @swiglu_backward() {
    %a = hydra.use @a
    %b = hydra.use @b
    %dy = hydra.use @c
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
}
