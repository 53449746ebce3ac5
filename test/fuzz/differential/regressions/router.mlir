// What a sum over rows adds is said by the operation: here a gradient that varies over rows alone
// is summed over rows, and its columns are the same.
// expects: right
hydra.model @m version 1 {
  hydra.param @x [6, 5] init = normal(1.0)
  hydra.param @w [4, 5] init = normal(1.0)
  hydra.param @b [4] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %w = hydra.use @w
    %b = hydra.use @b
    %t = hydra.linear %x, %w, %b
    %m = hydra.mean %t axes = [1]
    %s = hydra.sin %m
    %loss = hydra.sum %s axes = [0]
    hydra.return loss = %loss
  }
}
