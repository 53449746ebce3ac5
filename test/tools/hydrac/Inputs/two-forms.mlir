// Two choices; a word that is no form of `depth` has no shape.
hydra.model @two_forms version 1 {
  hydra.symbols dims(D = 64, V = 11) choices(form = twice of (twice, once, auto), depth = shallow of (shallow, deep, auto))
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [D, D] init = normal(0.25)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %y = hydra.let when(form == once, linear(%x, @w), linear(%x * 0.5, @w) + linear(%x, @w) * 0.5)
    %z = hydra.let when(depth == shallow, %y, when(depth == deep, linear(%y, @w), reshape(%y, [D])))
    %loss = hydra.let linear_cross_entropy(%z, @e, %labels)
    hydra.return loss = %loss
  }
}
