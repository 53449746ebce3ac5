// A regression whose loss is so small that its gradients are below the smallest number of f16.
hydra.model @faint version 1 {
  hydra.group @default sgd(momentum = 0.9)
  hydra.param @w [16, 16] init = normal(0.3)
  hydra.entry @loss(%x: [B, 16] f32, %y: [B, 16] f32) dims(B) {
    %w = hydra.use @w
    %h = hydra.linear %x, %w
    %t = hydra.tanh %h
    %p = hydra.linear %t, %w
    %d = hydra.sub %p, %y
    %s = hydra.mul %d, %d
    %m = hydra.mean %s axes = [0, 1]
    %factor = hydra.constant value = 1.0e-8
    %loss = hydra.mul %m, %factor
    hydra.return loss = %loss
  }
}
