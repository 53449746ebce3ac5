// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-optimizer --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls="amax=delayed history=4" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-optimizer="accum=2" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls="amax=delayed history=1 accum=2" | FileCheck %s --check-prefix=ACCUM
// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-mixed-precision --hydra-quantize-matmuls="amax=delayed" | FileCheck %s --check-prefix=GRAD
// RUN: not hydra-opt %s --hydra-bind --hydra-quantize-matmuls="amax=delayed scaling=row" 2>&1 | FileCheck %s --check-prefix=ROW
// RUN: not hydra-opt %s --hydra-bind --hydra-quantize-matmuls="amax=next" 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not hydra-opt %s --hydra-bind --hydra-quantize-matmuls="amax=delayed history=1025" 2>&1 | FileCheck %s --check-prefix=LONG

// One state of all operands: an activation, two weights, two gradients. All scales are made of it when the program begins.
// CHECK: hydra.state @fp8_amax [5, 4] init = zeros as amax_history
// CHECK-LABEL: hydra.entry @loss
// CHECK-NEXT: %[[H:.*]] = hydra.use @fp8_amax : tensor<5x4xf32>
// CHECK-NEXT: %[[M:.*]] = hydra.reduce_max %[[H]] axes = [1]
// CHECK-NEXT: %[[A:.*]] = hydra.slice %[[M]] axis = 0 size = 1 start = 0
// Each scale stands there four times, so that all begin at multiples of 16 bytes.
// CHECK-NEXT: %[[A1:.*]] = hydra.reshape %[[A]] shape = [1, 1]
// CHECK-NEXT: %[[A4:.*]] = hydra.broadcast %[[A1]] shape = [1, 4]
// CHECK: %[[V:.*]] = hydra.constant dtype = f32 shape = [1, 4] value = 1.600000e+01
// CHECK-NEXT: %[[F:.*]] = hydra.select %{{.*}}, %[[A4]], %[[V]]
// CHECK-NEXT: %[[S:.*]] = hydra.quantization_scale %[[F]] format = f8E4M3FN
// CHECK-NEXT: %[[S0:.*]] = hydra.slice %[[S]] axis = 0 size = 1 start = 0
// CHECK-NEXT: %[[S1:.*]] = hydra.slice %[[S0]] axis = 1 size = 1 start = 0
// CHECK-NEXT: %[[SX:.*]] = hydra.reshape %[[S1]] shape = []
// CHECK: hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<2x4xf32>
// CHECK: hydra.constant dtype = f32 shape = [2, 4] value = 3.125000e-02
// CHECK: hydra.quantization_scale %{{.*}} format = f8E5M2 : tensor<2x4xf32>

// A value is rounded by a scale that is there already; its largest magnitude is not waited for. What is not finite
// becomes NaN.
// CHECK: %[[X:.*]] = hydra.cast %{{.*}} to = bf16 : tensor<2x8x8xf32>
// CHECK: hydra.reduce_max %{{.*}} axes = [2]
// CHECK-NEXT: %[[ROWS:.*]] = hydra.reshape %{{.*}} shape = [16]
// CHECK-NEXT: %[[Z:.*]] = hydra.constant dtype = bf16 shape = [2, 8, 8] value = 0.000000e+00
// CHECK-NEXT: %[[ZX:.*]] = hydra.mul %[[X]], %[[Z]]
// CHECK-NEXT: %[[FINITE:.*]] = hydra.add %[[X]], %[[ZX]]
// CHECK-NEXT: hydra.quantize %[[FINITE]], %[[SX]] format = f8E4M3FN
// CHECK-NEXT: %[[ONE:.*]] = hydra.reshape %[[ROWS]] shape = [1, 16]
// CHECK-NEXT: %[[MAX:.*]] = hydra.reduce_max %[[ONE]] axes = [1]
// CHECK-NEXT: %[[AX:.*]] = hydra.cast %[[MAX]] to = f32 : tensor<1xbf16>
// Gradients have as many rows as each other: one reduction.
// CHECK: %[[BOTH:.*]] = hydra.concat %{{.*}} axis = 0 : tensor<16xbf16>, tensor<16xbf16>
// CHECK-NEXT: hydra.reshape %[[BOTH]] shape = [2, 16]

