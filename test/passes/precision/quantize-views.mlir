// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=4 keep=none" --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s --check-prefixes=CHECK,TENSOR
// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=4 keep=none" --hydra-mixed-precision --hydra-quantize-matmuls=scaling=row | FileCheck %s --check-prefixes=CHECK,ROW
// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=4 keep=none" --hydra-differentiate="programs=run" --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s --check-prefix=BACK
// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=4 keep=none" --hydra-differentiate="programs=run" --hydra-mixed-precision --hydra-quantize-matmuls=scaling=row | FileCheck %s --check-prefix=BACK
// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=4 keep=none" --hydra-differentiate="programs=run" --hydra-mixed-precision --hydra-quantize-matmuls=scaling=block128 | FileCheck %s --check-prefix=BACK

// One value is multiplied as rows of eight and as rows of four, and rows of eight are pairs of rows of another: the
// elements of the first are quantized once where they have one scale, and twice where every row has its own.
// CHECK-LABEL: hydra.entry @run
// TENSOR-COUNT-1: hydra.quantize {{.*}} : tensor<2x8x2x4xbf16>, tensor<f32>
// ROW-DAG: hydra.quantize {{.*}} : tensor<2x8x2x4xbf16>, tensor<2x8x2x4xf32>
// CHECK: hydra.quantized_matmul {{.*}} : tensor<16x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>
// CHECK: hydra.quantized_matmul {{.*}} : tensor<32x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>
// CHECK: hydra.quantized_matmul {{.*}} : tensor<16x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>
// BACK-COUNT-6: hydra.quantized_matmul
// BACK-NOT: hydra.linear
hydra.model @m version 1 {
  hydra.param @w [8, 8] init = normal(0.02)
  hydra.param @v [4, 4] init = normal(0.02)
  hydra.param @u [8, 8] init = normal(0.02)
  hydra.entry @run(%x: [2, 8, 2, 4] f32, %y: [32, 4] f32) {
    %x2 = hydra.let %x * 2.0
    %y2 = hydra.let %y * 2.0
    %a = hydra.let linear(reshape(%x2, [2, 8, 8]), @w)
    %b = hydra.let linear(%x2, @v)
    %c = hydra.let linear(reshape(%y2, [16, 8]), @u)
    %loss = hydra.let mean(silu(%a), axes = [0, 1, 2]) + mean(silu(%b), axes = [0, 1, 2, 3]) + mean(silu(%c), axes = [0, 1])
    hydra.return loss = %loss
  }
}
