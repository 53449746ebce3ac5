// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma"]>}' --hydra-expand-kernels | FileCheck %s

// All switches over a number, or none: a case works on rows up to its granule.
// CHECK-LABEL: plan.module @both
// CHECK: plan.launch @counted_linear{{.*}}read %[[ALONE:[0-9]+]] : memref<i32>
// CHECK: plan.switch %[[SHARED:[0-9]+]] by 128
// CHECK: plan.switch %[[SHARED]] by 128
plan.module @both bound {symbols = {}} {
  plan.program @f {
    %alone = plan.buffer transient other : memref<i32>
    %shared = plan.buffer transient other : memref<i32>
    plan.input "alone" = %alone values 0 : memref<i32>
    plan.input "shared" = %shared values 0 : memref<i32>
    %x = plan.buffer transient other : memref<128x64xbf16>
    %w = plan.buffer transient other : memref<64x64xbf16>
    plan.input "x" = %x values 0 : memref<128x64xbf16>
    plan.input "w" = %w values 0 : memref<64x64xbf16>
    %y = plan.buffer transient other : memref<128x64xbf16>
    %z = plan.buffer transient other : memref<64x64xbf16>
    plan.switch %alone by 128 : memref<i32> {
      plan.fill 0.0 -> (%z : memref<64x64xbf16>) {label = "fill"}
    }, {
      plan.matmul(%x : memref<128x64xbf16>, %w : memref<64x64xbf16>) -> (%y : memref<128x64xbf16>) {transpose_b, plan.counted = array<i64: 128, 0, 2>}
    }
    plan.switch %shared by 128 : memref<i32> {
      plan.fill 0.0 -> (%z : memref<64x64xbf16>) {label = "fill"}
    }, {
      plan.matmul(%x : memref<128x64xbf16>, %w : memref<64x64xbf16>) -> (%y : memref<128x64xbf16>) {transpose_b, plan.counted = array<i64: 128, 0, 2>}
    }
    plan.switch %shared by 128 : memref<i32> {
      plan.fill 0.0 -> (%z : memref<64x64xbf16>) {label = "fill"}
    }, {
      plan.matmul(%x : memref<128x64xbf16>, %y : memref<128x64xbf16>) -> (%z : memref<64x64xbf16>) {transpose_a, accumulate, plan.counted = array<i64: 128, 0, 1>}
    }
    plan.output "z" = %z : memref<64x64xbf16>
  }
}
