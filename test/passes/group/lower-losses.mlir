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

// -----

// The bias of several projections in one: sums of joined gradients are each part's, where that is made, and parts of
// them are these. What others read joined is summed joined, so are sums over the parts, and what is little.
// CHECK-LABEL: hydra.entry @biases
// CHECK: %[[SUM_Y:.*]] = hydra.sum %y axes = [0, 1] : tensor<2x2048x64xf32>
// CHECK: %[[A:.*]] = hydra.mul %x, %x
// CHECK-NEXT: %[[SUM_A:.*]] = hydra.sum %[[A]] axes = [0, 1] : tensor<2x2048x32xf32>
// CHECK-NEXT: hydra.mul %[[A]], %[[A]]
// CHECK-NEXT: %[[ALL:.*]] = hydra.concat %[[SUM_A]], %[[SUM_Y]] axis = 0 : tensor<32xf32>, tensor<64xf32>
// CHECK-NEXT: hydra.return first = %[[SUM_A]], all = %[[ALL]]
// CHECK: hydra.entry @read
// CHECK: %[[JOINED:.*]] = hydra.concat
// CHECK: hydra.sum %[[JOINED]] axes = [0, 1]
// CHECK: hydra.entry @over
// CHECK: %[[BOTH:.*]] = hydra.concat
// CHECK: hydra.sum %[[BOTH]] axes = [1, 2]
// CHECK: hydra.entry @kept
// CHECK-DAG: %[[LEFT:.*]] = hydra.sum %x axes = [0] keep : tensor<2x2048x32xf32>
// CHECK-DAG: %[[RIGHT:.*]] = hydra.sum %y axes = [0] keep : tensor<2x2048x64xf32>
// CHECK: %[[KEPT:.*]] = hydra.concat %[[LEFT]], %[[RIGHT]] axis = 2
// CHECK: hydra.slice %[[KEPT]] axis = 2 size = 32 start = 2
// CHECK: hydra.return part = %{{.*}}, first = %[[LEFT]]
// CHECK: hydra.entry @little
// CHECK: %[[LITTLE:.*]] = hydra.concat
// CHECK: hydra.sum %[[LITTLE]] axes = [0]
hydra.model @m version 1 {
  hydra.entry @biases(%x: [2, 2048, 32] f32, %y: [2, 2048, 64] f32) {
    %a = hydra.mul %x, %x
    %b = hydra.mul %a, %a
    %all = hydra.concat %a, %y axis = 2
    %sum = hydra.sum %all axes = [0, 1]
    %first = hydra.slice %sum axis = 0 start = 0 size = 32
    hydra.return first = %first, all = %sum, b = %b
  }
  hydra.entry @read(%x: [2, 2048, 32] f32, %y: [2, 2048, 64] f32) {
    %all = hydra.concat %x, %y axis = 2
    %sum = hydra.sum %all axes = [0, 1]
    hydra.return sum = %sum, all = %all
  }
  hydra.entry @over(%x: [2, 2048, 32] f32, %y: [2, 2048, 64] f32) {
    %all = hydra.concat %x, %y axis = 2
    %sum = hydra.sum %all axes = [1, 2]
    hydra.return sum = %sum
  }
  hydra.entry @kept(%x: [2, 2048, 32] f32, %y: [2, 2048, 64] f32) {
    %all = hydra.concat %x, %y axis = 2
    %sum = hydra.sum %all axes = [0] keep
    %part = hydra.slice %sum axis = 2 start = 2 size = 32
    %first = hydra.slice %sum axis = 2 start = 0 size = 32
    hydra.return part = %part, first = %first
  }
  hydra.entry @little(%x: [16, 32] f32, %y: [16, 64] f32) {
    %all = hydra.concat %x, %y axis = 1
    %sum = hydra.sum %all axes = [0]
    hydra.return sum = %sum
  }
}
