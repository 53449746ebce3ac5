// A matmul of few rows is the same sums whether the other operand is a view or a copy of it: how it
// is computed goes by shapes, not by where operands lie.
// expects: right
hydra.model @m version 1 {
  hydra.param @p [33, 40] init = normal(1.0)
  hydra.param @w [1, 33] init = normal(1.0)
  hydra.entry @loss(%g: [40, 1] f32) {
    %p = hydra.use @p
    %w = hydra.use @w
    %q = hydra.transpose %p order = [1, 0]
    %y = hydra.linear %q, %w
    %z = hydra.mul %y, %g
    %loss = hydra.sum %z axes = [0, 1]
    hydra.return loss = %loss
  }
}
