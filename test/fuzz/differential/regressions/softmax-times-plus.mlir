// flags: --seed=3
// expects: right
// Matmuls around a softmax that add something, or that are to keep f32, are no attention, which does neither.
hydra.model @plus version 1 {
  hydra.param @q [2, 3, 4, 8] init = normal(1.0)
  hydra.param @k [2, 3, 5, 8] init = normal(1.0)
  hydra.param @v [2, 3, 5, 8] init = normal(1.0)
  hydra.param @more [2, 3, 4, 8] init = normal(1.0)
  hydra.param @scores [2, 3, 4, 5] init = normal(1.0)
  hydra.param @table [7, 8] init = normal(1.0)
  hydra.param @bias [6, 7] init = normal(1.0)
  hydra.entry @loss() {
    %q = hydra.use @q
    %k = hydra.use @k
    %v = hydra.use @v
    %more = hydra.use @more
    %scores = hydra.use @scores
    %s1 = hydra.matmul %q, %k transpose_b
    %p1 = hydra.softmax %s1
    %o1 = hydra.matmul %p1, %v, %more
    %s2 = hydra.matmul %q, %k, %scores transpose_b
    %p2 = hydra.softmax %s2
    %o2 = hydra.matmul %p2, %v
    %s3 = hydra.matmul %q, %k transpose_b full_precision
    %p3 = hydra.softmax %s3
    %o3 = hydra.matmul %p3, %v
    %a = hydra.let %o1 * %o2 + %o3
    %part = hydra.mean %a axes = [0, 1, 2, 3]
    %table = hydra.use @table
    %bias = hydra.use @bias
    %first = hydra.slice %o3 axis = 2 start = 0 size = 1
    %rows = hydra.reshape %first shape = [6, 8]
    %logits = hydra.matmul %rows, %table, %bias transpose_b
    %labels = hydra.iota shape = [6] axis = 0 dtype = i32
    %ce = hydra.cross_entropy %logits, %labels
    %loss = hydra.add %part, %ce
    hydra.return loss = %loss
  }
}
