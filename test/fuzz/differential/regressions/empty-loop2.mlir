// The same with a carried value as the result.
hydra.model @hostile version 1 {
  hydra.param @p2 [8, 1, 1] init = ones
  hydra.param @p3 [1] init = trunc_normal(0.5, 2.0)
  hydra.entry @loss() {
    %p2 = hydra.use @p2
    %p3 = hydra.use @p3
    %v5 = hydra.broadcast %p3 shape = [1, 1]
    %v19 = hydra.scan axis = 0 chunk = 1 over(%c6 = %p2) carry(%s7 = %v5) {
      hydra.yield %s7
    }
    %v22 = hydra.mean %v19 axes = [-1, 0]
    hydra.return loss = %v22
  }
}
