// An error that is reported ends the compiler with status 1 and without a plan, also one that is
// found while the plan is written.
// expects: refused
hydra.model @m version 1 {
  hydra.param @w [4] init = shuffle(1.0 / (index - 1))
  hydra.entry @loss(%x: [4] f32) {
    %w = hydra.use @w
    %y = hydra.mul %x, %w
    %s = hydra.sum %y axes = [0]
    hydra.return loss = %s
  }
}
