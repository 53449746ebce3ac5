// flags: --seed=7
// expects: right
// A gradient that the program itself has in bf16 stays so under a policy: what reads it was typed for it.
hydra.model @low version 1 {
  hydra.param @w [5, 3] bf16 init = normal(1.0)
  hydra.entry @loss() {
    %w = hydra.use @w
    %y = hydra.linear %w, %w dtype = f32
    %s = hydra.mul %y, %y
    %loss = hydra.sum %s axes = [0, 1]
    hydra.return loss = %loss
  }
}
