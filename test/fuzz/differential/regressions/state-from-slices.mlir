// flags: --seed=207349
// expects: right
// Parts of a concatenation are written as they are made: it may take the place of a variable only when all
// reads of that come before the first of them.
hydra.model @hostile version 1 {
  hydra.state @state1 [1, 2] init = constant(0.5)
  hydra.param @p2 [1, 2] init = normal(1.0)
  hydra.param @r0 [] init = normal(1.0)
  hydra.entry @loss() {
    %state1 = hydra.use @state1
    %p2 = hydra.use @p2
    %v10 = hydra.scan axis = 1 chunk = 1 over(%c6 = %state1, %c7 = %p2) {
      hydra.yield %c6
    }
    %r0 = hydra.use @r0
    hydra.return loss = %r0 updates(@state1 = %v10)
  }
}
