// A whole number and one of 16 bits.
hydra.model @m version 1 {
  hydra.group @default sgd()
  hydra.param @w [3] init = ones
  hydra.entry @loss(%count: [] i32 = 3, %half: [] f16 = 0.5) {
    %loss = hydra.let sum(@w * @w, axes = [0]) * cast(%count, to = f32) + cast(%half, to = f32)
    hydra.return loss = %loss
  }
}
