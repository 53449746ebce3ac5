// A small transformer whose programs can be made wrong by a choice that their safe forms do not make.
hydra.model @guarded version 1 {
  hydra.symbols dims(D, H, V) flags(louder = false, steeper = false, spoils = false, jumps = false)
  hydra.derive hd = D / H
  hydra.preset @tiny {D = 32, H = 2, V = 256}

  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @table [V, D] init = normal(0.5)
  hydra.param @wq [D, D] init = normal(0.2)
  hydra.param @wk [D, D] init = normal(0.2)
  hydra.param @wv [D, D] init = normal(0.2)
  hydra.param @gain [D] init = ones
  hydra.state @mean_loss [] init = zeros

  hydra.def @hidden(%tokens) {
    %x = hydra.let embedding(%tokens, @table)
    %n = hydra.let rms_norm(%x, @gain, eps = 1.0e-5)
    %q, %k, %v = hydra.let reshape(linear(%n, @wq), [B, S, H, hd]), reshape(linear(%n, @wk), [B, S, H, hd]),
                           reshape(linear(%n, @wv), [B, S, H, hd])
    %y = hydra.let %x + reshape(attention(%q, %k, %v, scale = 1 / sqrt(hd), causal), [B, S, D])
    hydra.yield %y
  }

  // `louder`: the loss is a tenth more. `steeper`: it is the same, and its gradient is a tenth more. With `spoils`
  // it is not finite where `poison` is 1; with `jumps` it is five times as much then.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32, %poison: [] f32 = 0.0) dims(B, S) {
    %right = hydra.let linear_cross_entropy(@hidden(%tokens), @table, %labels)
    %loud = hydra.let when(louder, %right * 1.1, %right)
    %steep = hydra.let when(steeper, %loud * 1.1 - detach(%loud) * 0.1, %loud)
    %bad = hydra.let when(spoils, %steep / (1.0 - %poison), %steep)
    %loss = hydra.let when(jumps, %bad * (1.0 + 4.0 * %poison), %bad)
    %mean = hydra.let @mean_loss * 0.9 + %right * 0.1
    hydra.return loss = %loss updates(@mean_loss = %mean)
  }

  hydra.entry @eval(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(@hidden(%tokens), @table, %labels)
    hydra.return loss = %loss
  }

  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@hidden(%tokens), @table)
    hydra.return logits = %logits
  }
}
