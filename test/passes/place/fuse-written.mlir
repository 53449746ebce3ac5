// RUN: hydra-opt %s --split-input-file --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, rates = {graph_launch_seconds = 2.2e-6, loop_step_seconds = 5.0e-7, block_flops = 5.0e11, block_bandwidth = 1.5e11}>}' --hydra-fuse-loops | FileCheck %s

// Halves of the rows of a result: each number is written by one lane.
// CHECK-LABEL: plan.module @apart
// CHECK: plan.loop 8({{.*}}) slices 16 {
plan.module @apart {
  plan.program @p {
    %x = plan.buffer transient other : memref<8x2x8xf32>
    %y = plan.buffer transient other : memref<8x2x16xf32>
    %a = plan.view %x plus 0 : memref<8x2x8xf32> to memref<2x8xf32>
    %low = plan.view %y plus 0 : memref<8x2x16xf32> to memref<2x8xf32, strided<[16, 1]>>
    %high = plan.view %y plus 8 : memref<8x2x16xf32> to memref<2x8xf32, strided<[16, 1]>>
    plan.loop 8(%a by 64 : memref<2x8xf32>, %low by 128 : memref<2x8xf32, strided<[16, 1]>>, %high by 128 : memref<2x8xf32, strided<[16, 1]>>) {
      plan.copy(%a : memref<2x8xf32>) -> (%low : memref<2x8xf32, strided<[16, 1]>>)
      plan.copy(%a : memref<2x8xf32>) -> (%high : memref<2x8xf32, strided<[16, 1]>>)
    }
  }
}

// -----

// The second begins within the first: which number stays would depend on which lane comes first.
// CHECK-LABEL: plan.module @overlapping
// CHECK: plan.loop 8(
// CHECK-NOT: slices
plan.module @overlapping {
  plan.program @p {
    %x = plan.buffer transient other : memref<8x2x8xf32>
    %y = plan.buffer transient other : memref<8x2x16xf32>
    %a = plan.view %x plus 0 : memref<8x2x8xf32> to memref<2x8xf32>
    %low = plan.view %y plus 0 : memref<8x2x16xf32> to memref<2x8xf32, strided<[16, 1]>>
    %high = plan.view %y plus 7 : memref<8x2x16xf32> to memref<2x8xf32, strided<[16, 1]>>
    plan.loop 8(%a by 64 : memref<2x8xf32>, %low by 128 : memref<2x8xf32, strided<[16, 1]>>, %high by 128 : memref<2x8xf32, strided<[16, 1]>>) {
      plan.copy(%a : memref<2x8xf32>) -> (%low : memref<2x8xf32, strided<[16, 1]>>)
      plan.copy(%a : memref<2x8xf32>) -> (%high : memref<2x8xf32, strided<[16, 1]>>)
    }
  }
}
