// flags: --seed=5
// expects: right
// A loop in one kernel has a slice of each tensor for every block: what one step slices another may read whole, here
// a parameter that is yielded by itself, of as many elements as there are rows, and the weight of a norm.
hydra.model @whole version 1 {
  hydra.param @w [31] init = normal(1.0)
  hydra.param @s [31, 31] init = normal(1.0)
  hydra.entry @loss(%x: [31, 31] f32) {
    %s = hydra.use @s
    %y, %z, %e = hydra.scan axis = 0 chunk = 1 over(%c = %x) carry(%a = %x, %b = %s) {
      %w = hydra.use @w
      %n = hydra.layer_norm %x, %w, %w eps = 0.1
      %t = hydra.tanh %n
      %u = hydra.tanh %t
      hydra.yield %w, %t, %u
    }
    %m = hydra.mean %e axes = [0]
    %l = hydra.sum %m axes = [0]
    %loss = hydra.tanh %l
    hydra.return loss = %loss, y = %y
  }
}
