// Ids that keep their range through all that moves them.
hydra.model @moved version 1 {
  hydra.symbols dims(V = 256, D = 8)
  hydra.group @default sgd()
  hydra.param @table [V, D] init = normal(0.5)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %zero = hydra.constant value = 0 shape = [B, D]
    %before = hydra.let slice(pad(%tokens, axis = 1, before = 1, after = 0), axis = 1, start = 0, size = S)
    %all, %end = hydra.scan axis = 1 chunk = 1 over(%t = %before) carry(%h = %zero) {
      %n = hydra.let %h * 0.5 + reshape(embedding(%t, @table), [B, D])
      %o = hydra.let reshape(%n, [B, 1, D])
      hydra.yield %o, %n
    }
    %l = hydra.let cross_entropy(linear(%all, @table), %labels)
    hydra.return loss = %l
  }
}
