// What a broadcast repeats may be one number, which has no form of its own in a group.
hydra.model @hostile version 1 {
  hydra.param @p2 [2] init = zeros
  hydra.param @p4 [1] init = normal(0.5)
  hydra.entry @loss() {
    %p2 = hydra.use @p2
    %p4 = hydra.use @p4
    %v5 = hydra.broadcast %p4 shape = [1, 2]
    %v6 = hydra.broadcast %v5 shape = [1, 2, 2]
    %v20 = hydra.scan axis = 0 chunk = 2 over(%c8 = %p2) carry(%s11 = %v6) {
      hydra.yield %s11
    }
    %v21 = hydra.sum %v20 axes = [0, 1, 2]
    hydra.return loss = %v21
  }
}
