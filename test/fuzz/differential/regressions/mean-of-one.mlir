// flags: --seed=208978
// expects: right
// A mean over an axis of length 1 divides no columns: in a group with columns it sums none of them.
hydra.model @hostile version 1 {
  hydra.param @r0 [2, 2, 1, 1, 2] init = normal(1.0)
  hydra.entry @loss() {
    %r0 = hydra.use @r0
    %v7 = hydra.sum %r0 axes = [1]
    %v8 = hydra.mean %v7 axes = [1]
    %loss0 = hydra.sum %v8 axes = [0, 1, 2]
    hydra.return loss = %loss0
  }
}
