// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-optimizer="clip=false" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls="amax=delayed history=4" --hydra-keep-quantized | FileCheck %s

// An update that goes element by element works on blocks where rows are long, with its guards and all that is rounded: a
// largest magnitude of each block is found on the way.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[PB:.*]] = hydra.reshape %w shape = [32, 256]
// CHECK: %[[P:[^,]*]], %[[M:[^,]*]], %[[V:.*]] = hydra.adamw %[[PB]], {{.*}} : tensor<32x256xf32>
// CHECK: %[[W:.*]] = hydra.guard %{{.*}}, %[[P]], %{{.*}} : tensor<i1>, tensor<32x256xf32>, tensor<32x256xf32>
// CHECK-NEXT: %[[WB:.*]] = hydra.cast %[[W]] to = bf16
// CHECK: %[[AMAX:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<32x256xbf16>
// CHECK: %[[Q:.*]] = hydra.quantize %{{.*}} format = f8E4M3FN : tensor<32x256xbf16>, tensor<f32>
// CHECK-NEXT: %[[QW:.*]] = hydra.reshape %[[Q]] shape = [16, 512]
// CHECK-NEXT: %[[NW:.*]] = hydra.reshape %[[W]] shape = [16, 512]
// CHECK: hydra.guard %{{.*}}, %[[M]], %{{.*}} : tensor<i1>, tensor<32x256xf32>
// CHECK: hydra.guard %{{.*}}, %[[V]], %{{.*}} : tensor<i1>, tensor<32x256xf32>
// CHECK: hydra.reshape %[[AMAX]] shape = [1, 32]
// CHECK: hydra.return {{.*}}@w = %[[NW]],{{.*}}@w.f8E4M3FN = %[[QW]]
hydra.model @m version 1 {
  hydra.param @g [512] init = ones
  hydra.param @w [16, 512] init = normal(0.02)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%x: [2, 8, 512] f32, %labels: [2, 8] i32) {
    %n = hydra.let rms_norm(%x, @g, eps = 1.0e-5)
    %loss = hydra.let cross_entropy(silu(linear(%n, @w)), %labels)
    hydra.return loss = %loss
  }
}
