// Gradients that say which elements are kept: 0 or 1 / (2^20 (1 - p)).
hydra.model @kept version 1 {
  hydra.param @w [1024, 1024] init = ones
  hydra.param @v [1024, 1024] init = ones
  hydra.entry @loss(%x: [2] f32) {
    %y = hydra.let dropout(@w, p = 0.3) + dropout(@v, p = 0.5)
    %of_kept = hydra.mean %y axes = [0, 1]
    %of_x = hydra.mean %x axes = [0]
    %loss = hydra.let %of_kept + %of_x
    hydra.return loss = %loss
  }
}
