// A sum over rows of one number has as many results as the bias it updates, whatever form the
// number has in the group.
// flags: --batch=3 --seq=5
// expects: right
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.param @e [7, 8] init = normal(1.0)
  hydra.param @b [8] init = zeros
  hydra.entry @loss(%tokens: [B, S] i32) dims(B, S) {
    %e = hydra.use @e
    %b = hydra.use @b
    %x = hydra.embedding %tokens, %e
    %t = hydra.add %x, %b
    %loss = hydra.mean %t axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
