// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-differentiate=programs=f --canonicalize --cse --hydra-join-weight-gradients=percent=50 | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-differentiate=programs=f --canonicalize --cse --hydra-join-weight-gradients=percent=0 | FileCheck %s --check-prefix=LITTLE
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-differentiate=programs=f --canonicalize --cse --hydra-join-weight-gradients=percent=50 --hydra-form-fusions --hydra-assign-layouts --hydra-schedule --hydra-to-plan | FileCheck %s --check-prefix=PLAN

// The gradient of a weight that three layers multiply with is one matmul, where the last of three stood; what else is
// added to it still is. Operands of the backward pass live longer, which makes the peak higher.
// CHECK-LABEL: hydra.model @three
// CHECK: %[[X1:.*]] = hydra.tanh %x
// CHECK: %[[X2:.*]] = hydra.tanh
// CHECK: %[[X3:.*]] = hydra.tanh
// CHECK: %[[G3:.*]] = hydra.add %[[Y:.*]], %[[Y]] : tensor<128x64xf32>
// CHECK-NOT: transpose_a
// CHECK: %[[G:.*]] = hydra.concat %[[G3]], %{{.*}}, %{{.*}} axis = 0 {hydra.parts_in_place}
// CHECK-NEXT: %[[X:.*]] = hydra.concat %[[X3]], %[[X2]], %[[X1]] axis = 0 {hydra.parts_in_place}
// CHECK-NEXT: %[[DW:.*]] = hydra.matmul %[[G]], %[[X]] transpose_a : tensor<384x64xf32>, tensor<384x64xf32>
// CHECK-NEXT: %[[OWN:.*]] = hydra.add %w, %w
// CHECK-NEXT: %[[SUM:.*]] = hydra.add %[[OWN]], %[[DW]]
// CHECK-NEXT: hydra.return {{.*}} = %[[SUM]]
// LITTLE-LABEL: hydra.model @three
// LITTLE-COUNT-3: hydra.matmul {{.*}} transpose_a : tensor<128x64xf32>
// LITTLE-NOT: transpose_a
// LITTLE: hydra.return
// Every operand is made in its place, though other matmuls and groups read it too.
// PLAN-LABEL: plan.module @three
// PLAN-NOT: plan.copy
// PLAN: plan.matmul(%{{.*}} : memref<384x64xf32>, %{{.*}} : memref<384x64xf32>) -> (%{{.*}} : memref<64x64xf32>)
// PLAN-NOT: plan.copy
// PLAN: plan.output
hydra.model @three version 1 {
  hydra.param @w [64, 64] init = normal(0.1)
  hydra.entry @f(%x: [128, 64] f32) {
    %w = hydra.use @w
    %a = hydra.tanh %x
    %ha = hydra.linear %a, %w
    %b = hydra.tanh %ha
    %hb = hydra.linear %b, %w
    %c = hydra.tanh %hb
    %hc = hydra.linear %c, %w
    %squares = hydra.mul %hc, %hc
    %weights = hydra.mul %w, %w
    %of_rows = hydra.sum %squares axes = [0, 1]
    %of_weights = hydra.sum %weights axes = [0, 1]
    %loss = hydra.add %of_rows, %of_weights
    hydra.return loss = %loss
  }
}

// -----

// What two weights multiply is joined once, of layers with different numbers of rows, too.
// CHECK-LABEL: hydra.model @both
// CHECK-COUNT-3: hydra.concat {{.*}} axis = 0 {hydra.parts_in_place}
// CHECK-NOT: parts_in_place
// CHECK: hydra.return
// PLAN-LABEL: plan.module @both
// PLAN-NOT: plan.copy
// PLAN-COUNT-2: plan.matmul(%{{.*}} : memref<48x{{8|16}}xf32>, %{{.*}} : memref<48x{{8|16}}xf32>)
// PLAN: plan.output
hydra.model @both version 1 {
  hydra.param @u [16, 8] init = normal(0.1)
  hydra.param @v [16, 8] init = normal(0.1)
  hydra.entry @f(%x: [32, 8] f32, %z: [16, 8] f32) {
    %u = hydra.use @u
    %v = hydra.use @v
    %a = hydra.tanh %x
    %b = hydra.tanh %z
    %ua = hydra.linear %a, %u
    %va = hydra.linear %a, %v
    %ub = hydra.linear %b, %u
    %vb = hydra.linear %b, %v
    %pa = hydra.mul %ua, %va
    %pb = hydra.mul %ub, %vb
    %sa = hydra.sum %pa axes = [0, 1]
    %sb = hydra.sum %pb axes = [0, 1]
    %loss = hydra.add %sa, %sb
    hydra.return loss = %loss
  }
}

// -----

// An input lies where it lies, and so does a part of another value; numbers whose rows are no whole 16 bytes would be
// read apart. Sums of these stay.
// CHECK-LABEL: hydra.model @elsewhere
// CHECK-NOT: parts_in_place
// CHECK: hydra.return
hydra.model @elsewhere version 1 {
  hydra.param @w [8, 8] init = normal(0.1)
  hydra.param @odd [6, 8] init = normal(0.1)
  hydra.param @part [8, 8] init = normal(0.1)
  hydra.entry @f(%x: [16, 8] f32) {
    %w = hydra.use @w
    %h = hydra.linear %x, %w
    %a = hydra.tanh %h
    %b = hydra.linear %a, %w
    %odd = hydra.use @odd
    %c = hydra.linear %a, %odd
    %tb = hydra.tanh %b
    %d = hydra.linear %tb, %odd
    %part = hydra.use @part
    %half = hydra.slice %tb axis = 0 start = 0 size = 8
    %rest = hydra.slice %tb axis = 0 start = 8 size = 8
    %e = hydra.linear %half, %part
    %f = hydra.linear %rest, %part
    %cd = hydra.mul %c, %d
    %ef = hydra.mul %e, %f
    %s = hydra.sum %cd axes = [0, 1]
    %t = hydra.sum %ef axes = [0, 1]
    %loss = hydra.add %s, %t
    hydra.return loss = %loss
  }
}

// -----

// Gathered rows end where the device says, each time elsewhere: their matmuls stay apart where no kernel reads all
// numbers of rows (expand-counted-sums.mlir has one that does).
// CHECK-LABEL: hydra.model @gathered
// CHECK-NOT: parts_in_place
// CHECK: hydra.return
hydra.model @gathered version 1 {
  hydra.param @w [16, 16] init = normal(0.1)
  hydra.entry @f(%x: [512, 16] f32, %first: [512] f32, %second: [512] f32) {
    %zero = hydra.constant value = 0
    %w = hydra.use @w
    %m1 = hydra.compare %first, %zero is = "gt"
    %i1, %p1, %n1 = hydra.compact %m1
    %r1 = hydra.take_rows %x, %i1, %p1
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
