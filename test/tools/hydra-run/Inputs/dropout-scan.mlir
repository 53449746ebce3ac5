// A recurrence that drops a part of what it reads, in a loop over the tokens.
hydra.model @recurrence version 1 {
  hydra.symbols dims(D, V)
  hydra.preset @tiny {D = 16, V = 256}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @table [V, D] init = normal(0.5)
  hydra.param @head  [V, D] init = normal(0.3)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @table)
    %zero = hydra.constant value = 0.0 shape = [B, D]
    %y, %end = hydra.scan axis = 1 chunk = 1 over(%t = %x) carry(%h = %zero) {
      %next = hydra.let tanh(%h * 0.5 + dropout(reshape(%t, [B, D]), p = 0.25))
      %out = hydra.let reshape(%next, [B, 1, D])
      hydra.yield %out, %next
    }
    %loss = hydra.let linear_cross_entropy(%y, @head, %labels)
    hydra.return loss = %loss
  }
}
