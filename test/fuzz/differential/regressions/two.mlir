// Over a single column or row a value may be both one for the row and one for the column; readers
// must agree on which.
// expects: right
hydra.model @m version 1 {
  hydra.param @p0 [1] init = normal(1.0)
  hydra.param @p1 [1, 1] init = normal(1.0)
  hydra.entry @loss() {
    %p0 = hydra.use @p0
    %p1 = hydra.use @p1
    %v1 = hydra.softmax %p0
    %v2 = hydra.broadcast %v1 shape = [1, 3]
    %v4 = hydra.matmul %v2, %p1 transpose_a transpose_b
    %v7 = hydra.sum %v2 axes = [0] keep
    %f0 = hydra.sin %v7
    %g0 = hydra.sum %f0 axes = [0, 1]
    %f1 = hydra.sin %v4
    %g1 = hydra.sum %f1 axes = [0, 1]
    %h1 = hydra.add %g0, %g1
    hydra.return loss = %h1
  }
}
