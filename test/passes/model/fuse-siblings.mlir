// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-fuse-qkv --hydra-fuse-gate-up --hydra-fuse-siblings | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-fuse-siblings | FileCheck %s --check-prefix=ALONE

// Layers of one input are one, with their biases, wherever their results go. One whose parts would not be aligned stays
// alone, and so does one whose weight something else reads.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[W:.*]] = hydra.concat %w1, %w2 axis = 0 : tensor<8x8xf32>, tensor<16x8xf32>
// CHECK: %[[B:.*]] = hydra.concat %b1, %b2 axis = 0 : tensor<8xf32>, tensor<16xf32>
// CHECK: %[[Y:.*]] = hydra.linear %x, %[[W]], %[[B]] : {{.*}}
// CHECK: hydra.slice %[[Y]] axis = 2 size = 8 start = 0
// CHECK: hydra.slice %[[Y]] axis = 2 size = 16 start = 8
// CHECK: hydra.linear %x, %narrow, %one
// CHECK: hydra.linear %x, %shared, %b3
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @w1 [8, 8] init = ones
  hydra.param @b1 [8] init = ones
  hydra.param @w2 [16, 8] init = ones
  hydra.param @b2 [16] init = ones
  hydra.param @narrow [1, 8] init = ones
  hydra.param @one [1] init = ones
  hydra.param @shared [8, 8] init = ones
  hydra.param @b3 [8] init = ones
  hydra.entry @loss(%x: [2, 5, 8] f32) {
    %w1 = hydra.use @w1
    %b1 = hydra.use @b1
    %w2 = hydra.use @w2
    %b2 = hydra.use @b2
    %narrow = hydra.use @narrow
    %one = hydra.use @one
    %shared = hydra.use @shared
    %b3 = hydra.use @b3
    %y1 = hydra.linear %x, %w1, %b1
    %y2 = hydra.linear %x, %w2, %b2
    %y3 = hydra.linear %x, %narrow, %one
    %y4 = hydra.linear %x, %shared, %b3
    %s1 = hydra.sum %y1 axes = [0, 1, 2]
    %s2 = hydra.sum %y2 axes = [0, 1, 2]
    %s3 = hydra.sum %y3 axes = [0, 1, 2]
    %s4 = hydra.sum %y4 axes = [0, 1, 2]
    %s5 = hydra.sum %shared axes = [0, 1]
    %a = hydra.add %s1, %s2
    %b = hydra.add %s3, %s4
    %c = hydra.add %a, %b
    %loss = hydra.add %c, %s5
    hydra.return loss = %loss
  }
}

// -----

// What other passes are for is theirs, also where they do not run.
// ALONE-LABEL: hydra.entry @gated
// ALONE-NOT: hydra.concat
// ALONE: hydra.return
hydra.model @m version 1 {
  hydra.param @gate [8, 8] init = ones
  hydra.param @up [8, 8] init = ones
  hydra.entry @gated(%x: [2, 5, 8] f32) {
    %gate = hydra.use @gate
    %up = hydra.use @up
    %g = hydra.linear %x, %gate
    %u = hydra.linear %x, %up
    %a = hydra.silu %g
    %y = hydra.mul %a, %u
    hydra.return y = %y
  }
}
