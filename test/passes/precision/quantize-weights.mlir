// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-quantize-weights="keep=kept" --verify-diagnostics | FileCheck %s

// Weights of linear layers are integers with a scale for each row, joined or alone, and so is a table that is the head.
// Others stay: a table that is only looked up, a gain, what the program changes or returns, what is kept, and a weight
// whose columns are no multiple of 16.
// CHECK: hydra.param @g [16] init
// CHECK-NEXT: hydra.param @table [5, 16] init
// CHECK-NEXT: hydra.param @both [11, 16] i8 init = normal
// CHECK-NEXT: hydra.state @both.scale [11] init = zeros of @both as scale
// CHECK-NEXT: hydra.param @wq [16, 16] i8 init
// CHECK-NEXT: hydra.state @wq.scale [16]
// CHECK-NEXT: hydra.param @wk [16, 16] i8 init
// CHECK-NEXT: hydra.state @wk.scale [16]
// CHECK-NEXT: hydra.param @b [32] init
// CHECK-NEXT: hydra.param @shown [16, 16] init
// CHECK-NEXT: hydra.param @changed [16, 16] init
// CHECK-NEXT: hydra.param @kept [24, 16] init
// CHECK-NEXT: hydra.param @narrow [16, 24] init
// CHECK-LABEL: hydra.entry @run

// A table's rows are looked up as integers, with their scales.
// CHECK: %[[ROWS:.*]] = hydra.embedding %tokens, %[[BOTH:.*]] : tensor<1x4xi32>, tensor<11x16xi8>
// CHECK: %[[SCALES:.*]] = hydra.embedding %tokens, %{{.*}} : tensor<1x4xi32>, tensor<11x1xf32>
// CHECK: hydra.cast %[[ROWS]] to = f32
// CHECK: hydra.broadcast %[[SCALES]] shape = [1, 4, 16]
// CHECK: hydra.embedding %tokens, %table : tensor<1x4xi32>, tensor<5x16xf32>

// Few rows are multiplied by the integers; sums are scaled, get the bias and are rounded once.
// CHECK: %[[W:.*]] = hydra.concat {{.*}} axis = 0 : tensor<16x16xi8>, tensor<16x16xi8>
// CHECK: %[[SCALE:.*]] = hydra.concat {{.*}} axis = 0 : tensor<16xf32>, tensor<16xf32>
// CHECK: hydra.scaled_linear %{{.*}}, %[[W]], %[[SCALE]], %{{.*}} dtype = bf16 : tensor<1x4x16xbf16>, tensor<32x16xi8>, tensor<32xf32>, tensor<32xbf16>
// CHECK: hydra.scaled_linear %{{.*}}, %[[BOTH]], %{{.*}} dtype = f32 : tensor<1x4x16xbf16>, tensor<11x16xi8>, tensor<11xf32>

// More rows are multiplied by them widened.
// CHECK-LABEL: hydra.entry @many
// CHECK: %[[WIDE:.*]] = hydra.cast %{{.*}} to = bf16 : tensor<11x16xi8>
// CHECK: %[[SUMS:.*]] = hydra.linear %{{.*}}, %[[WIDE]] dtype = f32 : tensor<20x16xbf16>, tensor<11x16xbf16>
// CHECK: %[[OF:.*]] = hydra.broadcast %{{.*}} shape = [20, 11]
// CHECK: hydra.mul %[[SUMS]], %[[OF]]
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @g [16] init = ones
  hydra.param @table [5, 16] init = normal(0.02)
  hydra.param @both [11, 16] init = normal(0.02)
  hydra.param @wq [16, 16] init = normal(0.02)
  hydra.param @wk [16, 16] init = normal(0.02)
  hydra.param @b [32] init = zeros
  hydra.param @shown [16, 16] init = normal(0.02)
  hydra.param @changed [16, 16] init = normal(0.02)
  hydra.param @kept [24, 16] init = normal(0.02)
  hydra.param @narrow [16, 24] init = normal(0.02)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @run(%tokens: [1, 4] i32) {
    %x = hydra.let (embedding(%tokens, @both) + embedding(%tokens, @table)) * @g
    %w = hydra.let concat(@wq, @wk, axis = 0)
    %y = hydra.let slice(linear(%x, %w, @b), axis = 2, start = 4, size = 16)
    %z = hydra.let linear(linear(%y, @shown), @changed)
    %t = hydra.let linear(linear(%z, @kept), @narrow)
    %logits = hydra.let linear(%t, @both)
    %same = hydra.let @shown * 1.5
    %new = hydra.let @changed * 0.5
    hydra.return logits = %logits, shown = %same updates(@changed = %new)
  }
  hydra.entry @many(%x: [20, 16] f32) {
    %y = hydra.let linear(%x, @both)
    hydra.return y = %y
  }
}

// -----

// Where nothing can be held so, one line says it.
// expected-error@+1 {{has no weight to hold in int8: linear layers of parameters that nothing else reads, with a multiple of 16 inputs, and that --weight-keep does not name}}
hydra.model @none version 1 {
  hydra.param @kept [8, 16] init = normal(0.02)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @run(%x: [4, 16] f32) {
    %y = hydra.let linear(%x, @kept)
    hydra.return y = %y
  }
}
