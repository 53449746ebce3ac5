// Updates of two parameters that are one kernel: it reads views of the second, which move up with it, and so must the
// variables that they are views of.
// flags: --batch=1 --seq=32
// settings: --mode=train --accum=2 --no-clip
// expects: right
hydra.model @view version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.group @slow adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.01, lr_scale = 0.25)
  hydra.param @table [32, 4]       init = constant(-1.0)
  hydra.param @a     [100]         init = normal(1.0) group = @slow
  hydra.param @b     [100]         init = normal(1.0) group = @slow
  hydra.param @c     [100, 1, 32]  init = normal(1.0) group = @slow
  hydra.param @first [1]           init = normal(0.5)
  hydra.param @second [1, 1]       init = normal(0.5)
  hydra.param @head  [128]         init = normal(1.0) group = @slow
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B] i32) dims(B, S) {
    %table = hydra.use @table
    %rows = hydra.embedding %tokens, %table
    %a = hydra.use @a
    %b = hydra.use @b
    %c = hydra.use @c
    %first = hydra.use @first
    %second = hydra.use @second
    %mean = hydra.mean %rows axes = [1]
    %head = hydra.use @head
    %matrix = hydra.reshape %head shape = [32, 4]
    %loss = hydra.linear_cross_entropy %mean, %matrix, %labels
    hydra.return loss = %loss
  }
}
