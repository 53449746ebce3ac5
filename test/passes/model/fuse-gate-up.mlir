// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --hydra-fuse-gate-up | FileCheck %s

// With biases: they are joined as the weights are.
// CHECK-LABEL: hydra.entry @swiglu
// CHECK: %[[W:.*]] = hydra.concat %gate, %up axis = 0
// CHECK: %[[B:.*]] = hydra.concat %gate_b, %up_b axis = 0
// CHECK: %[[Y:.*]] = hydra.linear %x, %[[W]], %[[B]]
// CHECK: %[[G:.*]] = hydra.slice %[[Y]] axis = 1 size = 6 start = 0
// CHECK: %[[U:.*]] = hydra.slice %[[Y]] axis = 1 size = 6 start = 6
// CHECK: %[[A:.*]] = hydra.silu %[[G]]
// CHECK: hydra.mul %[[A]], %[[U]]
hydra.model @m version 1 {
  hydra.param @gate [6, 4] init = ones
  hydra.param @gate_b [6] init = zeros
  hydra.param @up [6, 4] init = ones
  hydra.param @up_b [6] init = zeros
  hydra.entry @swiglu(%x: [3, 4] f32) {
    %gate = hydra.use @gate
    %gate_b = hydra.use @gate_b
    %up = hydra.use @up
    %up_b = hydra.use @up_b
    %g = hydra.linear %x, %gate, %gate_b
    %a = hydra.silu %g
    %u = hydra.linear %x, %up, %up_b
    %y = hydra.mul %a, %u
    hydra.return y = %y
  }
}

// -----

// A sum is no gate, and three layers of one input are not a gate and an up projection.
// CHECK-LABEL: hydra.entry @sum
// CHECK-NOT: hydra.concat
// CHECK-LABEL: hydra.entry @three
// CHECK-NOT: hydra.concat
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @a [6, 4] init = ones
  hydra.param @b [6, 4] init = ones
  hydra.param @c [6, 4] init = ones
  hydra.entry @sum(%x: [3, 4] f32) {
    %a = hydra.use @a
    %b = hydra.use @b
    %g = hydra.linear %x, %a
    %u = hydra.linear %x, %b
    %y = hydra.add %g, %u
    hydra.return y = %y
  }
  hydra.entry @three(%x: [3, 4] f32) {
    %a = hydra.use @a
    %b = hydra.use @b
    %c = hydra.use @c
    %g = hydra.linear %x, %a
    %u = hydra.linear %x, %b
    %w = hydra.linear %x, %c
    %s = hydra.silu %g
    %y = hydra.mul %s, %u
    hydra.return y = %y, w = %w
  }
}

// -----

// An activation is any function of its operand alone, here the gate of a recurrence.
// CHECK-LABEL: hydra.entry @tanh
// CHECK: hydra.concat %a, %b axis = 0
hydra.model @m version 1 {
  hydra.param @a [6, 4] init = ones
  hydra.param @b [6, 4] init = ones
  hydra.entry @tanh(%x: [3, 4] f32) {
    %a = hydra.use @a
    %b = hydra.use @b
    %g = hydra.linear %x, %a
    %u = hydra.linear %x, %b
    %t = hydra.tanh %u
    %y = hydra.mul %g, %t
    hydra.return y = %y
  }
}
