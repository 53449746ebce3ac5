// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers | FileCheck %s
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
// LOC: #hydra.scope<"layers.0", "forward">
// LOC: #hydra.scope<"layers.2", "forward">
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
