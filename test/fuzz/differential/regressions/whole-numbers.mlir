// Whole numbers wrap around beyond 32 bits, and are the nearest there is to a larger float.
// expects: right
// flags: --seed=3
hydra.model @hostile version 1 {
  hydra.param @p [2, 3] init = normal(1.0)
  hydra.entry @loss(%x: [2, 3] f32) {
    %many = hydra.constant value = 2000000000 dtype = i32
    %sum = hydra.let %many + %many
    %square = hydra.let %many * %many
    %whole = hydra.let cast(%x * 1.0e9, to = i32)
    %wrapped = hydra.let %whole * 5 - 7
    %last = hydra.let cast(%x * 1.0e20, to = i32)
    %none = hydra.let cast(0.0 / (%x * 0.0), to = i32)
    %loss = hydra.let sum(@p * sin(cast(%last, to = f32) * 1.0e-9), axes = [0, 1])
    hydra.return loss = %loss, sum = %sum, square = %square, whole = %whole, last = %last, none = %none
  }
}
