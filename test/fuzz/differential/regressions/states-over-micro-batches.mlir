// State of the model over micro-batches: swapped, given on, reshaped, and read as it was and as it becomes.
hydra.model @m version 1 {
  hydra.symbols dims(D = 16, V = 11)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [D, D] init = normal(0.25)
  hydra.state @a [D] init = ones
  hydra.state @b [D] init = constant(2.0)
  hydra.state @c [D] init = constant(3.0)
  hydra.state @d [D, 1] init = constant(4.0)
  hydra.entry @loss(%tokens: [2, 8] i32, %labels: [2, 8] i32) {
    %x = hydra.let embedding(%tokens, @e)
    %a = hydra.use @a
    %b = hydra.use @b
    %c = hydra.use @c
    %d = hydra.use @d
    %y = hydra.let linear(%x, @w) * %a + %b
    %mean = hydra.mean %y axes = [0, 1]
    %md = hydra.let detach(%mean)
    %na = hydra.let %a * 0.9 + %md * 0.1
    %dd = hydra.reshape %na shape = [D, 1]
    %loss0 = hydra.let linear_cross_entropy(%y * %c, @e, %labels)
    %dv = hydra.let reshape(%d, [D])
    %loss = hydra.let reshape(sum(%dv * %mean, 0), []) * 0.01 + %loss0
    %nb = hydra.let %b + %a
    hydra.return loss = %loss, nb = %nb, olda = %a, newa = %na updates(@a = %na, @b = %c, @c = %b, @d = %dd)
  }
  hydra.entry @eval(%tokens: [2, 8] i32, %labels: [2, 8] i32) {
    %x = hydra.let embedding(%tokens, @e)
    %a = hydra.use @a
    %b = hydra.use @b
    %c = hydra.use @c
    %d = hydra.use @d
    %y = hydra.let linear(%x, @w) * %a + %b
    %mean = hydra.mean %y axes = [0, 1]
    %md = hydra.let detach(%mean)
    %na = hydra.let %a * 0.9 + %md * 0.1
    %dd = hydra.reshape %na shape = [D, 1]
    %loss0 = hydra.let linear_cross_entropy(%y * %c, @e, %labels)
    %dv = hydra.let reshape(%d, [D])
    %loss = hydra.let reshape(sum(%dv * %mean, 0), []) * 0.01 + %loss0
    %nb = hydra.let %b + %a
    hydra.return loss = %loss
  }
}
