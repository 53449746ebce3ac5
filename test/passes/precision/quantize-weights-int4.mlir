// RUN: hydra-opt %s --hydra-bind --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-quantize-weights="bits=4" | FileCheck %s
// RUN: not hydra-opt %s --hydra-bind --hydra-quantize-weights="bits=5" 2>&1 | FileCheck %s --check-prefix=BITS

// Weights of linear layers are integers of 4 bits, two in a byte, with a scale for each 32 neighbours in a row. What has
// no whole groups stays.
// CHECK: hydra.param @both [11, 32] i4 init = normal
// CHECK-NEXT: hydra.state @both.scale [11, 1] bf16 init = zeros of @both as scale
// CHECK-NEXT: hydra.param @wq [16, 64] i4 init
// CHECK-NEXT: hydra.state @wq.scale [16, 2] bf16
// CHECK-NEXT: hydra.param @wk [16, 64] i4 init
// CHECK-NEXT: hydra.state @wk.scale [16, 2] bf16
// CHECK-NEXT: hydra.param @narrow [64, 48] init
// CHECK-LABEL: hydra.entry @run

// A table's rows are looked up as bytes, with the scales of their groups, and unpacked.
// CHECK: hydra.embedding %tokens, %both : tensor<1x4xi32>, tensor<11x16xi8>
// CHECK: hydra.embedding %tokens, %both.scale : tensor<1x4xi32>, tensor<11x1xbf16>
// CHECK: hydra.cast %{{.*}} to = i32 : tensor<1x4x1x2x16xf32>
// CHECK: hydra.iota axis = 3 dtype = f32 shape = [1, 4, 1, 2, 16]
// CHECK: hydra.reshape %{{.*}} shape = [1, 4, 32] : tensor<1x4x1x2x16xf32>

// Few rows are multiplied by the bytes, joined where weights are.
// CHECK: %[[W:.*]] = hydra.concat {{.*}} axis = 0 : tensor<16x32xi8>, tensor<16x32xi8>
// CHECK: %[[SCALE:.*]] = hydra.concat {{.*}} axis = 0 : tensor<16x2xbf16>, tensor<16x2xbf16>
// CHECK: hydra.scaled_linear %{{.*}}, %[[W]], %[[SCALE]] dtype = bf16 : tensor<1x4x64xbf16>, tensor<32x32xi8>, tensor<32x2xbf16>
// CHECK: hydra.scaled_linear %{{.*}}, %both, %both.scale dtype = f32 : tensor<1x4x32xbf16>, tensor<11x16xi8>, tensor<11x1xbf16>

// More rows by the numbers.
// CHECK-LABEL: hydra.entry @many
// CHECK: hydra.cast %{{.*}} to = i32
// CHECK: %[[WIDE:.*]] = hydra.reshape %{{.*}} shape = [11, 32] : tensor<11x1x2x16xbf16>
// CHECK: hydra.linear %{{.*}}, %[[WIDE]]{{.*}} : tensor<20x32xbf16>, tensor<11x32xbf16>

// BITS: is to have weights of 5 bits; expected 8 or 4
hydra.model @m version 1 {
  hydra.param @both [11, 32] init = normal(0.02)
  hydra.param @wq [16, 64] init = normal(0.02)
  hydra.param @wk [16, 64] init = normal(0.02)
  hydra.param @narrow [64, 48] init = normal(0.02)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @run(%tokens: [1, 4] i32, %x: [1, 4, 48] f32) {
    %rows = hydra.let embedding(%tokens, @both)
    %y = hydra.let linear(linear(%x, @narrow), concat(@wq, @wk, axis = 0)) + %rows
    %logits = hydra.let linear(%y, @both)
    hydra.return logits = %logits
  }
  hydra.entry @many(%x: [20, 32] f32) {
    %y = hydra.let linear(%x, @both)
    hydra.return y = %y
  }
}
