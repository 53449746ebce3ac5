// What is multiplied is a mean over the batch: as a whole in the forward pass, and by parts in the weight gradient, so that the
// history of delayed scales has a row more than on one rank.
// flags: --seed=5100796 --batch=4 --seq=1
// expects: right
hydra.model @random version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @scale [64] init = normal(1.0)
  hydra.param @w [64, 64] init = normal(1.0)
  hydra.entry @loss(%noise: [B, S, 64] f32) dims(B, S) {
    %n = hydra.let rms_norm(%noise, @scale, eps = 0.05)
    %all = hydra.mean %noise axes = [-3] keep
    %y = hydra.let linear(%all, @w) + mean(%n, axes = [0, 1, 2])
    %loss = hydra.let mean(%y, axes = [0, 1, 2]) + mean(%all, axes = [0, 1, 2])
    hydra.return loss = %loss
  }
}
