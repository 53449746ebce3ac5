// What a library call of the executor refuses, the compiler refuses before: the scale of attention
// is positive.
// expects: refused
hydra.model @m version 1 {
  hydra.param @q [1, 2, 1, 4] init = normal(1.0)
  hydra.entry @loss() {
    %q = hydra.use @q
    %y = hydra.attention %q, %q, %q scale = -1.0
    %loss = hydra.sum %y axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}
