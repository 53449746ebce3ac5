// RUN: hydra-opt %s --split-input-file --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls=scaling=block128 | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --canonicalize --cse --hydra-select-quantized="least=8 keep=none" --hydra-differentiate="programs=loss" --canonicalize --cse --hydra-mixed-precision --hydra-quantize-matmuls=scaling=block128 --hydra-form-fusions | FileCheck %s --check-prefix=KERNEL
// RUN: not hydra-opt %s --split-input-file --hydra-bind --hydra-quantize-matmuls="scaling=block128 amax=delayed" 2>&1 | FileCheck %s --check-prefix=DELAYED
// DELAYED: has delayed scales of rows or blocks; expected tensor with delayed

// The input is rounded twice, by scales of 128 neighbours as they are summed over: of tokens where dw is made, of inputs where y
// is. The weight is rounded once, by scales of 128 by 128, and read transposed with its scales.
// CHECK-LABEL: hydra.model @whole
// CHECK: %[[X:.*]] = hydra.cast %{{.*}} to = bf16 : tensor<128x256xf32>
// CHECK-DAG: hydra.transpose %[[X]] order = [1, 0] : tensor<128x256xbf16>
// CHECK-DAG: %[[XT:.*]] = hydra.reshape %[[X]] shape = [128, 2, 128] : tensor<128x256xbf16>
// CHECK: %[[ABOVE:.*]] = hydra.reduce_max %[[XT]] axes = [2]
// CHECK: %[[BELOW:.*]] = hydra.reduce_max %{{.*}} axes = [2] : tensor<128x2x128xbf16>
// CHECK: %[[AMAX:.*]] = hydra.max %[[ABOVE]], %[[BELOW]]
// CHECK: hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<128x2xf32>
// CHECK: hydra.quantize %[[XT]], %{{.*}} format = f8E4M3FN : tensor<128x2x128xbf16>, tensor<128x2x128xf32>
// CHECK: %[[W:.*]] = hydra.reshape %{{.*}} shape = [3, 128, 2, 128] : tensor<384x256xbf16>
// CHECK: hydra.transpose %{{.*}} order = [0, 2, 1] : tensor<3x128x2xbf16>
// CHECK: %[[SW:.*]] = hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<3x2xf32>
// CHECK: %[[Q:.*]] = hydra.quantize %[[W]], %{{.*}} format = f8E4M3FN : tensor<3x128x2x128xbf16>, tensor<3x128x2x128xf32>
// CHECK: hydra.quantized_matmul %{{.*}}, %[[SW]] dtype = {{.*}} : tensor<128x256xf8E4M3FN>, tensor<384x256xf8E4M3FN>, tensor<2x128xf32>, tensor<3x2xf32>
// CHECK-NOT: hydra.quantize {{.*}} tensor<3x128x2x128xbf16>
// CHECK-DAG: hydra.quantized_matmul {{.*}} : tensor<128x384xf8E5M2>, tensor<256x384xf8E4M3FN>, tensor<3x128xf32>, tensor<2x3xf32>
// CHECK-DAG: hydra.quantized_matmul {{.*}} : tensor<384x128xf8E5M2>, tensor<256x128xf8E4M3FN>, tensor<1x384xf32>, tensor<1x256xf32>
// CHECK-NOT: hydra.linear
// CHECK-NOT: hydra.matmul

// What finds the largest magnitudes of 128 neighbours rounds them too, and reads them once.
// KERNEL-LABEL: hydra.model @whole
// KERNEL: hydra.fused rows = [128, 2] inner = [128] (%[[IN:[a-z0-9]+]] = %{{.*}}) : tensor<128x2x128xbf16> {
// KERNEL: hydra.reduce_max %[[IN]]
// KERNEL: hydra.quantize %[[IN]]
hydra.model @whole version 1 {
  hydra.param @w [384, 256] init = normal(0.02)
  hydra.param @g [256] init = ones
  hydra.group @default sgd(momentum = 0.0)
  hydra.entry @loss(%x: [128, 256] f32) {
    %y = hydra.let linear(silu(%x) * @g, @w)
    %loss = hydra.let mean(silu(%y), axes = [0, 1])
    hydra.return loss = %loss
  }
}

// -----

// Sizes that are no multiple of 128 have zeros behind them until they are rounded.
// CHECK-LABEL: hydra.model @parts
// CHECK: %[[WIDE:.*]] = hydra.concat %{{.*}}, %{{.*}} axis = 1 : tensor<48x200xbf16>, tensor<48x56xbf16>
// CHECK: %[[T:.*]] = hydra.reshape %[[WIDE]] shape = [48, 2, 128]
// CHECK: %[[Q:.*]] = hydra.quantize %[[T]], %{{.*}} format = f8E4M3FN
// CHECK: %[[M:.*]] = hydra.reshape %[[Q]] shape = [48, 256]
// CHECK: %[[A:.*]] = hydra.slice %[[M]] axis = 1 size = 200 start = 0
// CHECK: hydra.concat {{.*}} axis = 0 : tensor<136x200xbf16>, tensor<120x200xbf16>
// CHECK: hydra.concat {{.*}} axis = 1 : tensor<256x200xbf16>, tensor<256x56xbf16>
// CHECK: hydra.slice %{{.*}} axis = 0 size = 136 start = 0
// CHECK: hydra.quantized_matmul %[[A]], {{.*}} : tensor<48x200xf8E4M3FN>, tensor<136x200xf8E4M3FN>, tensor<2x48xf32>, tensor<2x2xf32>
hydra.model @parts version 1 {
  hydra.param @w [136, 200] init = normal(0.02)
  hydra.group @default sgd(momentum = 0.0)
  hydra.entry @loss(%x: [48, 200] f32) {
    %y = hydra.let linear(silu(%x), @w)
    %loss = hydra.let mean(silu(%y), axes = [0, 1])
    hydra.return loss = %loss
  }
}
