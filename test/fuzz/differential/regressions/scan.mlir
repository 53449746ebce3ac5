// A carried value is written where the next iteration reads it only after the last read of the one
// before.
// expects: right
hydra.model @m version 1 {
  hydra.param @x [2, 16, 3] init = normal(1.0)
  hydra.param @s0 [2, 1, 3] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %s0 = hydra.use @s0
    %y, %e = hydra.scan axis = 1 chunk = 2 over(%c = %x) carry(%s = %s0) {
      %t = hydra.tanh %s
      %u = hydra.add %c, %t
      %m = hydra.mean %u axes = [1] keep
      %q = hydra.add %m, %t
      hydra.yield %u, %q
    }
    %sq = hydra.sin %y
    %ab = hydra.mul %sq, %y
    %loss = hydra.sum %ab axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
