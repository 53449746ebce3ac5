// AdamW of one large f32 tensor, in place.
hydra.model @streaming version 1 {
  hydra.symbols dims(D, N)
  hydra.preset @wide {D = 4096, N = 65536}
  hydra.param @p [N, D] init = normal(1.0)
  hydra.param @grad [N, D] init = normal(1.0)
  hydra.state @m [N, D] init = zeros
  hydra.state @v [N, D] init = zeros

  hydra.entry @adamw(%lr: [] f32 = 1.0e-3, %t: [] i32 = 1) {
    %p = hydra.use @p
    %grad = hydra.use @grad
    %m = hydra.use @m
    %v = hydra.use @v
    %p1, %m1, %v1 = hydra.adamw %p, %m, %v, %grad, %lr, %t beta1 = 0.9 beta2 = 0.95 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0
    hydra.return updates(@p = %p1, @m = %m1, @v = %v1)
  }
}
