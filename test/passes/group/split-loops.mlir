// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, rates = {graph_launch_seconds = 2.0e-6, loop_step_seconds = 5.0e-7, block_flops = 1.0e12, block_bandwidth = 1.5e11, block_store_bandwidth = 3.0e10}>}' --hydra-split-loops | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 100000, rates = {graph_launch_seconds = 2.0e-6, loop_step_seconds = 5.0e-7, block_flops = 1.0e12, block_bandwidth = 1.5e11, block_store_bandwidth = 3.0e10}>}' --hydra-split-loops --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-fuse-loops --hydra-expand-kernels | FileCheck %s --check-prefix=KERNEL
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 3, rates = {graph_launch_seconds = 2.0e-6, loop_step_seconds = 5.0e-7, block_flops = 1.0e12, block_bandwidth = 1.5e11, block_store_bandwidth = 3.0e10}>}' --hydra-split-loops | FileCheck %s --check-prefix=WHOLE
// RUN: hydra-opt %s --hydra-split-loops | FileCheck %s --check-prefix=WHOLE

// Before: a matmul by what is kept and the mean of its rows, of which only the mean goes on, and a result that
// needs nothing carried. Behind: a matmul on which nothing carried depends, and what is only added up, which the
// program sums. In between, work by number is done where it is read. What the middle reads itself it
// copies for the loop behind.
// CHECK: hydra.entry @body_early_0(%chunk0: tensor<2x1x16x32xbf16>, %chunk1: tensor<2x1x16x128xf32>, %kept0: tensor<2x32x32xbf16>) walk <64 over[1, 1] stacked[1, 0]>
// CHECK: hydra.matmul
// CHECK: %[[MEAN:.*]] = hydra.mean
// CHECK: hydra.tanh
// CHECK: hydra.reshape %[[MEAN]] shape = [1, 2, 16, 1]
// CHECK: hydra.entry @body_core_0(%chunk0: tensor<2x1x16x32xbf16>, %{{[a-z0-9]+}}: tensor<1x2x16x1xf32>, %carried0: tensor<2x32x32xf32>) walk <64 over[1, 0] carried 1 stacked[0, 0]>
// CHECK-NOT: hydra.mean
// CHECK: hydra.matmul
// CHECK: %[[SUM:.*]] = hydra.add
// CHECK: %[[ROUNDED:.*]] = hydra.cast %[[SUM]]
// CHECK: hydra.matmul
// CHECK: %[[COPY:.*]] = hydra.copy %[[ROUNDED]]
// CHECK: hydra.reshape %[[COPY]]
// CHECK: hydra.entry @body_late_0(%{{[a-z0-9]+}}: tensor<1x2x16x32xbf16>, %{{[a-z0-9]+}}: tensor<1x2x16x32xf32>, %kept0: tensor<2x32x32xbf16>) walk <64 over[0, 0] stacked[1, 0]>
// CHECK: hydra.matmul
// CHECK: hydra.sum
// CHECK-NOT: hydra.entry @body(
// CHECK: hydra.entry @e
// CHECK: %[[EARLY:.*]]:2 = hydra.loop @body_early_0(%x, %z, %w)
// CHECK: %[[CORE:.*]]:3 = hydra.loop @body_core_0(%x, %[[EARLY]]#1, %start)
// CHECK: %[[LATE:.*]]:2 = hydra.loop @body_late_0(%[[CORE]]#0, %[[CORE]]#1, %w)
// CHECK: %[[ROWS:.*]] = hydra.reshape %[[LATE]]#1 shape = [64, 64]
// CHECK: %[[ALL:.*]] = hydra.sum %[[ROWS]] axes = [0]
// CHECK: %[[ADDED:.*]] = hydra.reshape %[[ALL]] shape = [2, 1, 32]
// CHECK: %[[END:.*]] = hydra.add %zero, %[[ADDED]]
// CHECK: hydra.return y = %[[LATE]]#0, curve = %[[EARLY]]#0, end = %[[CORE]]#2, total = %[[END]]

