// The derivative of this loop gives zeros and reads nothing: there is no operand whose format says what it multiplies in.
hydra.model @hostile version 1 {
  hydra.param @p0 [1, 1, 1, 8] init = normal(1.0)
  hydra.entry @loss(%x3: [1, 1, 1] f32, %x4: [1] f32) {
    %p0 = hydra.use @p0
    %b11 = hydra.bundle f0 = %x3, f1 = %x3, f2 = %x4
    %b24 = hydra.scan axis = 3 chunk = 1 over(%c7 = %p0) carry(%b12 = %b11) {
      %s8 = hydra.field %b12 name = "f0"
      %s9 = hydra.field %b12 name = "f1"
      %b23 = hydra.bundle f0 = %s8, f1 = %s9, f2 = %x4
      hydra.yield %b23
    }
    %v17 = hydra.field %b24 name = "f1"
    %loss0 = hydra.sum %v17 axes = [0, 1, 2]
    hydra.return loss = %loss0
  }
}
