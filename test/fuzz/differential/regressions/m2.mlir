// A broadcast that was folded into a group repeats its value in every row and column, and a sum
// counts every repetition.
// expects: right
hydra.model @m version 1 {
  hydra.param @p [1] init = normal(1.0)
  hydra.entry @loss() {
    %p = hydra.use @p
    %a = hydra.broadcast %p shape = [3, 2]
    %s = hydra.sum %a axes = [0]
    %f = hydra.sin %s
    %loss = hydra.sum %f axes = [0]
    hydra.return loss = %loss
  }
}
