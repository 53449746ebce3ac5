// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma"]>}' --hydra-expand-kernels | FileCheck %s

// Counters of all steps begin as zeros in one launch, whether a switch gave its place to the step or not.
// CHECK-LABEL: plan.module @counters
// CHECK: plan.program @f
// CHECK: plan.launch @copies{{.*}}(write %[[IDS:[0-9]+]] : memref<2xi32>, write %[[TILES:[0-9]+]] : memref<16xi32>)
// CHECK: plan.launch @counted_linear{{.*}}update %[[TILES]] : memref<16xi32>)
// CHECK: plan.launch @embedding_grad{{.*}}update %[[IDS]] : memref<2xi32>
// CHECK: plan.launch @frequent_embedding_grad{{.*}}update %[[IDS]] : memref<2xi32>
plan.module @counters bound {symbols = {}} {
  plan.program @f {
    %count = plan.buffer transient other : memref<i32>
    %tokens = plan.buffer transient other : memref<1024xi32>
    %x = plan.buffer transient other : memref<128x64xbf16>
    %w = plan.buffer transient other : memref<64x64xbf16>
    %dx = plan.buffer transient other : memref<1024x64xf32>
    plan.input "count" = %count values 0 : memref<i32>
    plan.input "tokens" = %tokens tokens 100 : memref<1024xi32>
    plan.input "x" = %x values 0 : memref<128x64xbf16>
    plan.input "w" = %w values 0 : memref<64x64xbf16>
    plan.input "dx" = %dx values 0 : memref<1024x64xf32>
    %y = plan.buffer transient other : memref<128x64xbf16>
    %grad = plan.buffer transient other : memref<100x64xf32>
    plan.switch %count by 128 : memref<i32> {
    }, {
      plan.matmul(%x : memref<128x64xbf16>, %w : memref<64x64xbf16>) -> (%y : memref<128x64xbf16>) {transpose_b, plan.counted = array<i64: 128, 0, 2>}
    }
    plan.embedding_grad(%tokens : memref<1024xi32>, %dx : memref<1024x64xf32>) -> (%grad : memref<100x64xf32>) {scale = 1.0 : f64}
    plan.output "y" = %y : memref<128x64xbf16>
    plan.output "grad" = %grad : memref<100x64xf32>
  }
}
