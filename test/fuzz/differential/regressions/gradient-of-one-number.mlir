// A gradient that is one number, [], is a matrix of one row and column for a matmul of 8-bit operands.
// expects: right
// flags: --seed=62607
hydra.model @hostile version 1 {
  hydra.param @p0 [16] init = normal(0.5)
  hydra.param @p1 [16, 16] init = trunc_normal(0.5, 2.0)
  hydra.param @p2 [1, 16] init = trunc_normal(0.5, 2.0)
  hydra.param @p9 [1] init = normal(1.0)
  hydra.param @p12 [1, 16] init = normal(1.0)
  hydra.entry @loss() {
    %p0 = hydra.use @p0
    %p1 = hydra.use @p1
    %p2 = hydra.use @p2
    %v3 = hydra.linear %p0, %p1
    %v4 = hydra.linear %p0, %p2
    %v5 = hydra.tanh %v3
    %v6 = hydra.mul %v5, %v4
    %v7 = hydra.concat %v6 axis = 0
    %v8 = hydra.concat %v5 axis = 0
    %p9 = hydra.use @p9
    %v10 = hydra.broadcast %p9 shape = [1]
    %v11 = hydra.broadcast %v10 shape = [1]
    %p12 = hydra.use @p12
    %v13 = hydra.linear %v8, %p12, %v11
    %v14 = hydra.silu %v13
    %v15 = hydra.mul %v14, %v13
    %v16 = hydra.constant value = 0.062
    %v17 = hydra.let %v15 * %v16
    %v18 = hydra.mean %v7 axes = [-1]
    %v19 = hydra.add %v18, %v16
    %v20 = hydra.reshape %v17 shape = []
    %v21 = hydra.let %v19 * %v20
    %v22 = hydra.neg %v21
    hydra.return loss = %v22, r0 = %v20, r1 = %v11, r2 = %v19
  }
}
