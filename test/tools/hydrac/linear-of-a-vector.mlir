// A linear layer on a vector is a matmul of one row.
// RUN: hydrac %s --mode=grad -o %t.fb
// RUN: hydra-run %t.fb --seed 3 --outputs %t.out
// RUN: hydra-interpret %s --mode=grad --seed 3 --outputs %t.ref
// RUN: compare-tensors %t.out %t.ref 1e-6
hydra.model @vector version 1 {
  hydra.param @x [7] init = normal(1.0)
  hydra.param @w [5, 7] init = normal(0.5)
  hydra.param @b [5] init = normal(0.5)
  hydra.entry @loss() {
    %x = hydra.use @x
    %w = hydra.use @w
    %b = hydra.use @b
    %y = hydra.linear %x, %w, %b
    %s = hydra.mul %y, %y
    %loss = hydra.mean %s axes = [0]
    hydra.return loss = %loss
  }
}
