// A gradient that is the same for all rows is an operand twice on ranks: as a whole, and their rows of it. The history of
// delayed scales has a row more than on one rank.
// flags: --seed=990082 --batch=4 --seq=1
// expects: right
hydra.model @hostile version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @table [1, 64] init = normal(1.0)
  hydra.param @w [64, 64] init = normal(1.0)
  hydra.entry @loss(%ids: [B, S] i32) dims(B, S) {
    %y = hydra.let linear(embedding(%ids, @table), @w)
    %loss = hydra.sum %y axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
