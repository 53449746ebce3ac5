// DEFINE: %{grad} = hydra-opt %s --split-input-file
// DEFINE: %{join} = --hydra-bind --hydra-differentiate=programs=f --hydra-mixed-precision=policy=bf16 --canonicalize --cse --hydra-join-weight-gradients=percent=50
// DEFINE: %{skip} = --hydra-form-fusions --hydra-assign-layouts --hydra-skip-rows
// DEFINE: %{hopper} = --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma"]>}'
// RUN: %{grad} %{hopper} %{join} %{skip} | FileCheck %s --check-prefix=SKIP
// RUN: %{grad} %{hopper} %{join} %{skip} --hydra-to-plan | FileCheck %s --check-prefix=PLAN
// RUN: %{grad} %{hopper} %{join} %{skip} --hydra-to-plan --hydra-expand-kernels | FileCheck %s
// RUN: %{grad} %{join} %{skip} | FileCheck %s --check-prefix=APART

// A weight that multiplies all rows once, and twice those that the device counts: one sum over the rows of all, which
// ends in each part where its rows do.
// SKIP-LABEL: hydra.model @recursions
// SKIP-COUNT-2: hydra.compact
// SKIP: hydra.matmul {{.*}} transpose_a {{.*}}hydra.active_parts = array<i64: 1, 0, -1>{{.*}} : tensor<1536x64xbf16>, tensor<1536x64xbf16>
// SKIP-NOT: transpose_a
// In a plan it is three terms one after the other, the first of which is zeros where there are no rows.
// PLAN-LABEL: plan.module @recursions
// PLAN: plan.compact{{.*}} -> (%{{.*}}, %{{.*}}, %[[FIRST:[0-9]+]] : memref<i32>)
// PLAN: plan.compact{{.*}} -> (%{{.*}}, %{{.*}}, %[[SECOND:[0-9]+]] : memref<i32>)
// PLAN: plan.fill 0.000000e+00 -> (%[[SUM:[0-9]+]] : memref<64x64xf32>)
// PLAN: plan.matmul(%{{[0-9]+}} : memref<64x64xbf16>, %{{[0-9]+}} : memref<64x64xbf16>) -> (%[[SUM]] : memref<64x64xf32>) {{{.*}}transpose_a}
// PLAN: plan.switch %[[FIRST]] by 64 : memref<i32> {
// PLAN-NEXT: }, {
// PLAN: plan.matmul(%{{[0-9]+}} : memref<64x64xbf16>, %{{[0-9]+}} : memref<64x64xbf16>) -> (%[[SUM]] : memref<64x64xf32>) {accumulate{{.*}}transpose_a}
// PLAN: {{^      [}]$}}
// PLAN: plan.matmul(%{{[0-9]+}} : memref<512x64xbf16>, %{{[0-9]+}} : memref<512x64xbf16>) -> (%[[SUM]] : memref<64x64xf32>) {accumulate{{.*}}transpose_a}
// PLAN-NOT: plan.matmul
// PLAN: plan.output
// And one launch is all three.
// CHECK-LABEL: plan.module @recursions
// CHECK: plan.kernel @[[KERNEL:counted_sum_[0-9]+]] {{.*}} pairs[] = {{[{][{]}}a0, a1, hopper_matmul::rowsOf<512>(a2)}, {a3, a4, hopper_matmul::rowsOf<512>(a5)}, {a6, a7, 512}};\0AouterOfPairs<3, 1536, 64, 64, 64, 64, 64, {{[0-9]+, [0-9]+, [0-9]+}}>(pairs, a8, a9, a10);
// CHECK: plan.program
// CHECK-NOT: plan.switch
// CHECK-NOT: transpose_a
// CHECK: plan.launch @[[KERNEL]](
// CHECK-NOT: plan.switch
// CHECK-NOT: transpose_a
// CHECK: plan.output
// Without warpgroups the terms stay apart.
// APART-LABEL: hydra.model @recursions
// APART-NOT: parts_in_place
// APART: hydra.return
hydra.model @recursions version 1 {
  hydra.param @w [64, 64] init = normal(0.1)
  hydra.entry @f(%x: [512, 64] f32, %first: [512] f32, %second: [512] f32) {
    %zero = hydra.constant value = 0
    %w = hydra.use @w
    %a = hydra.tanh %x
    %y = hydra.linear %a, %w
    %m1 = hydra.compare %first, %zero is = "gt"
    %i1, %p1, %n1 = hydra.compact %m1
    %r1 = hydra.take_rows %y, %i1, %p1
    %h1 = hydra.linear %r1, %w
    %y1 = hydra.take_rows %h1, %p1, %i1
    %m2 = hydra.compare %second, %zero is = "gt"
    %i2, %p2, %n2 = hydra.compact %m2
    %r2 = hydra.take_rows %y1, %i2, %p2
    %h2 = hydra.linear %r2, %w
    %y2 = hydra.take_rows %h2, %p2, %i2
    %squares = hydra.mul %y2, %y2
    %loss = hydra.sum %squares axes = [0, 1]
    hydra.return loss = %loss
  }
}
