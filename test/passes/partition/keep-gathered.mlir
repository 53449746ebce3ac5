// RUN: hydra-opt %s --hydra-keep-gathered | FileCheck %s

// What is gathered of a unit, or of its rounded rows, is a state; who updates the unit gathers it anew. Rounded rows
// that nothing else reads are gone.
hydra.model @m version 1 mesh <["gpu"], [2]> bound {} {
  // CHECK: hydra.param @unit.w [2, 1024]
  // CHECK-NEXT: hydra.state @unit.w.bf16.whole [4, 1024] bf16 init = zeros of @unit.w as copy
  hydra.param @unit.w [2, 1024] init = zeros unit = #hydra.unit<"gpu", 2, [<"w", [64, 64], 0, <normal(1.0)>>]>
  hydra.state @unit.w.bf16 [2, 1024] bf16 init = zeros of @unit.w as copy

  // CHECK-LABEL: hydra.entry @eval
  // CHECK-NEXT: %[[W:.*]] = hydra.use @unit.w.bf16.whole : tensor<4x1024xbf16>
  // CHECK-NEXT: hydra.return y = %[[W]]
  hydra.entry @eval() {
    %r = hydra.use @unit.w.bf16 : tensor<2x1024xbf16>
    %w = hydra.all_gather %r axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<2x1024xbf16>
    hydra.return y = %w : tensor<4x1024xbf16>
  }
  // CHECK-LABEL: hydra.entry @train
  // CHECK: %[[NEW:.*]] = hydra.add
  // CHECK: %[[LOW:.*]] = hydra.cast %[[NEW]] to = bf16
  // CHECK: %[[WHOLE:.*]] = hydra.all_gather %[[LOW]] axis = 0 number = 1 over = "gpu" ranks = 2
  // CHECK: hydra.return updates(@unit.w = %[[NEW]], @unit.w.bf16.whole = %[[WHOLE]])
  hydra.entry @train() {
    %u = hydra.use @unit.w : tensor<2x1024xf32>
    %n = hydra.add %u, %u : tensor<2x1024xf32>, tensor<2x1024xf32>
    %c = hydra.cast %n to = bf16 : tensor<2x1024xf32>
    hydra.return updates(@unit.w = %n, @unit.w.bf16 = %c) : tensor<2x1024xf32>, tensor<2x1024xbf16>
  }
}
