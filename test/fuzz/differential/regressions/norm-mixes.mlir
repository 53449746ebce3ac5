// A weight that is one number, repeated, fits any form.
hydra.model @hostile version 1 {
  hydra.param @p0 [2, 2] init = uniform(1.0)
  hydra.param @p13 [1] init = normal(1.0)
  hydra.param @p16 [2] init = uniform(0.3)
  hydra.entry @loss() {
    %p0 = hydra.use @p0
    %p13 = hydra.use @p13
    %v14 = hydra.broadcast %p13 shape = [2]
    %p16 = hydra.use @p16
    %v17 = hydra.layer_norm %p0, %v14, %p16 eps = 1.0
    %v18 = hydra.sum %v17 axes = [-2, 1]
    hydra.return loss = %v18
  }
}
