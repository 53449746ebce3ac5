// A bigram model whose parameters have different optimizers, with labels that a batch has more or less of, and state.
hydra.model @small version 1 {
  hydra.symbols dims(D, V) reals(mass = 0.9)
  hydra.preset @tiny {D = 16, V = 256}

  hydra.group @default sgd(momentum = mass, wd = 0.01)
  hydra.group @ahead   sgd(momentum = 0.8, lr_scale = 0.5, nesterov = true)
  hydra.group @plain   sgd(lr_scale = 2.0)
  hydra.group @adaptive adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)

  hydra.param @table [V, D] init = normal(0.5)
  hydra.param @up    [D, D] init = normal(0.3) group = @ahead
  hydra.param @gain  [D]    init = ones group = @plain
  hydra.param @head  [V, D] init = normal(0.3) group = @adaptive
  hydra.state @mean_loss [] init = zeros

  hydra.def @hidden(%tokens) {
    %table = hydra.use @table
    %up = hydra.use @up
    %gain = hydra.use @gain
    %x = hydra.embedding %tokens, %table
    %n = hydra.rms_norm %x, %gain eps = 1.0e-5
    %h = hydra.linear %n, %up
    %a = hydra.silu %h
    %y = hydra.add %x, %a
    hydra.yield %y
  }

  // Letters from n on do not count in the first part. `spike` makes gradients infinite.
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32, %spike: [] f32 = 0.0) dims(B, S) {
    %y = hydra.call @hidden(%tokens)
    %head = hydra.use @head
    %n = hydra.constant value = 110 dtype = i32
    %ignored = hydra.constant value = -100 dtype = i32
    %late = hydra.compare %labels, %n is = "ge"
    %early = hydra.select %late, %ignored, %labels
    %part = hydra.linear_cross_entropy %y, %head, %early
    %logits = hydra.linear %y, %head
    %all = hydra.cross_entropy %logits, %labels
    %tenth = hydra.constant value = 0.1
    %small = hydra.mul %tenth, %all
    %sum = hydra.add %part, %small
    %square = hydra.mul %y, %y
    %size = hydra.mean %square axes = [0, 1, 2]
    %hundredth = hydra.constant value = 0.01
    %bound = hydra.mul %hundredth, %size
    %base = hydra.add %sum, %bound
    %far = hydra.mul %spike, %spike
    %peak = hydra.mul %far, %size
    %loss = hydra.add %base, %peak
    %before = hydra.use @mean_loss
    %kept = hydra.constant value = 0.9
    %share = hydra.constant value = 0.1
    %old = hydra.mul %kept, %before
    %new = hydra.mul %share, %loss
    %after = hydra.add %old, %new
    hydra.return loss = %loss updates(@mean_loss = %after)
  }

  hydra.entry @eval(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %y = hydra.call @hidden(%tokens)
    %head = hydra.use @head
    %logits = hydra.linear %y, %head
    %loss = hydra.cross_entropy %logits, %labels
    hydra.return loss = %loss
  }
}
