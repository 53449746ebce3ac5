// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-optimizer="clip=false" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls="amax=delayed history=4" --hydra-keep-quantized | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-optimizer="accum=2 clip=false" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls="amax=delayed history=1" --hydra-keep-quantized | FileCheck %s --check-prefix=ACCUM
// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --hydra-optimizer="clip=false" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls --hydra-keep-quantized | FileCheck %s --check-prefix=CURRENT

// A state for each weight, and one for their largest magnitudes.
// CHECK: hydra.param @w [16, 8]
// CHECK-NEXT: hydra.state @w.f8E4M3FN [16, 8] f8E4M3FN init = zeros of @w as derived
// CHECK-NEXT: hydra.param @v [8, 8]
// CHECK-NEXT: hydra.state @v.f8E4M3FN [8, 8] f8E4M3FN init = zeros of @v as derived
// CHECK: hydra.state @fp8_amax [5, 4] init = zeros as amax_history
// CHECK-NEXT: hydra.state @fp8_amax.weights [2] init = zeros as derived

// The program reads what was written before it: no parameter is rounded until it has its new value.
// CHECK-LABEL: hydra.entry @loss
// CHECK-NOT: hydra.cast %w to
// CHECK-NOT: hydra.cast %v to
// CHECK: hydra.quantized_matmul %{{.*}}, %w.f8E4M3FN, %{{.*}} : tensor<16x8xf8E4M3FN>, tensor<16x8xf8E4M3FN>
// CHECK: hydra.quantized_matmul %{{.*}}, %v.f8E4M3FN, %{{.*}} : tensor<16x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>

// The scales of the next step are made as soon as it is known whether there is an update.
// CHECK: %[[OK:.*]] = hydra.compare %{{.*}} is = "le" : tensor<f32>, tensor<f32>
// CHECK-NEXT: %[[H:.*]] = hydra.use @fp8_amax : tensor<5x4xf32>
// CHECK-NEXT: %[[ROWS:.*]] = hydra.slice %[[H]] axis = 0 size = 2 start = 1 : tensor<5x4xf32>
// CHECK-NEXT: %[[NOW:.*]] = hydra.use @fp8_amax.weights : tensor<2xf32>
// CHECK-NEXT: %[[NEW:.*]] = hydra.reshape %[[NOW]] shape = [2, 1]
// CHECK-NEXT: %[[REST:.*]] = hydra.slice %[[ROWS]] axis = 1 size = 3 start = 0
// CHECK-NEXT: %[[MOVED:.*]] = hydra.concat %[[NEW]], %[[REST]] axis = 1
// CHECK: %[[NEXT:.*]] = hydra.guard %[[OK]], %{{.*}}, %[[ROWS]] : tensor<i1>, tensor<2x4xf32>, tensor<2x4xf32>
// CHECK-NEXT: hydra.reduce_max %[[NEXT]] axes = [1]
// CHECK: %[[S:.*]] = hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<2xf32>
// CHECK-NEXT: %[[S0:.*]] = hydra.slice %[[S]] axis = 0 size = 1 start = 0
// CHECK-NEXT: %[[SV:.*]] = hydra.reshape %[[S0]] shape = []
// CHECK-NEXT: %[[S1:.*]] = hydra.slice %[[S]] axis = 0 size = 1 start = 1
// CHECK-NEXT: %[[SW:.*]] = hydra.reshape %[[S1]] shape = []

// The update rounds what it writes.
// CHECK: %[[W:.*]] = hydra.guard %[[OK]], %{{.*}} : tensor<i1>, tensor<16x8xf32>, tensor<16x8xf32>
// CHECK-NEXT: %[[WB:.*]] = hydra.cast %[[W]] to = bf16
// CHECK-NEXT: hydra.neg %[[WB]]
// CHECK-NEXT: hydra.max %[[WB]]
// CHECK-NEXT: %[[WM:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<16x8xbf16>
// CHECK: %[[WQ:.*]] = hydra.quantize %{{.*}}, %[[SW]] format = f8E4M3FN
// CHECK: %[[V:.*]] = hydra.guard %[[OK]], %{{.*}} : tensor<i1>, tensor<8x8xf32>, tensor<8x8xf32>
// CHECK: %[[VM:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<8x8xbf16>
// CHECK: %[[VQ:.*]] = hydra.quantize %{{.*}}, %[[SV]] format = f8E4M3FN

// The history takes in what the present weights were found to have when they were written.
// CHECK: %[[KNOWN:.*]] = hydra.use @fp8_amax.weights : tensor<2xf32>
// CHECK-NEXT: hydra.concat %{{.*}}, %[[KNOWN]], %{{.*}} axis = 0 : tensor<1xf32>, tensor<2xf32>, tensor<2xf32>
// CHECK: hydra.reshape %[[VM]] shape = [1, 8]
// CHECK: hydra.reshape %[[WM]] shape = [1, 16]
// CHECK: %[[FOUND:.*]] = hydra.concat %{{.*}} axis = 0 : tensor<1xf32>, tensor<1xf32>
// CHECK: hydra.return {{.*}}@v.f8E4M3FN = %[[VQ]], @w.f8E4M3FN = %[[WQ]], @fp8_amax.weights = %[[FOUND]])

// When something else has written the parameters, both are made anew, by the scales that the history gives.
// CHECK-LABEL: hydra.entry @derive() stage(derive)
// CHECK-NEXT: %[[D:.*]] = hydra.use @fp8_amax : tensor<5x4xf32>
// CHECK-NEXT: %[[DR:.*]] = hydra.slice %[[D]] axis = 0 size = 2 start = 1
// CHECK-NEXT: hydra.reduce_max %[[DR]] axes = [1]
// CHECK: hydra.quantize {{.*}} : tensor<8x8xbf16>, tensor<f32>
// CHECK: hydra.quantize {{.*}} : tensor<16x8xbf16>, tensor<f32>
// CHECK: hydra.return updates(@v.f8E4M3FN = %{{[^,]*}}, @w.f8E4M3FN = %{{[^,]*}}, @fp8_amax.weights = %{{[^,]*}})

// Micro-batches read the states, and their update writes them.
// ACCUM-LABEL: hydra.entry @accumulate
// ACCUM: hydra.quantized_matmul %{{.*}}, %w.f8E4M3FN,
// ACCUM: hydra.use @fp8_amax.weights
// ACCUM-NEXT: hydra.concat %{{.*}} axis = 0 : tensor<1xf32>, tensor<2xf32>, tensor<2xf32>
// ACCUM-NOT: @w.f8E4M3FN =
// ACCUM-LABEL: hydra.entry @apply
// ACCUM: hydra.guard %{{.*}} : tensor<i1>, tensor<2x1xf32>, tensor<2x1xf32>
// ACCUM: hydra.quantize
// ACCUM: hydra.return {{.*}}@v.f8E4M3FN = %{{.*}}, @w.f8E4M3FN = %{{.*}}, @fp8_amax.weights = %{{.*}})
// ACCUM-LABEL: hydra.entry @derive() stage(derive)

// Scales of the present step are known when a weight has been read.
// CURRENT-NOT: as derived
// CURRENT-NOT: stage(derive)
// CURRENT: hydra.quantized_matmul
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
