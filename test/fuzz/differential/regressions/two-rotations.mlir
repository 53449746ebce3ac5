// flags: --seed=60206
// expects: right
// Pairs of neighbours rotate in chunks of one column too, where another rotation of the group asks for them.
hydra.model @hostile version 1 {
  hydra.param @p0 [1, 1, 1] init = normal(1.0)
  hydra.param @p1 [2, 1] init = normal(1.0)
  hydra.param @r0 [1, 1, 1, 1] init = normal(1.0)
  hydra.entry @loss() {
    %p0 = hydra.use @p0
    %p1 = hydra.use @p1
    %v2 = hydra.linear %p0, %p1
    %v3 = hydra.reshape %v2 shape = [1, 1, 1, 2]
    %v4 = hydra.rope %v3 base = 10.0
    %v5 = hydra.linear %p0, %p1
    %v6 = hydra.reshape %v5 shape = [1, 1, 1, 2]
    %v7 = hydra.rope %v6 base = 100.0 half_split
    %r0 = hydra.use @r0
    %v13 = hydra.attention %v4, %v7, %r0 scale = 0.5
    %loss0 = hydra.sum %v13 axes = [0, 1, 2, 3]
    hydra.return loss = %loss0
  }
}
