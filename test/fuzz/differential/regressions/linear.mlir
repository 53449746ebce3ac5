// A chunk lies in its sequence with the sequence's strides at every level of optimisation: a
// matmul of it needs rows that merge, or a copy.
// expects: right
hydra.model @m version 1 {
  hydra.param @x [2, 16, 3] init = normal(1.0)
  hydra.param @s0 [2, 3] init = normal(1.0)
  hydra.param @w [3, 3] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %s0 = hydra.use @s0
    %w = hydra.use @w
    %y, %e = hydra.scan axis = 1 chunk = 2 over(%c = %x) carry(%s = %s0) {
      %t = hydra.linear %c, %w
      %m = hydra.sum %c axes = [1]
      %n = hydra.add %m, %s
      hydra.yield %t, %n
    }
    %a = hydra.sum %y axes = [0, 1, 2]
    %b = hydra.sum %e axes = [0, 1]
    %loss = hydra.mul %a, %b
    hydra.return loss = %loss
  }
}
