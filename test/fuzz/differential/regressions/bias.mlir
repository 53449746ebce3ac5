// What a sum over rows adds is said by the operation, not by the form that the value has in its
// group: a value that is the same in all rows still is added once for every row.
// expects: right
hydra.model @m version 1 {
  hydra.param @x [4, 8] init = normal(1.0)
  hydra.param @b [8] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %b = hydra.use @b
    %y = hydra.add %x, %b
    %loss = hydra.sum %y axes = [0, 1]
    hydra.return loss = %loss
  }
}
