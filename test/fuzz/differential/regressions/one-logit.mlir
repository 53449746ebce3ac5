// flags: --seed=7
// expects: right
// Logits that were reshaped from a number of rank 0 are no projection.
hydra.model @one version 1 {
  hydra.param @p [] init = normal(1.0)
  hydra.entry @loss() {
    %p = hydra.use @p
    %x = hydra.reshape %p shape = [1]
    %c = hydra.constant value = 0 dtype = i32
    %loss = hydra.cross_entropy %x, %c
    hydra.return loss = %loss
  }
}
