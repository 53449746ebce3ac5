// One function in two orders: the weight that is multiplied first is another.
hydra.model @m version 1 {
  hydra.symbols flags(first = false)
  hydra.group @default sgd()
  hydra.param @e [11, 16] init = normal(1.0)
  hydra.param @a [16, 16] init = normal(0.3)
  hydra.param @b [16, 16] init = normal(0.3)
  hydra.param @h [11, 16] init = normal(0.3)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %small = hydra.let %x * 1.0e-4
    %p, %q = hydra.when first {
      %u = hydra.let linear(%x, @a)
      %v = hydra.let linear(%small, @b)
      hydra.yield %u, %v
    } else {
      %v = hydra.let linear(%small, @b)
      %u = hydra.let linear(%x, @a)
      hydra.yield %u, %v
    }
    %loss = hydra.let linear_cross_entropy(%p + %q * 1.0e4, @h, %labels)
    hydra.return loss = %loss
  }
}
