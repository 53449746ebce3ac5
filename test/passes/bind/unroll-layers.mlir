// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind | hydra-opt --split-input-file | FileCheck %s --check-prefix=BOUND
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Every element gets its own parameters and its own copy of the body; what depends on `layer` is
// resolved, and a parameter that only middle layers have exists only there.
// CHECK-LABEL: hydra.model @m
// CHECK: hydra.param @layers.0.w [4] init = constant(0.000000e+00)
// CHECK-NOT: @layers.0.mid
// CHECK: hydra.param @layers.1.w [4] init = constant(1.000000e+00)
// CHECK: hydra.param @layers.1.mid [4]
// CHECK: hydra.param @layers.2.w [4] init = constant(2.000000e+00)
// CHECK-NOT: hydra.stack
// CHECK: hydra.entry @y
// CHECK: hydra.use @layers.0.w
// CHECK: hydra.use @layers.1.w
// CHECK: hydra.use @layers.1.mid
// CHECK: hydra.use @layers.2.w
// CHECK-NOT: hydra.for
// The location of a copy names its element beside the line of the model.
// LOC: #hydra.scope<"layers.0.w", forward, param>
// LOC: #hydra.scope<"layers.2.w", forward, act.ffn>
hydra.model @m version 1 {
  hydra.stack @layers[3] {
    hydra.param @w [4] init = constant(real(layer))
    hydra.param @mid [4] init = ones when layer >= 1 and layer <= 1
  }
  hydra.entry @y(%x: [4] f32) {
    %y = hydra.for @layers carry(%h = %x) {
      %w = hydra.use @w
      %a = hydra.mul %h, %w
      %b = hydra.when layer == 1 {
        %mid = hydra.use @mid
        %c = hydra.add %a, %mid
        hydra.yield %c
      } else {
        hydra.yield %a
      }
      hydra.yield %b
    }
    hydra.return y = %y
  }
}

// -----

// A stack without loop is only expanded.
// CHECK-LABEL: hydra.model @table
// CHECK: hydra.param @layers.0.w
// CHECK: hydra.param @layers.1.w
hydra.model @table version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [4] init = ones
  }
}

// -----

// What elements have a row of each: rows of a sequence go in, what they make of them is joined.
// CHECK-LABEL: hydra.model @rows
// CHECK: hydra.entry @next(%before: tensor<2x3x4xf32>, %x: tensor<4xf32>)
// CHECK: %[[S0:.*]] = hydra.slice %before axis = 0 size = 1 start = 0
// CHECK: %[[B0:.*]] = hydra.reshape %[[S0]] shape = [3, 4] : tensor<1x3x4xf32>
// CHECK: %[[A0:.*]] = hydra.mul %[[B0]],
// CHECK: %[[R0:.*]] = hydra.reshape %[[A0]] shape = [1, 3, 4]
// CHECK: %[[S1:.*]] = hydra.slice %before axis = 0 size = 1 start = 1
// CHECK: %[[A1:.*]] = hydra.mul
// CHECK: %[[R1:.*]] = hydra.reshape %[[A1]] shape = [1, 3, 4]
// CHECK: %[[AFTER:.*]] = hydra.concat %[[R0]], %[[R1]] axis = 0
// CHECK: hydra.return y = %{{.*}}, after = %[[AFTER]]
// BOUND: hydra.for @layers over(%{{.*}} = %before) carry(%{{.*}} = %x) : tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3x4xf32> {
hydra.model @rows version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [4] init = ones
  }
  hydra.entry @next(%before: [2, 3, 4] f32, %x: [4] f32) {
    %after, %y = hydra.for @layers over(%b = %before) carry(%h = %x) {
      %w = hydra.use @w
      %a = hydra.mul %b, %w
      %sum = hydra.sum %a axes = [0]
      %next = hydra.add %h, %sum
      hydra.yield %a, %next
    }
    hydra.return y = %y, after = %after
  }
}
