// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-decompose-attention | FileCheck %s

// Query heads that share a key head are rows of one matmul.
// CHECK-LABEL: hydra.entry @causal
// CHECK-NOT: hydra.attention
// CHECK: %[[Z:.*]] = hydra.matmul {{.*}} transpose_b : tensor<2x2x10x4xf32>, tensor<2x2x5x4xf32>
// CHECK: hydra.compare {{.*}} is = "le" : tensor<2x4x5x5xi32>, tensor<2x4x5x5xi32>
// CHECK: hydra.select
// CHECK: hydra.softmax {{.*}} : tensor<2x4x5x5xf32>
// CHECK: hydra.matmul {{.*}} : tensor<2x2x10x5xf32>, tensor<2x2x5x4xf32>
// CHECK: hydra.transpose {{.*}} order = [0, 2, 1, 3]
hydra.model @m version 1 {
  hydra.entry @causal(%q: [2, 5, 4, 4] f32, %k: [2, 5, 2, 4] f32, %v: [2, 5, 2, 4] f32) {
    %o = hydra.attention %q, %k, %v scale = 0.25 causal
    hydra.return o = %o
  }
}

// -----

// One selection for each part of the mask; none without a mask.
// CHECK-LABEL: hydra.entry @masks
// CHECK-COUNT-3: hydra.select
// CHECK-NOT: hydra.select
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @masks(%q: [1, 10, 1, 4] f32) {
    %a = hydra.attention %q, %q, %q scale = 0.5 causal chunk = 4 window = 2
    %b = hydra.attention %q, %q, %q scale = 0.5
    hydra.return a = %a, b = %b
  }
}

// -----

// Chunks and windows as long as the sequence hide nothing, whatever their size.
// CHECK-LABEL: hydra.entry @long
// CHECK-COUNT-1: hydra.select
// CHECK-NOT: hydra.select
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @long(%q: [1, 10, 1, 4] f32) {
    %a = hydra.attention %q, %q, %q scale = 0.5 causal chunk = 9223372036854775807 window = 9223372036854775807
    hydra.return a = %a
  }
}

// -----

// A cap stands between the scale and the mask: 4 tanh((1/2 / 4) q k).
// CHECK-LABEL: hydra.entry @capped
// CHECK: %[[INNER:.*]] = hydra.constant {{.*}}value = 1.250000e-01
// CHECK: %[[SCALED:.*]] = hydra.mul %{{.*}}, %[[INNER]]
// CHECK: %[[TANH:.*]] = hydra.tanh %[[SCALED]]
// CHECK: %[[CAP:.*]] = hydra.constant {{.*}}value = 4.000000e+00
// CHECK: %[[CAPPED:.*]] = hydra.mul %[[TANH]], %[[CAP]]
// CHECK: hydra.select %{{.*}}, %[[CAPPED]], %{{.*}}
hydra.model @m version 1 {
  hydra.entry @capped(%q: [1, 10, 1, 4] f32) {
    %a = hydra.attention %q, %q, %q scale = 0.5 cap = 4.0 causal
    hydra.return a = %a
  }
}
