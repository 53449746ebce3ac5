// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-assign-layouts | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions --hydra-assign-layouts | FileCheck %s --check-prefix=GROUPS

// The heads of a projection are views of it; attention takes their strides.
// CHECK-LABEL: hydra.entry @heads
// CHECK: hydra.slice {{.*}} {hydra.view}
// CHECK: hydra.reshape {{.*}} {hydra.view}
// CHECK-NOT: hydra.copy
// CHECK: hydra.attention
hydra.model @m version 1 {
  hydra.entry @heads(%x: [2, 5, 24] f32) {
    %q0 = hydra.slice %x axis = 2 start = 0 size = 8
    %k0 = hydra.slice %x axis = 2 start = 8 size = 8
    %v0 = hydra.slice %x axis = 2 start = 16 size = 8
    %q = hydra.reshape %q0 shape = [2, 5, 2, 4]
    %k = hydra.reshape %k0 shape = [2, 5, 2, 4]
    %v = hydra.reshape %v0 shape = [2, 5, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    hydra.return o = %o
  }
}

// -----

// Rows that do not merge into one stride are copied before a linear layer.
// CHECK-LABEL: hydra.entry @rows
// CHECK: %[[S:.*]] = hydra.slice {{.*}} {hydra.view}
// CHECK: %[[C:.*]] = hydra.copy %[[S]]
// CHECK: hydra.linear %[[C]]
hydra.model @m version 1 {
  hydra.param @w [3, 4] init = ones
  hydra.entry @rows(%x: [2, 5, 4] f32) {
    %w = hydra.use @w
    %s = hydra.slice %x axis = 1 start = 0 size = 3
    %y = hydra.linear %s, %w
    hydra.return y = %y
  }
}

// -----

// A reshape that no strides can express works on a copy.
// CHECK-LABEL: hydra.entry @flatten
// CHECK: %[[T:.*]] = hydra.transpose {{.*}} {hydra.view}
// CHECK: %[[C:.*]] = hydra.copy %[[T]]
// CHECK: hydra.reshape %[[C]] {{.*}} {hydra.view}
hydra.model @m version 1 {
  hydra.entry @flatten(%x: [2, 5] f32) {
    %t = hydra.transpose %x order = [1, 0]
    %y = hydra.reshape %t shape = [10]
    hydra.return y = %y
  }
}

// -----

// What several read of a copy is copied once; and of a broadcast of columns the column is copied, not what repeats it.
// CHECK-LABEL: hydra.entry @copied
// CHECK: %[[U:.*]] = hydra.transpose {{.*}} {hydra.view} : tensor<3x4x2xf32>
// CHECK: %[[C:.*]] = hydra.copy %[[U]]
// CHECK-NEXT: hydra.matmul %[[C]], %a
// CHECK-NEXT: hydra.matmul %[[C]], %b
// GROUPS-LABEL: hydra.entry @copied
// GROUPS: %[[S:.*]] = hydra.reshape {{.*}} {hydra.view} : tensor<2x4xf32>
// GROUPS-NOT: hydra.copy %{{.*}} : tensor<2x3x4xf32>
// GROUPS: %[[ROW:.*]] = hydra.copy %[[S]] : tensor<2x1x4xf32>
// GROUPS-NEXT: %[[ROWS:.*]] = hydra.broadcast %[[ROW]] {{.*}} {hydra.view}
// GROUPS-NEXT: hydra.fused {{.*}} = %[[ROWS]]
hydra.model @m version 1 {
  hydra.entry @copied(%x: [2, 4, 3] f32, %a: [2, 4, 5] f32, %b: [2, 4, 5] f32, %c: [4, 2] f32, %y: [2, 3, 4] f32) {
    %t = hydra.transpose %x order = [2, 1, 0]
    %u = hydra.transpose %t order = [2, 0, 1]
    %p = hydra.matmul %u, %a
    %q = hydra.matmul %u, %b
    %columns = hydra.transpose %c order = [1, 0]
    %row = hydra.reshape %columns shape = [2, 1, 4]
    %rows = hydra.broadcast %row shape = [2, 3, 4]
    %z = hydra.add %y, %rows
    hydra.return p = %p, q = %q, z = %z
  }
}

// -----

// A group in a program takes numbers that are the same for neighbouring columns as they are; operations by themselves want
// them in every column.
// CHECK-LABEL: hydra.entry @repeated
// CHECK: %[[ALL:.*]] = hydra.broadcast {{.*}} {hydra.view}
// CHECK: %[[COPY:.*]] = hydra.copy %[[ALL]]
// CHECK: hydra.mul %{{.*}}, %[[COPY]]
// GROUPS-LABEL: hydra.entry @repeated
// GROUPS: %[[ALL:.*]] = hydra.broadcast {{.*}} {hydra.view}
// GROUPS-NOT: hydra.copy
// GROUPS: hydra.fused rows = [5] inner = [4, 3] ({{.*}} = %[[ALL]]
hydra.model @m version 1 {
  hydra.entry @repeated(%x: [5, 4, 3] f32, %r: [5, 4] f32) {
    %c = hydra.reshape %r shape = [5, 4, 1]
    %all = hydra.broadcast %c shape = [5, 4, 3]
    %y = hydra.mul %x, %all
    %s = hydra.sum %y axes = [1, 2]
    hydra.return y = %y, s = %s
  }
}

// -----

// A sequence that repeats numbers is cut where it lies, also by matmuls; one that is transposed is copied for them.
// CHECK-LABEL: hydra.entry @cut_repeated
// CHECK: %[[R:.*]] = hydra.broadcast {{.*}} {hydra.view}
// CHECK: %[[T:.*]] = hydra.transpose {{.*}} {hydra.view}
// CHECK: %[[C:.*]] = hydra.copy %[[T]]
// CHECK: hydra.loop @{{.*}}(%[[R]], %[[C]], %s)
hydra.model @m version 1 {
  hydra.entry @cut_repeated(%x: [64, 4, 8] f32, %w: [4, 2, 64, 8] f32, %s: [2, 8, 8] f32) {
    %r0 = hydra.reshape %x shape = [1, 64, 4, 8]
    %r = hydra.broadcast %r0 shape = [2, 64, 4, 8]
    %t = hydra.transpose %w order = [1, 2, 0, 3]
    %y, %end = hydra.scan axis = 1 chunk = 1 over(%a = %r, %b = %t) carry(%c = %s) {
      %a1 = hydra.reshape %a shape = [2, 4, 8]
      %b1 = hydra.reshape %b shape = [2, 4, 8]
      %m = hydra.matmul %a1, %c
      %n = hydra.matmul %b1, %m transpose_a
      %z = hydra.reshape %m shape = [2, 1, 4, 8]
      hydra.yield %z, %n
    }
    hydra.return y = %y, end = %end
  }
}

// -----

// So is one whose rows are long, which are read as fast as whole chunks.
// CHECK-LABEL: hydra.entry @cut_rows
// CHECK: %[[T:.*]] = hydra.transpose {{.*}} {hydra.view}
// CHECK-NOT: hydra.copy
// CHECK: hydra.loop @{{.*}}(%[[T]], %s)
hydra.model @m version 1 {
  hydra.entry @cut_rows(%w: [4, 2, 64, 32] f32, %s: [2, 32, 8] f32) {
    %t = hydra.transpose %w order = [1, 2, 0, 3]
    %y, %end = hydra.scan axis = 1 chunk = 1 over(%b = %t) carry(%c = %s) {
      %b1 = hydra.reshape %b shape = [2, 4, 32]
      %m = hydra.matmul %b1, %c
      %n = hydra.matmul %b1, %m transpose_a
      %z = hydra.reshape %m shape = [2, 1, 4, 8]
      hydra.yield %z, %n
    }
    hydra.return y = %y, end = %end
  }
}
