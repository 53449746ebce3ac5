// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-narrow-gradients | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-narrow-gradients --hydra-optimizer='programs=loss clip=true' --hydra-mixed-precision --canonicalize --cse | FileCheck %s --check-prefix=TRAIN

// What a matmul makes for @w alone is rounded, and what @u and @v are slices of. The gradient of @twice
// is a sum of two matmuls, that of @g is of none, and what flows back is no gradient of a parameter.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[UV:.*]] = hydra.matmul {{.*}} transpose_a : tensor<2x8xf32>, tensor<2x8xf32>
// CHECK-NEXT: %[[NARROW:.*]] = hydra.cast %[[UV]] to = bf16
// CHECK-NEXT: %[[WIDE:.*]] = hydra.cast %[[NARROW]] to = f32
// CHECK: hydra.slice %[[WIDE]]
// CHECK: hydra.slice %[[WIDE]]
// CHECK-NOT: hydra.cast
// CHECK: %[[W:.*]] = hydra.matmul {{.*}} transpose_a : tensor<2x8xf32>, tensor<2x4xf32>
// CHECK-NEXT: %[[NARROW:.*]] = hydra.cast %[[W]] to = bf16
// CHECK-NEXT: hydra.cast %[[NARROW]] to = f32
// CHECK-NOT: hydra.cast
// CHECK: hydra.return

// Then the matmul writes 16 bits, which norm and update read and widen; others write f32.
// TRAIN-LABEL: hydra.entry @loss
// TRAIN: %[[UV:.*]] = hydra.matmul {{.*}} transpose_a : tensor<2x8xbf16>, tensor<2x8xbf16>
// TRAIN-NOT: %[[UV]] to =
// TRAIN: %[[U:.*]] = hydra.slice %[[UV]] {{.*}} : tensor<8x8xbf16>
// TRAIN: hydra.matmul {{.*}} dtype = f32 transpose_a : tensor<2x8xbf16>, tensor<2x8xbf16>
// TRAIN: hydra.matmul {{.*}} dtype = f32 transpose_a : tensor<2x8xbf16>, tensor<2x8xbf16>
// TRAIN: hydra.matmul {{.*}} transpose_a : tensor<2x8xbf16>, tensor<2x4xbf16>
// TRAIN: hydra.global_norm {{.*}} : tensor<8x4xf32>
// TRAIN: hydra.adamw {{.*}} : tensor<8x4xf32>
hydra.model @m version 1 {
  hydra.param @w [8, 4] init = normal(1.0)
  hydra.param @u [4, 8] init = normal(1.0)
  hydra.param @v [4, 8] init = normal(1.0)
  hydra.param @twice [8, 8] init = normal(1.0)
  hydra.param @g [8] init = ones
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%x: [2, 4] f32) {
    %w = hydra.use @w
    %u = hydra.use @u
    %v = hydra.use @v
    %t = hydra.use @twice
    %g = hydra.use @g
    %a = hydra.linear %x, %w
    %b = hydra.linear %a, %t
    %c = hydra.linear %b, %t
    %n = hydra.rms_norm %c, %g eps = 1.0e-5
    %uv = hydra.concat %u, %v axis = 0
    %y = hydra.linear %n, %uv
    %loss = hydra.mean %y axes = [0, 1]
    hydra.return loss = %loss
  }
}
