// Two windows are the narrower one.
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
    %d = hydra.sub %i, %j
    %w1 = hydra.constant value = 4 dtype = i32
    %c1 = hydra.compare %d, %w1 is = "lt"
    %a1 = hydra.select %c1, %a, %never
    %w2 = hydra.constant value = 2 dtype = i32
    %c2 = hydra.compare %d, %w2 is = "lt"
    %a2 = hydra.select %c2, %a1, %never
    %p = hydra.softmax %a2
    %y = hydra.matmul %p, %q
    %z = hydra.sin %y
    %loss = hydra.sum %z axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}