// Four blocks share out the iterations of each of two slices where nothing is carried.
// KERNEL-DAG: plan.kernel @loop_{{[0-9]+}} rows 0 grain 0 launch [2, 4, 1, 512, {{[0-9]+}}] source "{{.*}}const int begin = blockIdx.y * 16;{{.*}}iteration < iterations;
// KERNEL-DAG: plan.kernel @loop_{{[0-9]+}} rows 0 grain 0 launch [2, 1, 1, 512, {{[0-9]+}}] source "{{.*}}iteration < 64;

// Not where slices leave no multiprocessors, nor on CPUs.
// WHOLE: hydra.entry @body(
// WHOLE: hydra.loop @body(
// WHOLE-NOT: hydra.loop
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @body(%chunk0: tensor<2x1x16x32xbf16>, %chunk1: tensor<2x1x16x128xf32>, %carried0: tensor<2x32x32xf32>, %carried1: tensor<2x1x32xf32>, %kept0: tensor<2x32x32xbf16>) walk <64 over[1, 1] carried 2 stacked[1, 1]> {
    %x = hydra.reshape %chunk0 shape = [2, 16, 32] : tensor<2x1x16x32xbf16>
    %p = hydra.matmul %x, %kept0 dtype = f32 : tensor<2x16x32xbf16>, tensor<2x32x32xbf16>
    %mean = hydra.mean %p axes = [2] keep : tensor<2x16x32xf32>
    %curve = hydra.tanh %chunk1 : tensor<2x1x16x128xf32>
    %w = hydra.cast %carried0 to = bf16 : tensor<2x32x32xf32>
    %q = hydra.matmul %x, %w dtype = f32 : tensor<2x16x32xbf16>, tensor<2x32x32xbf16>
    %means = hydra.broadcast %mean shape = [2, 16, 32] : tensor<2x16x1xf32>
    %s = hydra.add %q, %means : tensor<2x16x32xf32>, tensor<2x16x32xf32>
    %g = hydra.cast %s to = bf16 : tensor<2x16x32xf32>
    %next = hydra.matmul %g, %x, %carried0 dtype = f32 transpose_a : tensor<2x16x32xbf16>, tensor<2x16x32xbf16>, tensor<2x32x32xf32>
    %y = hydra.matmul %g, %kept0 dtype = f32 : tensor<2x16x32xbf16>, tensor<2x32x32xbf16>
    %columns = hydra.transpose %s order = [0, 2, 1] : tensor<2x16x32xf32>
    %sum = hydra.sum %columns axes = [2] : tensor<2x32x16xf32>
    %part = hydra.reshape %sum shape = [2, 1, 32] : tensor<2x32xf32>
    %total = hydra.add %carried1, %part : tensor<2x1x32xf32>, tensor<2x1x32xf32>
    %joined = hydra.reshape %y shape = [2, 1, 16, 32] : tensor<2x16x32xf32>
    hydra.return joined0 = %joined, joined1 = %curve, carried0 = %next, carried1 = %total : tensor<2x1x16x32xf32>, tensor<2x1x16x128xf32>, tensor<2x32x32xf32>, tensor<2x1x32xf32>
  }
  hydra.entry @e(%x: tensor<2x64x16x32xbf16>, %z: tensor<2x64x16x128xf32>, %start: tensor<2x32x32xf32>, %zero: tensor<2x1x32xf32>, %w: tensor<2x32x32xbf16>) {
    %y, %curve, %end, %total = hydra.loop @body(%x, %z, %start, %zero, %w) : (tensor<2x64x16x32xbf16>, tensor<2x64x16x128xf32>, tensor<2x32x32xf32>, tensor<2x1x32xf32>, tensor<2x32x32xbf16>) -> (tensor<2x64x16x32xf32>, tensor<2x64x16x128xf32>, tensor<2x32x32xf32>, tensor<2x1x32xf32>)
    hydra.return y = %y, curve = %curve, end = %end, total = %total : tensor<2x64x16x32xf32>, tensor<2x64x16x128xf32>, tensor<2x32x32xf32>, tensor<2x1x32xf32>
  }
}
