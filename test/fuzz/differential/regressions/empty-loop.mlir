// A loop whose body only hands on what it is given has no steps, and is none.
hydra.model @hostile version 1 {
  hydra.param @p0 [1, 1] init = ones
  hydra.entry @loss(%x3: [1, 8] f32, %x4: [1, 1] f32, %x7: [8] f32, %x8: [8] f32) {
    %p0 = hydra.use @p0
    %v60 = hydra.scan axis = 1 chunk = 1 over(%c5 = %x3) carry(%s6 = %x4) {
      %v22, %v27 = hydra.scan axis = 0 chunk = 1 over(%c9 = %x7) carry(%s12 = %x4) {
        hydra.yield %x7, %x4
      }
      %v55 = hydra.scan axis = 0 chunk = 1 over(%c29 = %s6) {
        %v46, %v47 = hydra.scan axis = 0 chunk = 1 over(%c34 = %c29) {
          hydra.yield %p0, %v22
        }
        hydra.yield %v47
      }
      hydra.yield %v27
    }
    %v61 = hydra.mean %v60 axes = [0, 1]
    hydra.return loss = %v61
  }
}