// The newest step comes first. What is zero or not finite is not remembered, and what the guard refuses neither.
// CHECK: %[[ALL:.*]] = hydra.concat %[[AX]], %{{.*}} axis = 0 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2xf32>
// CHECK-NEXT: %[[OLD:.*]] = hydra.use @fp8_amax
// CHECK-NEXT: %[[NEW:.*]] = hydra.reshape %[[ALL]] shape = [5, 1]
// CHECK-NEXT: %[[REST:.*]] = hydra.slice %[[OLD]] axis = 1 size = 3 start = 0
// CHECK-NEXT: %[[MOVED:.*]] = hydra.concat %[[NEW]], %[[REST]] axis = 1
// CHECK: hydra.compare %{{.*}} is = "gt"
// CHECK: hydra.compare %{{.*}} is = "le"
// CHECK-NEXT: %[[SOME:.*]] = hydra.select %{{.*}}, %[[MOVED]], %[[OLD]]
// CHECK-NEXT: %[[TAKEN:.*]] = hydra.select %{{.*}}, %[[SOME]], %[[OLD]]
// CHECK-NEXT: %[[KEPT:.*]] = hydra.guard %{{.*}}, %[[TAKEN]], %[[OLD]]
// CHECK: hydra.return {{.*}}@fp8_amax = %[[KEPT]]

// Micro-batches collect the largest of the step, which its update remembers and clears.
// ACCUM-DAG: hydra.state @fp8_amax [5, 1] init = zeros as amax_history
// ACCUM-DAG: hydra.state @fp8_amax.step [5] init = zeros as step_sum
// Gradients of one of two are twice as large as those of the mean, which is remembered.
// ACCUM-LABEL: hydra.entry @accumulate
// ACCUM: %[[TWO:.*]] = hydra.constant dtype = f32 shape = [2, 4] value = 2.000000e+00
// ACCUM-NEXT: %[[OF:.*]] = hydra.mul %{{.*}}, %[[TWO]] : tensor<2x4xf32>
// ACCUM-NEXT: hydra.quantization_scale %[[OF]] format = f8E5M2
// ACCUM: %[[HALF:.*]] = hydra.constant dtype = f32 shape = [2] value = 5.000000e-01
// ACCUM-NEXT: %[[MEAN:.*]] = hydra.mul %{{.*}}, %[[HALF]] : tensor<2xf32>
// ACCUM: hydra.concat {{.*}}, %[[MEAN]] axis = 0
// ACCUM: %[[SO:.*]] = hydra.use @fp8_amax.step
// ACCUM-NEXT: %[[FAR:.*]] = hydra.max %[[SO]], %{{.*}} : tensor<5xf32>
// ACCUM: hydra.return {{.*}}@fp8_amax.step = %[[FAR]]
// ACCUM-LABEL: hydra.entry @apply
// ACCUM: %[[STEP:.*]] = hydra.use @fp8_amax.step
// ACCUM: hydra.reshape %[[STEP]] shape = [5, 1]
// ACCUM: %[[KEPT:.*]] = hydra.guard %{{.*}} : tensor<i1>, tensor<5x1xf32>, tensor<5x1xf32>
// ACCUM: %[[NONE:.*]] = hydra.constant dtype = f32 shape = [5] value = 0.000000e+00
// ACCUM: hydra.return {{.*}}@fp8_amax = %[[KEPT]], @fp8_amax.step = %[[NONE]]

// A program without updates has no state to remember by.
// GRAD-NOT: fp8_amax
// GRAD: hydra.quantized_matmul

// ROW: has delayed scales of rows or blocks; expected tensor with delayed
// WORD: has no largest magnitude 'next'; expected current or delayed
// LONG: has a history of 1025 steps; expected 1 to 1024
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
