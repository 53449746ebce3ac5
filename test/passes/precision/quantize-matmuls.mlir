// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none format=e4m3" --hydra-differentiate="programs=loss" --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s --check-prefix=E4M3
// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=9 keep=none" --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s --check-prefix=SMALL
// RUN: not hydra-opt %s --hydra-bind --hydra-select-quantized="least=9 keep=none" --hydra-quantize-matmuls=strict 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: hydra-opt %s --hydra-bind --hydra-select-quantized="least=8 keep=w" --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s --check-prefix=KEPT
// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls=scaling=row | FileCheck %s --check-prefix=ROW
// RUN: not hydra-opt %s --hydra-bind --hydra-select-quantized --hydra-quantize-matmuls=scaling=block 2>&1 | FileCheck %s --check-prefix=SCALING
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", quantized_multiple = 16>}' --hydra-bind --hydra-select-quantized="least=8 keep=none" --hydra-mixed-precision --hydra-quantize-matmuls | FileCheck %s --check-prefix=SHAPE

// The input of two layers is quantized once, to e4m3 like the weights; its largest magnitudes by rows come first. A bias is
// added to f32 sums.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[X:.*]] = hydra.cast %{{.*}} to = bf16 : tensor<2x8x8xf32>
// CHECK-NEXT: %[[N:.*]] = hydra.neg %[[X]]
// CHECK-NEXT: %[[M:.*]] = hydra.max %[[X]], %[[N]]
// CHECK-NEXT: %[[ROWS:.*]] = hydra.reduce_max %[[M]] axes = [2]
// CHECK-NEXT: %[[FLAT:.*]] = hydra.reshape %[[ROWS]] shape = [16]
// CHECK-NEXT: %[[AMAX:.*]] = hydra.reduce_max %[[FLAT]] axes = [0]
// CHECK-NEXT: %[[WIDE:.*]] = hydra.cast %[[AMAX]] to = f32
// CHECK-NEXT: %[[S:.*]] = hydra.quantization_scale %[[WIDE]] format = f8E4M3FN
// CHECK-NEXT: %[[Q:.*]] = hydra.quantize %[[X]], %[[S]] format = f8E4M3FN
// CHECK: %[[A:.*]] = hydra.reshape %[[Q]] shape = [16, 8]
// CHECK: %[[W:.*]] = hydra.quantize %{{.*}}, %[[T:.*]] format = f8E4M3FN : tensor<16x8xbf16>
// CHECK-NEXT: %[[C:.*]] = hydra.quantized_matmul %[[A]], %[[W]], %[[S]], %[[T]] dtype = f32
// CHECK: hydra.quantized_matmul %{{.*}}, %{{.*}}, %[[S]], %{{.*}} dtype = f32
// CHECK: hydra.add

// The gradient is quantized once, to e5m2; its copy by columns, and those of input and weight, are read where dx and dw are
// made. dw is what an update wants: f32.
// CHECK: %[[G:.*]] = hydra.quantize %{{.*}} format = f8E5M2 : tensor<2x8x16xbf16>
// CHECK: %[[WT:.*]] = hydra.transpose %[[W]] order = [1, 0] : tensor<16x8xf8E4M3FN>
// CHECK-NEXT: %[[WC:.*]] = hydra.copy %[[WT]]
// CHECK-NEXT: hydra.quantized_matmul %{{.*}}, %[[WC]], %{{.*}} dtype = bf16 : tensor<16x16xf8E5M2>, tensor<8x16xf8E4M3FN>
// CHECK: hydra.quantized_matmul %{{.*}} dtype = f32 : tensor<16x16xf8E5M2>, tensor<8x16xf8E4M3FN>
// CHECK-NOT: hydra.linear
// CHECK-NOT: hydra.matmul

// Rows have scales of their own, which a broadcast hands to their elements; what is read transposed has others.
// ROW-LABEL: hydra.entry @loss
// ROW: %[[X:.*]] = hydra.cast %{{.*}} to = bf16 : tensor<2x8x8xf32>
// ROW: %[[ROWS:.*]] = hydra.reduce_max %{{.*}} axes = [2]
// ROW-NEXT: %[[AMAX:.*]] = hydra.cast %[[ROWS]] to = f32 : tensor<2x8xbf16>
// ROW-NEXT: %[[S:.*]] = hydra.quantization_scale %[[AMAX]] format = f8E4M3FN
// ROW: %[[ALL:.*]] = hydra.broadcast %{{.*}} : tensor<2x8x1xf32>
// ROW-NEXT: hydra.quantize %[[X]], %[[ALL]] format = f8E4M3FN
// ROW: hydra.quantized_matmul %{{.*}} dtype = f32 : tensor<16x8xf8E4M3FN>, tensor<16x8xf8E4M3FN>, tensor<16xf32>, tensor<16xf32>
// ROW: %[[WT:.*]] = hydra.transpose %{{.*}} order = [1, 0] : tensor<16x8xbf16>
// ROW-NEXT: hydra.copy %[[WT]]
// ROW: hydra.quantized_matmul %{{.*}} : tensor<16x16xf8E5M2>, tensor<8x16xf8E4M3FN>, tensor<16xf32>, tensor<8xf32>
// ROW-NOT: hydra.linear
// ROW-NOT: hydra.matmul
// SCALING: has no scaling 'block'; expected tensor, row or block128

// E4M3-NOT: f8E5M2
// SMALL-NOT: hydra.quantize
// SMALL: hydra.linear
// STRICT: has no matmul to quantize: linear layers are kept in bf16 by --fp8-keep, have weights smaller than --fp8-least
// KEPT: hydra.linear %{{.*}} : tensor<2x8x8xbf16>, tensor<16x8xbf16>
// KEPT: hydra.quantized_matmul
// SHAPE-NOT: hydra.quantize
hydra.model @m version 1 {
  hydra.param @g [8] init = ones
  hydra.param @w [16, 8] init = normal(0.02)
  hydra.param @v [8, 8] init = normal(0.02)
  hydra.param @b [8] init = zeros
  hydra.group @default sgd(momentum = 0.0)
  hydra.entry @loss(%x: [2, 8, 8] f32, %labels: [2, 8] i32, %others: [2, 8] i32) {
    %n = hydra.let rms_norm(%x, @g, eps = 1.0e-5)
    %y = hydra.let linear(%n, @w)
    %z = hydra.let linear(%n, @v, @b)
    %loss = hydra.let cross_entropy(silu(%y), %labels) + cross_entropy(silu(%z), %others)
    hydra.return loss = %loss
  }
}
