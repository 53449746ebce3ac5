// Random words, dropout and attention that drops: their text, and what is simplified.
// RUN: hydra-opt %s | hydra-opt | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize | FileCheck %s --check-prefix=BOUND
// RUN: not hydra-opt %s --hydra-bind="set=part=1.0" 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: hydra.dropout: drops a part of 1; expected at least 0 and less than 1
hydra.model @m version 1 {
  hydra.symbols reals(part = 0.25, off = 0.0)
  hydra.entry @e(%x: [2, 3] f32, %limit: [3] f32, %word: [] i32, %q: [1, 2, 1, 4] f32) {
    // CHECK: hydra.dropout %x p = part
    // BOUND: %[[A:.*]] = hydra.dropout %x p = 2.500000e-01 : tensor<2x3xf32>
    %a = hydra.dropout %x p = part
    // CHECK: hydra.dropout %{{.*}} p = off
    %b = hydra.dropout %a p = off
    // CHECK: hydra.dropout %{{.*}}, %{{.*}} p = 5.000000e-01
    // BOUND: hydra.dropout %[[A]], %{{.*}} p = 5.000000e-01 : tensor<2x3xf32>, tensor<2x3xi1>
    %c = hydra.compare %x, %limit is = "lt"
    %d = hydra.dropout %b, %c p = 0.5
    // CHECK: hydra.iota
    // CHECK-NEXT: hydra.random %word, %word, %{{.*}}, %word stream = 7
    // BOUND: hydra.random %{{.*}} stream = 7 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
    %i = hydra.iota shape = [4] axis = 0
    %r = hydra.random %word, %word, %i, %word stream = 7
    // CHECK: hydra.attention %q, %q, %q dropkey = off dropout = part scale = 1.000000e+00
    // BOUND: hydra.attention %q, %q, %q dropout = 2.500000e-01 scale = 1.000000e+00 :
    %o = hydra.attention %q, %q, %q scale = 1.0 dropout = part dropkey = off
    hydra.return d = %d, r = %r, o = %o
  }
}
