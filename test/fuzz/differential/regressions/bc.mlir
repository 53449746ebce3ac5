// The rows of a matrix do not overlap: a broadcast's view with stride 0 is no operand of a matmul.
// expects: right
hydra.model @m version 1 {
  hydra.param @x [1, 30, 2] init = normal(1.0)
  hydra.param @w [2, 2] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %w = hydra.use @w
    %t = hydra.linear %x, %w
    %m = hydra.sum %t axes = [1]
    %q = hydra.sin %m
    %loss = hydra.sum %q axes = [0, 1]
    hydra.return loss = %loss
  }
}
