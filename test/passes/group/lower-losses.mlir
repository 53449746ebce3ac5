// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-lower-losses | FileCheck %s

// Cross entropy becomes a log-sum-exp and a loss per row, and one division by the rows that count.
// CHECK-LABEL: hydra.entry @loss
// CHECK-NOT: hydra.cross_entropy
// CHECK: hydra.reduce_max
// CHECK: hydra.exp
// CHECK: hydra.log
// CHECK: hydra.return loss =
hydra.model @m version 1 {
  hydra.entry @loss(%z: [6, 11] f32, %labels: [6] i32) {
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
}

// -----

// The global norm becomes a sum of squares for every tensor and one square root.
// CHECK-LABEL: hydra.entry @norm
// CHECK-NOT: hydra.global_norm
// CHECK-COUNT-2: hydra.mul
// CHECK: hydra.sqrt
hydra.model @m version 1 {
  hydra.entry @norm(%a: [6, 11] f32, %b: [5] f32) {
    %n = hydra.global_norm %a, %b
    hydra.return n = %n
  }
}

// -----

// Rows taken by several numbers each are lookups that are added in f32; those by one number, as many as places,
// are row-wise already.
// CHECK-LABEL: hydra.entry @rows
// CHECK: hydra.take_rows %x, %{{.*}}, %{{.*}} : tensor<6x11xbf16>, tensor<6xi32>, tensor<6xi32>
// CHECK-COUNT-2: hydra.embedding {{.*}} : tensor<6xi32>, tensor<6x11xbf16>
// CHECK: hydra.add {{.*}} : tensor<6x11xf32>, tensor<6x11xf32>
// CHECK: hydra.cast {{.*}} to = bf16
// CHECK-NOT: hydra.take_rows
hydra.model @m version 1 {
  hydra.entry @rows(%x: [6, 11] bf16, %i: [6] i32, %j: [6] i32, %k: [6, 2] i32) {
    %a = hydra.take_rows %x, %i, %j
    %b = hydra.take_rows %a, %k, %k
    hydra.return b = %b
  }
}

// -----

// Ends of a spectrum become real where nobody says that they are, also those that are not finite.
// CHECK-LABEL: hydra.entry @transforms
// CHECK: %[[S:.*]] = hydra.rfft %x : tensor<3x6xf32>
// CHECK: hydra.irfft %[[S]] real_ends : tensor<3x4x2xf32>
// CHECK: %[[W:.*]] = hydra.broadcast %{{.*}} shape = [3, 4, 2] : tensor<4x2xf32>
// CHECK: %[[N:.*]] = hydra.compare %[[W]], %[[ZERO:.*]] is = "eq"
// CHECK: %[[M:.*]] = hydra.mul %y, %[[W]]
// CHECK: %[[R:.*]] = hydra.select %[[N]], %[[ZERO]], %[[M]]
// CHECK: hydra.irfft %[[R]] real_ends : tensor<3x4x2xf32>
// CHECK-NOT: hydra.irfft
hydra.model @m version 1 {
  hydra.entry @transforms(%x: [3, 6] f32, %y: [3, 4, 2] f32) {
    %s = hydra.rfft %x
    %a = hydra.irfft %s real_ends
    %b = hydra.irfft %y
    hydra.return a = %a, b = %b
  }
}
