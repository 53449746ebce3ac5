// RUN: hydra-opt %s --hydra-bind --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-hold-rounded | FileCheck %s

// What matmuls read rounded is held so, joined or alone. So is a table that is the head, of which rows are widened;
// not one that is only a table, a gain, and what the program changes or returns.
// CHECK: hydra.param @g [8] init
// CHECK-NEXT: hydra.param @table [5, 8] init
// CHECK-NEXT: hydra.param @both [11, 8] bf16 init
// CHECK-NEXT: hydra.param @wq [8, 8] bf16 init
// CHECK-NEXT: hydra.param @wk [8, 8] bf16 init
// CHECK-NEXT: hydra.param @shown [8, 8] init
// CHECK-NEXT: hydra.param @changed [8, 8] init
// CHECK-LABEL: hydra.entry @run
// CHECK: %[[ROWS:.*]] = hydra.embedding %tokens, %both : tensor<1x4xi32>, tensor<11x8xbf16>
// CHECK-NEXT: hydra.cast %[[ROWS]] to = f32
// CHECK: hydra.embedding %tokens, %table : tensor<1x4xi32>, tensor<5x8xf32>
// CHECK: %[[W:.*]] = hydra.concat %wq, %wk axis = 0 : tensor<8x8xbf16>, tensor<8x8xbf16>
// CHECK-NEXT: hydra.linear %{{.*}}, %[[W]]
// CHECK: hydra.cast %shown to = bf16
// CHECK: hydra.cast %changed to = bf16
// CHECK: hydra.linear %{{.*}}, %both dtype = f32 : {{.*}}, tensor<11x8xbf16>

// A parameter that is joined with itself is one value, read twice.
// CHECK-LABEL: hydra.entry @twice
// CHECK: %[[TWICE:.*]] = hydra.concat %wq, %wq axis = 0 : tensor<8x8xbf16>, tensor<8x8xbf16>
// CHECK-NEXT: %[[BOTH:.*]] = hydra.linear %{{.*}}, %[[TWICE]]
// CHECK: hydra.return both = %[[BOTH]]
hydra.model @m version 1 {
  hydra.param @g [8] init = ones
  hydra.param @table [5, 8] init = normal(0.02)
  hydra.param @both [11, 8] init = normal(0.02)
  hydra.param @wq [8, 8] init = normal(0.02)
  hydra.param @wk [8, 8] init = normal(0.02)
  hydra.param @shown [8, 8] init = normal(0.02)
  hydra.param @changed [8, 8] init = normal(0.02)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @run(%tokens: [1, 4] i32) {
    %x = hydra.let (embedding(%tokens, @both) + embedding(%tokens, @table)) * @g
    %w = hydra.let concat(@wq, @wk, axis = 0)
    %y = hydra.let slice(linear(%x, %w), axis = 2, start = 4, size = 8)
    %z = hydra.let linear(linear(%y, @shown), @changed)
    %logits = hydra.let linear(%z, @both)
    %same = hydra.let @shown * 1.5
    %new = hydra.let @changed * 0.5
    hydra.return logits = %logits, shown = %same updates(@changed = %new)
  }
  hydra.entry @twice(%tokens: [1, 4] i32) {
    %both = hydra.let linear(embedding(%tokens, @both), concat(@wq, @wq, axis = 0))
    hydra.return both = %both
  }
}
