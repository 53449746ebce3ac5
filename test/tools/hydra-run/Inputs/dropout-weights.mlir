// Gradients that are the weights of attention: values are one at the number of the key.
hydra.model @weights version 1 {
  hydra.param @q  [8, 64, 4, 16] init = zeros
  hydra.param @k  [8, 64, 4, 16] init = normal(1.0)
  hydra.param @w1 [8, 64, 4, 64] init = ones
  hydra.param @w2 [8, 64, 4, 64] init = ones
  hydra.entry @loss(%x: [2] f32) {
    %i, %j = hydra.let iota(axis = 1, shape = [8, 64, 4, 64]), iota(axis = 3, shape = [8, 64, 4, 64])
    %v = hydra.let cast(%i == %j, to = f32)
    %o1 = hydra.let attention(@q, @k, %v, scale = 1.0, dropout = 0.25, dropkey = 0.3)
    %o2 = hydra.let attention(@q, @k, %v, scale = 1.0, causal, dropkey = 0.9)
    %products = hydra.let %o1 * @w1 + %o2 * @w2
    %of_weights = hydra.mean %products axes = [0, 1, 2, 3]
    %of_x = hydra.mean %x axes = [0]
    %loss = hydra.let %of_weights + %of_x
    hydra.return loss = %loss
  }
}
