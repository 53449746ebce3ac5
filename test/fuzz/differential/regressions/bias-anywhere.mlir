// flags: --seed=20347
// expects: right
// A library may be given only what lies where it can read it: a bias that is a slice begins anywhere.
hydra.model @low version 1 {
  hydra.param @w [16, 8] init = normal(1.0)
  hydra.param @v [3, 16] init = normal(1.0)
  hydra.entry @loss(%x: [17] f32, %y: [5, 8] f32, %z: [5, 3] f32) {
    %w = hydra.use @w
    %v = hydra.use @v
    %b = hydra.slice %x axis = 0 start = 1 size = 16
    %h = hydra.linear %y, %w, %b
    %g = hydra.gelu %h
    %o = hydra.linear %g, %v
    %p = hydra.mul %o, %z
    %loss = hydra.sum %p axes = [0, 1]
    hydra.return loss = %loss
  }
}
