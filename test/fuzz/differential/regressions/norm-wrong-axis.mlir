// A mean without keep is repeated for every row, not along it.
hydra.model @m version 1 {
  hydra.param @x [3, 3] init = normal(1.0)
  hydra.param @w [3] init = normal(1.0)
  hydra.param @b [3] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %w = hydra.use @w
    %b = hydra.use @b
    %n = hydra.layer_norm %x, %w, %b eps = 0.1
    %m = hydra.mean %x axes = [1]
    %c = hydra.sub %x, %m
    %cc = hydra.mul %c, %c
    %var = hydra.mean %cc axes = [1]
    %eps = hydra.constant value = 0.1
    %e = hydra.add %var, %eps
    %r = hydra.rsqrt %e
    %y = hydra.mul %r, %n
    %loss = hydra.sum %y axes = [0, 1]
    hydra.return loss = %loss
  }
}
