// An input of whole numbers whose range nothing tells.
hydra.model @whole_numbers version 1 {
  hydra.entry @loss(%n: [3] i32) {
    %x = hydra.cast %n to = f32
    %loss = hydra.mean %x axes = [0]
    hydra.return loss = %loss
  }
}
