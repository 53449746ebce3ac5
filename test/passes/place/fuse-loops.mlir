// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, rates = {graph_launch_seconds = 2.2e-6, loop_step_seconds = 5.0e-7, block_flops = 5.0e11, block_bandwidth = 1.5e11}>}' --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-fuse-loops | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, block_shared = 232448, multiprocessor_shared = 232448, rates = {graph_launch_seconds = 2.2e-6, loop_step_seconds = 5.0e-7, block_flops = 5.0e11, block_bandwidth = 1.5e11}>}' --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-fuse-loops --hydra-expand-kernels | FileCheck %s --check-prefix=KERNEL

// The steps of @scan work on each of 64 rows alone, so one kernel can run it with a block for each; @cross sums
// over them, and stays a loop of launches. What is behind the kernel is launched when it ends, not while it runs.
// KERNEL: plan.kernel @loop_{{[0-9]+}} rows 0 grain 0 launch [{{.*}}] source "{{.*}}) { waitForEarlier();
// KERNEL-NOT: plan.kernel @loop

// The steps of @recurrence work number by number: a thread for each of 24 carries its own in a register, and asks for those
// of 64 iterations at once, since there are few.
// KERNEL: plan.kernel @lanes_{{[0-9]+}} rows 0 grain 0 launch [1, 1, 1, 32, 0] source "{{.*}}if (lane >= 24){{.*}}first += 64{{.*}}if (first + ahead < 131)
// KERNEL-NOT: plan.kernel @lanes
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @scan(%chunk0: tensor<64x1x128xf32>, %carried0: tensor<64x128xf32>) scan <8 over [1] carried 1 stacked [1]> {
    %x = hydra.reshape %chunk0 shape = [64, 128] : tensor<64x1x128xf32>
    %sum = hydra.sum %x axes = [1] keep : tensor<64x128xf32>
    %all = hydra.broadcast %sum shape = [64, 128] : tensor<64x1xf32>
    %y = hydra.mul %all, %carried0 : tensor<64x128xf32>, tensor<64x128xf32>
    %next = hydra.add %carried0, %x : tensor<64x128xf32>, tensor<64x128xf32>
    %joined = hydra.reshape %y shape = [64, 1, 128] : tensor<64x128xf32>
    hydra.return joined0 = %joined, carried0 = %next : tensor<64x1x128xf32>, tensor<64x128xf32>
  }
  hydra.entry @cross(%chunk0: tensor<64x1x128xf32>, %carried0: tensor<1x128xf32>) scan <8 over [1] carried 1> {
    %x = hydra.reshape %chunk0 shape = [64, 128] : tensor<64x1x128xf32>
    %sum = hydra.sum %x axes = [0] keep : tensor<64x128xf32>
    %next = hydra.add %carried0, %sum : tensor<1x128xf32>, tensor<1x128xf32>
    hydra.return carried0 = %next : tensor<1x128xf32>
  }
  // CHECK-LABEL: plan.program @e
  // CHECK: plan.loop 8({{.*}}) slices {{[0-9]+}} {
  // CHECK-LABEL: plan.program @f
  // CHECK: plan.loop 8({{.*}}) {
  hydra.entry @e(%x: tensor<64x8x128xf32>, %start: tensor<64x128xf32>) {
    %all, %end = hydra.loop @scan(%x, %start) : (tensor<64x8x128xf32>, tensor<64x128xf32>) -> (tensor<64x8x128xf32>, tensor<64x128xf32>)
    hydra.return all = %all, end = %end : tensor<64x8x128xf32>, tensor<64x128xf32>
  }
  hydra.entry @f(%x: tensor<64x8x128xf32>, %start: tensor<1x128xf32>) {
    %end = hydra.loop @cross(%x, %start) : (tensor<64x8x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
    hydra.return end = %end : tensor<1x128xf32>
  }

  hydra.entry @recurrence(%chunk0: tensor<3x1x8xf32>, %carried0: tensor<3x1x8xf32>, %kept0: tensor<3x1x8xf32>) scan <131 over [1] carried 1 stacked [1]> {
    %turned = hydra.mul %carried0, %kept0 : tensor<3x1x8xf32>, tensor<3x1x8xf32>
    %next = hydra.add %turned, %chunk0 : tensor<3x1x8xf32>, tensor<3x1x8xf32>
    hydra.return joined0 = %carried0, carried0 = %next : tensor<3x1x8xf32>, tensor<3x1x8xf32>
  }
  // CHECK-LABEL: plan.program @g
  // CHECK: plan.loop 131({{.*}}) slices 24 {
  hydra.entry @g(%x: tensor<3x131x8xf32>, %start: tensor<3x1x8xf32>, %q: tensor<3x1x8xf32>) {
    %all, %end = hydra.loop @recurrence(%x, %start, %q) : (tensor<3x131x8xf32>, tensor<3x1x8xf32>, tensor<3x1x8xf32>) -> (tensor<3x131x8xf32>, tensor<3x1x8xf32>)
    hydra.return all = %all, end = %end : tensor<3x131x8xf32>, tensor<3x1x8xf32>
  }
}
