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

// -----

// Channels times a number of their group: in rows of all channels that number would have to be written for every channel
// first; what needs it reads it as a view where it is apart.
// CHECK-LABEL: hydra.entry @of_groups
// CHECK: %[[SCALED:.*]] = hydra.fused rows = [1024] inner = [96]
// CHECK: %[[GROUPS:.*]] = hydra.reshape %[[SCALED]] shape = [1024, 8, 12]
// CHECK: %[[NUMBERS:.*]] = hydra.broadcast %r shape = [1024, 8, 12]
// CHECK: hydra.fused rows = [1024] inner = [8, 12] (%{{.*}} = %[[GROUPS]], %{{.*}} = %[[NUMBERS]])
// SINGLE-LABEL: hydra.entry @of_groups
hydra.model @of_groups_model version 1 {
  hydra.entry @of_groups(%x: [1024, 96] f32, %w: [96] f32, %r: [1024, 8, 1] f32) {
    %ws = hydra.broadcast %w shape = [1024, 96]
    %s = hydra.mul %x, %ws
    %g = hydra.reshape %s shape = [1024, 8, 12]
    %rs = hydra.broadcast %r shape = [1024, 8, 12]
    %y = hydra.mul %g, %rs
    hydra.return y = %y, s = %s
  }
}

// -----

// Of a few kilobytes that costs less than another kernel.
// CHECK-LABEL: hydra.entry @of_few
// CHECK: hydra.fused rows = [64] inner = [96]
// CHECK-NOT: hydra.fused
// CHECK: hydra.return
// SINGLE-LABEL: hydra.entry @of_few
hydra.model @of_few_model version 1 {
  hydra.entry @of_few(%x: [64, 96] f32, %w: [96] f32, %r: [64, 8, 1] f32) {
    %ws = hydra.broadcast %w shape = [64, 96]
    %s = hydra.mul %x, %ws
    %g = hydra.reshape %s shape = [64, 8, 12]
    %rs = hydra.broadcast %r shape = [64, 8, 12]
    %y = hydra.mul %g, %rs
    hydra.return y = %y, s = %s
  }
}
