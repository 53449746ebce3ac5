// The rows of a matrix do not overlap: the gradient of mean pooling is a broadcast, and no operand
// of a matmul, also with a batch of 1.
// flags: --batch=1 --seq=8
// expects: right
hydra.model @pool version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.param @e [7, 4] init = normal(1.0)
  hydra.param @w [4, 4] init = normal(1.0)
  hydra.param @h [7, 4] init = normal(1.0)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B] i32) dims(B, S) {
    %e = hydra.use @e
    %w = hydra.use @w
    %h = hydra.use @h
    %x = hydra.embedding %tokens, %e
    %t = hydra.linear %x, %w
    %m = hydra.sum %t axes = [1]
    %loss = hydra.linear_cross_entropy %m, %h, %labels
    hydra.return loss = %loss
  }
}
