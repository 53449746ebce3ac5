// Two sizes of chunks are no chunk of either size.
hydra.model @m version 1 {
  hydra.param @q [1, 1, 6, 2] init = normal(1.0)
  hydra.entry @loss() {
    %q = hydra.use @q
    %s = hydra.matmul %q, %q transpose_b
    %i = hydra.iota shape = [6, 6] axis = 0
    %j = hydra.iota shape = [6, 6] axis = 1
    %never = hydra.constant value = -inf
    %c = hydra.compare %j, %i is = "le"
    %a = hydra.select %c, %s, %never
    %k1 = hydra.iota shape = [3, 2] axis = 0
    %f1 = hydra.reshape %k1 shape = [6]
    %r1 = hydra.reshape %f1 shape = [6, 1]
    %t1 = hydra.reshape %f1 shape = [1, 6]
    %c1 = hydra.compare %r1, %t1 is = "eq"
    %a1 = hydra.select %c1, %a, %never
    %k2 = hydra.iota shape = [2, 3] axis = 0
    %f2 = hydra.reshape %k2 shape = [6]
    %r2 = hydra.reshape %f2 shape = [6, 1]
    %t2 = hydra.reshape %f2 shape = [1, 6]
    %c2 = hydra.compare %r2, %t2 is = "eq"
    %a2 = hydra.select %c2, %a1, %never
    %p = hydra.softmax %a2
    %y = hydra.matmul %p, %q
    %z = hydra.sin %y
    %loss = hydra.sum %z axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}
