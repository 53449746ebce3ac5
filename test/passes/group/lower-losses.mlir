// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-lower-losses | FileCheck %s

// Cross entropy becomes a log-sum-exp and a loss per row, and one division by the rows that count.
// CHECK-LABEL: hydra.entry @loss
// CHECK-NOT: hydra.cross_entropy
// CHECK: hydra.reduce_max
// CHECK: hydra.exp
// CHECK: hydra.log
// CHECK: hydra.return loss =
hydra.model @m version 1 {
  hydra.entry @loss(%z: [6, 11] f32, %labels: [6] i32) {
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
}

// -----

// The global norm becomes a sum of squares for every tensor and one square root.
// CHECK-LABEL: hydra.entry @norm
// CHECK-NOT: hydra.global_norm
// CHECK-COUNT-2: hydra.mul
// CHECK: hydra.sqrt
hydra.model @m version 1 {
  hydra.entry @norm(%a: [6, 11] f32, %b: [5] f32) {
    %n = hydra.global_norm %a, %b
    hydra.return n = %n
  }
}
