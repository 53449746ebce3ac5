// The logarithm of a negative number among others, from either side of each operation.
hydra.model @m version 1 {
  hydra.group @default sgd()
  hydra.param @w [3] init = ones
  hydra.entry @loss(%x: [3] f32) {
    %y = hydra.let @w * log(%x)
    %pool = hydra.reduce_max %y axes = [0]
    %relu = hydra.let sum(max(0.0, %y), axes = [0])
    %other = hydra.let sum(max(%y, 0.0), axes = [0])
    %low = hydra.let sum(min(1.0, %y), axes = [0])
    %loss = hydra.let %pool + %relu + %other + %low
    hydra.return loss = %loss, pool = %pool, relu = %relu, other = %other, low = %low
  }
}
