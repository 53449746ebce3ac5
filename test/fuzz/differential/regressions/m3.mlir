// A broadcast over columns gives every column of the sum its value, also where the group holds one
// number for a row.
// expects: right
hydra.model @m version 1 {
  hydra.param @p [4, 1] init = normal(1.0)
  hydra.entry @loss() {
    %p = hydra.use @p
    %q = hydra.exp %p
    %a = hydra.broadcast %q shape = [4, 3]
    %s = hydra.sum %a axes = [0]
    %f = hydra.sin %s
    %loss = hydra.sum %f axes = [0]
    hydra.return loss = %loss
  }
}
