// A slice of eight dimensions, the most that a value has, is read out of all slices, which have one more.
// expects: right
hydra.model @m version 1 {
  hydra.param @w [1, 13, 1, 1, 31, 10, 1, 1] init = normal(1.0)
  hydra.param @s [1, 13, 1, 1, 31, 1, 1, 1] init = constant(0.5)
  hydra.entry @loss(%y: [1, 13, 1, 1, 31, 1, 1, 1] f32) {
    %w = hydra.use @w
    %s = hydra.use @s
    %last, %all = hydra.scan axis = 5 chunk = 1 over(%x = %w) carry(%c = %s) {
      %t = hydra.tanh %x
      %n = hydra.let %t + %c
      hydra.yield %c, %n
    }
    %v = hydra.mul %all, %y
    %l = hydra.mean %v axes = [0, 1, 2, 3, 4, 5, 6, 7]
    hydra.return loss = %l
  }
}
