// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions='single=true' --hydra-assign-layouts --hydra-align-rows | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions='single=true' --hydra-assign-layouts --hydra-align-rows --hydra-to-plan='cuda=true' | FileCheck %s --check-prefix=PLAN

// Scores of 101 words lie 104 apart for the products that make and read them.
// CHECK-LABEL: hydra.entry @scores
// CHECK: hydra.linear {{.*}}hydra.pitch = array<i64: 104>
// CHECK: hydra.fused {{.*}}hydra.pitch = array<i64: 104>
// CHECK: hydra.matmul
// CHECK-NOT: hydra.pitch
// PLAN: plan.buffer{{.*}}memref<6x104xf32>
// PLAN: plan.view{{.*}}memref<6x101xf32, strided<[104, 1]>>
hydra.model @m version 1 {
  hydra.param @w [101, 8] init = ones
  hydra.entry @scores(%x: [6, 8] f32) {
    %w = hydra.use @w
    %z = hydra.linear %x, %w
    %e = hydra.exp %z
    %y = hydra.matmul %e, %w
    hydra.return y = %y
  }
}

// -----

// What a program returns lies densely; two words would grow by more than an eighth.
// CHECK-LABEL: hydra.entry @dense
// CHECK-NOT: hydra.pitch
hydra.model @m version 1 {
  hydra.param @w [101, 8] init = ones
  hydra.param @v [2, 8] init = ones
  hydra.entry @dense(%x: [6, 8] f32) {
    %w = hydra.use @w
    %v = hydra.use @v
    %z = hydra.linear %x, %w
    %few = hydra.linear %x, %v
    %e = hydra.exp %few
    %y = hydra.matmul %e, %v
    hydra.return z = %z, y = %y
  }
}
