// A matrix of one column has no column stride, whatever its view says.
hydra.model @hostile version 1 {
  hydra.param @p2 [2, 1, 2] init = normal(1.0)
  hydra.param @p12 [2] init = normal(1.0)
  hydra.entry @loss() {
    %p2 = hydra.use @p2
    %p12 = hydra.use @p12
    %v13 = hydra.broadcast %p12 shape = [1, 2]
    %v14 = hydra.linear %p2, %v13
    %v16 = hydra.reduce_max %v14 axes = [2, 1, 0]
    hydra.return loss = %v16
  }
}
