// Counts of exponents, of tensors in every format, whole and multiplied by a factor: numbers that end within 16 bytes,
// of several blocks and of one.
hydra.model @counting version 1 {
  hydra.symbols dims(D = 97)
  hydra.param @w [D] init = normal(1.0)
  hydra.entry @loss(%x: [B, S, D] f32) dims(B, S) {
    %w = hydra.use @w
    %loss = hydra.let mean((%x * %w) * (%x * %w), axes = [0, 1, 2])
    %rounded = hydra.cast %x to = bf16
    %half = hydra.cast %x to = f16
    %factor = hydra.constant value = 1024.0
    %whole = hydra.count_exponents %x first = -20 count = 32
    %times = hydra.count_exponents %factor, %rounded, %half, %x, %w scaled first = -126 count = 254
    hydra.return loss = %loss, whole = %whole, times = %times
  }
}
