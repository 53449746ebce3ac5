// DEFINE: %{plan} = hydra-opt %s --split-input-file
// DEFINE: %{lower} = --hydra-bind --hydra-form-fusions --hydra-assign-layouts --hydra-skip-rows --hydra-to-plan --hydra-expand-kernels
// RUN: %{plan} --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma"]>}' %{lower} | FileCheck %s
// RUN: %{plan} --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912>}' %{lower} | FileCheck %s --check-prefix=SWITCH
// RUN: %{plan} %{lower} | FileCheck %s --check-prefix=CPU

// A number of rows that the device knows is read by kernels and by matmuls: no switch. They count for half of the work on all.
// CHECK-LABEL: plan.module @part
// CHECK: plan.kernel @[[SILU:silu_[0-9]+_counted]] rows 512 grain {{[0-9]+}} counted 1 [memref<512x512xbf16>, memref<512x512xbf16>, memref<i32>] {
// CHECK-NOT: plan.kernel @silu
// CHECK: plan.kernel @[[UP:counted_linear_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 384, {{[0-9]+}}] source "{{.*}} linearOfFirstRows<512, 512, 64, false, 64, 64, 512, {{[0-9]+, [0-9]+, [0-9]+}}>(a0, a1, a2, a3, a4, a5);
// CHECK: plan.kernel @[[DOWN:counted_linear_[0-9]+]] {{.*}} linearOfFirstRows<512, 64, 512, false, 512, 512, 64, {{[0-9]+, [0-9]+, [0-9]+}}>(a0, a1, a2, a3, a4, a5);
// CHECK: plan.program @f
// CHECK: plan.launch @compact{{.*}}write %[[COUNT:[0-9]+]] : memref<i32>)
// CHECK: plan.launch @[[UP]](read %{{[0-9]+}} : memref<512x64xbf16>, read %{{[0-9]+}} : memref<512x64xbf16>, read %[[COUNT]] : memref<i32>, write %[[H:[0-9]+]] : memref<512x512xbf16>, write %{{[0-9]+}} : memref<{{[0-9]+}}xi32>, update %{{[0-9]+}} : memref<16xi32>) {{.*}}flops = 16777216
// CHECK: plan.launch @[[SILU]](read %[[H]] : memref<512x512xbf16>, write %[[A:[0-9]+]] : memref<512x512xbf16>, read %[[COUNT]] : memref<i32>) {{.*}}flops = 131072
// CHECK: plan.launch @[[DOWN]](read %[[A]] : memref<512x512xbf16>, {{.*}}read %[[COUNT]] : memref<i32>, write
// CHECK-NOT: plan.switch
// CHECK-NOT: plan.matmul
// CHECK: plan.output "y"
// Without warpgroups, and on a CPU, there is a switch.
// SWITCH-LABEL: plan.module @part
// SWITCH-NOT: counted 1
// SWITCH: plan.switch %{{[0-9]+}} by 64
// CPU-LABEL: plan.module @part
// CPU-NOT: counted 1
// CPU: plan.switch %{{[0-9]+}} by 64
hydra.model @part version 1 {
  hydra.param @up [512, 64] init = normal(0.1)
  hydra.param @down [64, 512] init = normal(0.1)
  hydra.entry @f(%x: [512, 64] bf16, %score: [512] f32) {
    %zero = hydra.constant value = 0
    %mask = hydra.compare %score, %zero is = "gt"
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %x, %index, %place
    %up0 = hydra.use @up
    %down0 = hydra.use @down
    %up = hydra.cast %up0 to = bf16
    %down = hydra.cast %down0 to = bf16
    %h = hydra.linear %some, %up
    %a = hydra.silu %h
    %y0 = hydra.linear %a, %down
    %y1 = hydra.take_rows %y0, %place, %index
    %y = hydra.add %x, %y1
    hydra.return y = %y
  }
}

// -----

// A sum over the rows there are. What gathers them does so for those alone.
// CHECK-LABEL: plan.module @sum
// CHECK: plan.kernel @[[TAKE:take_rows_[0-9]+_counted]] rows 128 grain {{[0-9]+}} counted 1
// CHECK: plan.kernel @[[SUM:counted_outer_[0-9]+]] {{.*}} outerOfFirstRows<128, 16, 8, 16, 8, 8, {{[0-9]+, [0-9]+, [0-9]+}}>(a0, a1, a2, a3, a4, a5);
// CHECK: plan.launch @[[TAKE]]({{.*}}write %[[SOME:[0-9]+]] : memref<128x16xbf16>, read %[[COUNT:[0-9]+]] : memref<i32>)
// CHECK: plan.launch @[[SUM]](read %[[SOME]] : memref<128x16xbf16>, read %{{[0-9]+}} : memref<128x8xbf16>, read %[[COUNT]] : memref<i32>, write %{{[0-9]+}} : memref<16x8xbf16>,
// CHECK-NOT: plan.switch
hydra.model @sum version 1 {
  hydra.entry @f(%x: [128, 16] bf16, %z: [128, 8] bf16, %score: [128] f32) {
    %zero = hydra.constant value = 0
    %mask = hydra.compare %score, %zero is = "gt"
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %x, %index, %place
    %w = hydra.matmul %some, %z transpose_a
    hydra.return w = %w
  }
}

// -----

// Matmuls of f32 are the library's: there is a switch.
// CHECK-LABEL: plan.module @whole
// CHECK-NOT: counted 1
// CHECK: plan.switch %{{[0-9]+}} by 64
hydra.model @whole version 1 {
  hydra.entry @f(%x: [128, 16] f32, %z: [128, 8] f32, %score: [128] f32) {
    %zero = hydra.constant value = 0
    %mask = hydra.compare %score, %zero is = "gt"
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %x, %index, %place
    %w = hydra.matmul %some, %z transpose_a
    hydra.return w = %w
  }
}
