// One transform, as long as asked for.
hydra.model @m version 1 {
  hydra.symbols dims(N)
  hydra.entry @y(%x: [1, N] f32) {
    %y = hydra.rfft %x
    hydra.return y = %y
  }
}
