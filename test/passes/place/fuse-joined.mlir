// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, rates = {graph_launch_seconds = 2.2e-6, loop_step_seconds = 5.0e-7, block_flops = 5.0e11, block_bandwidth = 1.5e11}>}' --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-fuse-loops | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, block_shared = 232448, multiprocessor_shared = 232448, rates = {graph_launch_seconds = 2.2e-6, loop_step_seconds = 5.0e-7, block_flops = 5.0e11, block_bandwidth = 1.5e11}>}' --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-fuse-loops --hydra-expand-kernels | FileCheck %s --check-prefix=KERNEL

// Lanes write two joined results side by side, and carry what they have written to one of them: it is read where it was
// written, and the other is apart. The sequence goes backward and is cut where it lies, transposed.
// CHECK-LABEL: plan.program @e
// CHECK: plan.loop 9({{.*}} by -96 : {{.*}} by -64 : {{.*}}) slices 24 {
// KERNEL-DAG: plan.kernel @lanes_{{[0-9]+}} rows 0 grain 0 launch [1, 1, 1, 32, 0] source

// Blocks do so where rows are summed, behind a barrier: threads of a block read what others have written.
// CHECK-LABEL: plan.program @f
// CHECK: plan.loop 8({{.*}} by 1024 : {{.*}}) slices 64 {
// KERNEL-DAG: plan.kernel @loop_{{[0-9]+}} rows 0 grain 0 launch [64, 1, 1, 512, {{[0-9]+}}] source
// KERNEL-NOT: plan.loop

// Of what is carried, lanes touch memory once: 192 bytes, beside 864 of each sequence.
// KERNEL-LABEL: plan.program @e
// KERNEL: plan.launch @lanes_{{.*}} {bytes = 2784 : i64
// KERNEL-NOT: plan.loop
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @body(%chunk0: tensor<3x1x8xf32>, %carried0: tensor<3x1x8xf32>) scan <9 over [1] carried 1 stacked [1, 1] reverse true> {
    %turned = hydra.mul %carried0, %chunk0 : tensor<3x1x8xf32>, tensor<3x1x8xf32>
    %next = hydra.add %turned, %chunk0 : tensor<3x1x8xf32>, tensor<3x1x8xf32>
    hydra.return joined0 = %carried0, joined1 = %next, carried0 = %next : tensor<3x1x8xf32>, tensor<3x1x8xf32>, tensor<3x1x8xf32>
  }
  hydra.entry @e(%x: tensor<9x3x8xf32>, %start: tensor<3x1x8xf32>) {
    %t = hydra.transpose %x order = [1, 0, 2] : tensor<9x3x8xf32>
    %a, %b, %c = hydra.loop @body(%t, %start) : (tensor<3x9x8xf32>, tensor<3x1x8xf32>) -> (tensor<3x9x8xf32>, tensor<3x9x8xf32>, tensor<3x1x8xf32>)
    %all = hydra.concat %a, %b axis = 2 : tensor<3x9x8xf32>, tensor<3x9x8xf32>
    hydra.return a = %all, b = %c : tensor<3x9x16xf32>, tensor<3x1x8xf32>
  }
  hydra.entry @rows(%chunk0: tensor<64x1x128xf32>, %carried0: tensor<64x1x128xf32>) scan <8 over [1] carried 1 stacked [1, 1]> {
    %sum = hydra.sum %chunk0 axes = [2] keep : tensor<64x1x128xf32>
    %all = hydra.broadcast %sum shape = [64, 1, 128] : tensor<64x1x1xf32>
    %y = hydra.mul %all, %carried0 : tensor<64x1x128xf32>, tensor<64x1x128xf32>
    %next = hydra.add %carried0, %y : tensor<64x1x128xf32>, tensor<64x1x128xf32>
    hydra.return joined0 = %y, joined1 = %next, carried0 = %next : tensor<64x1x128xf32>, tensor<64x1x128xf32>, tensor<64x1x128xf32>
  }
  hydra.entry @f(%x: tensor<64x8x128xf32>, %start: tensor<64x1x128xf32>) {
    %a, %b, %c = hydra.loop @rows(%x, %start) : (tensor<64x8x128xf32>, tensor<64x1x128xf32>) -> (tensor<64x8x128xf32>, tensor<64x8x128xf32>, tensor<64x1x128xf32>)
    %all = hydra.concat %a, %b axis = 2 : tensor<64x8x128xf32>, tensor<64x8x128xf32>
    hydra.return a = %all, b = %c : tensor<64x8x256xf32>, tensor<64x1x128xf32>
  }
}
