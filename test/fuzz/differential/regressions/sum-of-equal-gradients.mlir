// flags: --seed=11010715
// expects: right
// A row of a table gets 512 equal gradients: their exact sum is a float, and the sum of rounded partial sums is not it.
hydra.model @hostile version 1 {
  hydra.param @p2 [1, 1] init = uniform(0.3)
  hydra.entry @loss(%x1: [16, 32] i32) {
    %p2 = hydra.use @p2
    %v3 = hydra.embedding %x1, %p2
    %v23 = hydra.sum %v3 axes = [2, 1, 0]
    %v24 = hydra.constant value = 0.002
    %v25 = hydra.mul %v23, %v24
    hydra.return loss = %v25
  }
}
