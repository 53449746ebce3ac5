// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions=single | FileCheck %s --check-prefix=SINGLE

// A residual sum and the norm behind it are one kernel with two results.
// CHECK-LABEL: hydra.entry @norm
// CHECK: hydra.fused
// CHECK: hydra.add
// CHECK: hydra.rms_norm
// CHECK: hydra.yield
// CHECK-NOT: hydra.fused
// SINGLE-LABEL: hydra.entry @norm
// SINGLE: hydra.fused
// SINGLE: hydra.fused
hydra.model @norm_model version 1 {
  hydra.param @w [8] init = ones
  hydra.entry @norm(%x: [4, 8] f32, %a: [4, 8] f32) {
    %w = hydra.use @w
    %y = hydra.add %x, %a
    %n = hydra.rms_norm %y, %w eps = 1.0e-5
    hydra.return y = %y, n = %n
  }
}

// -----

// A matmul between two row-wise operations keeps them apart.
// CHECK-LABEL: hydra.entry @apart
// CHECK: hydra.fused
// CHECK: hydra.linear
// CHECK: hydra.fused
hydra.model @apart_model version 1 {
  hydra.param @w [8, 8] init = ones
  hydra.entry @apart(%x: [4, 8] f32) {
    %w = hydra.use @w
    %a = hydra.silu %x
    %b = hydra.linear %a, %w
    %c = hydra.add %a, %b
    hydra.return c = %c
  }
}

// -----

// Different domains do not join.
// CHECK-LABEL: hydra.entry @domains
// CHECK-COUNT-2: hydra.fused
hydra.model @domains_model version 1 {
  hydra.entry @domains(%x: [4, 8] f32, %z: [3, 5] f32) {
    %a = hydra.silu %x
    %b = hydra.silu %z
    hydra.return a = %a, b = %b
  }
}
