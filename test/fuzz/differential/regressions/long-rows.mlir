// flags: --seed=11
// expects: right
// Rows that the threads of a GPU do not keep in registers lie in shared memory between sweeps, in f32 the shorter and in 16 bits
// the longer ones. A column that a number of the row names is in one chunk of it.
hydra.model @long version 1 {
  hydra.symbols dims(E = 3, M = 20488, N = 40968)
  hydra.param @p [E, M] init = normal(1.0)
  hydra.param @q [E, N] init = normal(1.0)
  hydra.param @w [N] init = normal(1.0)
  hydra.entry @loss() {
    %p = hydra.use @p
    %q = hydra.use @q
    %row = hydra.iota shape = [E] axis = 0
    %late = hydra.let %row * 10243
    %entropy = hydra.cross_entropy %p, %late
    %latest = hydra.let %row * 20483 + 1
    %other = hydra.cross_entropy %q, %latest
    %soft = hydra.let softmax(%q * 3.0)
    %norm = hydra.let rms_norm(%p, slice(@w, axis = 0, start = 0, size = M), eps = 1.0e-5)
    %column = hydra.iota shape = [E, M] axis = 1
    %rows = hydra.iota shape = [E, M] axis = 0
    %number = hydra.let %rows * 10243
    %is = hydra.compare %column, %number is = "eq"
    %most = hydra.reduce_max %p axes = [1] keep
    %below = hydra.sub %p, %most
    %none = hydra.constant value = 0.0
    %chosen = hydra.select %is, %below, %none
    %picked = hydra.let sum(%chosen, axes = [0, 1])
    %loss = hydra.let %entropy + %other + sum(%soft * %soft, axes = [0, 1]) + mean(%norm, axes = [0, 1]) + %picked
    hydra.return loss = %loss, soft = %soft, norm = %norm, chosen = %chosen
  }
}
