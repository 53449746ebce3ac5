// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions --hydra-assign-layouts --hydra-skip-rows | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions --hydra-assign-layouts --hydra-skip-rows --hydra-to-plan | FileCheck %s --check-prefix=PLAN

// Active rows go through two matmuls and a function between them; then they are brought back. All of it up to
// there stops behind the last of them, in eighths of 512 rows: nine cases, of which the first does nothing.
// CHECK-LABEL: hydra.model @part
// CHECK: hydra.compact {{.*}}hydra.compaction = 0
// CHECK: hydra.fused {{.*}}attributes {hydra.active_rows = array<i64: 0, 0>}
// CHECK: hydra.linear {{.*}}hydra.active_rows = array<i64: 0, 0>
// CHECK: hydra.fused {{.*}}attributes {hydra.active_rows = array<i64: 0, 0>}
// CHECK: hydra.linear {{.*}}hydra.active_rows = array<i64: 0, 0>
// CHECK: hydra.fused
// CHECK-NOT: hydra.active_rows
// CHECK: hydra.return
// PLAN-LABEL: plan.module @part
// PLAN: plan.compact(%{{.*}}) -> (%{{.*}}, %{{.*}}, %[[COUNT:[0-9]+]]
// PLAN: plan.switch %[[COUNT]] by 64 : memref<i32> {
// PLAN-NEXT: }, {
// PLAN-NEXT: plan.launch @{{.*}}limit = 64
// PLAN: plan.matmul(%{{[0-9]+}} : memref<64x16xf32>, %{{[a-z0-9]+}} : memref<512x16xf32>) -> (%{{[0-9]+}} : memref<64x512xf32>)
// PLAN: limit = 448
// PLAN: plan.matmul(%{{[0-9]+}} : memref<512x16xf32>, %{{[a-z0-9]+}} : memref<512x16xf32>) -> (%{{[0-9]+}} : memref<512x512xf32>)
// PLAN-NOT: plan.switch
// PLAN: plan.output "y"
hydra.model @part version 1 {
  hydra.param @up [512, 16] init = normal(0.1)
  hydra.param @down [16, 512] init = normal(0.1)
  hydra.entry @f(%x: [512, 16] f32, %score: [512] f32) {
    %zero = hydra.constant value = 0
    %mask = hydra.compare %score, %zero is = "gt"
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %x, %index, %place
    %up = hydra.use @up
    %down = hydra.use @down
    %h = hydra.linear %some, %up
    %a = hydra.silu %h
    %y0 = hydra.linear %a, %down
    %y1 = hydra.take_rows %y0, %place, %index
    %y = hydra.add %x, %y1
    hydra.return y = %y
  }
}

// -----

// Whose rows are looked at otherwise works on all of them: here the result itself is returned, and a bias makes its zeros
// something else.
// CHECK-LABEL: hydra.model @seen
// CHECK-NOT: hydra.active_rows
// PLAN-LABEL: plan.module @seen
// PLAN-NOT: plan.switch
hydra.model @seen version 1 {
  hydra.param @up [32, 16] init = normal(0.1)
  hydra.param @b [32] init = ones
  hydra.entry @f(%x: [128, 16] f32, %score: [128] f32) {
    %zero = hydra.constant value = 0
    %mask = hydra.compare %score, %zero is = "gt"
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %x, %index, %place
    %up = hydra.use @up
    %b = hydra.use @b
    %h = hydra.linear %some, %up, %b
    hydra.return y = %h
  }
}

// -----

// A matmul over the rows leaves zeros out; without any row it is zero.
// CHECK-LABEL: hydra.model @sum
// CHECK: hydra.fused {{.*}}attributes {hydra.active_rows = array<i64: 0, 0>}
// CHECK: hydra.matmul {{.*}}hydra.active_rows = array<i64: 0, 0>
// PLAN-LABEL: plan.module @sum
// PLAN: plan.switch %{{[0-9]+}} by 64
// PLAN-NEXT: plan.fill 0.000000e+00 -> (%[[W:[0-9]+]] : memref<16x8xf32>)
// PLAN: plan.matmul(%{{[0-9]+}} : memref<64x16xf32>, %{{[a-z0-9]+}} : memref<64x8xf32>) -> (%[[W]] : memref<16x8xf32>) {{{.*}}transpose_a}
hydra.model @sum version 1 {
  hydra.entry @f(%x: [128, 16] f32, %z: [128, 8] f32, %score: [128] f32) {
    %zero = hydra.constant value = 0
    %mask = hydra.compare %score, %zero is = "gt"
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %x, %index, %place
    %w = hydra.matmul %some, %z transpose_a
    hydra.return w = %w
  }
}
