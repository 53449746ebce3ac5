// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-differentiate --hydra-recompute | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-differentiate --hydra-recompute=rowwise | FileCheck %s --check-prefix=ROW
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-differentiate --hydra-recompute=in-place | FileCheck %s --check-prefix=PLACE

// Rotated queries and keys are used by attention, and again long after by its derivative. What they are
// made of is there anyway, beside the values: they are recomputed. The norm is kept, unless asked.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[N:.*]], %{{.*}} = hydra.rms_norm %x
// CHECK: %[[Q:.*]] = hydra.rope
// CHECK: %[[K:.*]] = hydra.rope
// CHECK: hydra.attention %[[Q]], %[[K]]
// CHECK-NOT: hydra.attention_grad
// CHECK: %[[Q2:.*]] = hydra.rope {{.*}} base = 1.000000e+04 :
// CHECK: %[[K2:.*]] = hydra.rope {{.*}} base = 1.000000e+04 :
// CHECK-NEXT: hydra.attention_grad {{.*}}, %[[Q2]], %[[K2]]
// CHECK: hydra.reshape %[[N]]
// CHECK: hydra.return

// They can take the place of what they are made of, which nothing else reads, and are kept there if asked.
// PLACE-LABEL: hydra.entry @loss
// PLACE: %[[Q:.*]] = hydra.rope
// PLACE: %[[K:.*]] = hydra.rope
// PLACE: hydra.attention_grad {{.*}}, %[[Q]], %[[K]]

// ROW-LABEL: hydra.entry @loss
// ROW: hydra.rms_norm %x
// ROW: hydra.attention_grad
// ROW: hydra.rms_norm %x
// ROW: hydra.return
hydra.model @m version 1 {
  hydra.param @g [8] init = ones
  hydra.param @w [24, 8] init = ones
  hydra.param @out [8, 8] init = ones
  hydra.param @up [16, 8] init = ones
  hydra.param @down [8, 16] init = ones
  hydra.entry @loss(%x: [2, 5, 8] f32) {
    %g = hydra.use @g
    %w = hydra.use @w
    %out = hydra.use @out
    %up = hydra.use @up
    %down = hydra.use @down
    %n = hydra.rms_norm %x, %g eps = 1.0e-5
    %qkv = hydra.linear %n, %w
    %q0 = hydra.slice %qkv axis = 2 start = 0 size = 8
    %k0 = hydra.slice %qkv axis = 2 start = 8 size = 8
    %v0 = hydra.slice %qkv axis = 2 start = 16 size = 8
    %q1 = hydra.reshape %q0 shape = [2, 5, 2, 4]
    %k1 = hydra.reshape %k0 shape = [2, 5, 2, 4]
    %v = hydra.reshape %v0 shape = [2, 5, 2, 4]
    %q = hydra.rope %q1 base = 1.0e4
    %k = hydra.rope %k1 base = 1.0e4
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    %m = hydra.reshape %o shape = [2, 5, 8]
    %a = hydra.linear %m, %out
    %h0 = hydra.linear %a, %up
    %h = hydra.tanh %h0
    %y = hydra.linear %h, %down
    %z = hydra.tanh %y
    %s = hydra.sum %z axes = [0, 1, 2]
    hydra.return loss = %s
  }
}

// -----

// Nothing waits in a program without derivative.
// CHECK-LABEL: hydra.entry @loss
// CHECK-COUNT-1: hydra.rope
// CHECK-NOT: hydra.rope
hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  hydra.entry @loss(%x: [1, 3, 2, 4] f32) {
    %w = hydra.use @w
    %y = hydra.mul %x, %w
    %q = hydra.rope %x base = 1.0e4
    %p = hydra.mul %q, %y
    %s = hydra.sum %p axes = [0, 1, 2, 3]
    hydra.return loss = %s
  }
}

// -----

// With a mark at each layer, every second one is recomputed from its mark: the matmul and the activation
// that its derivative needs, not the matmul behind them. The other layer is kept.
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers=boundaries --canonicalize --cse --hydra-differentiate --hydra-recompute=every=2 | FileCheck %s --check-prefix=EVERY
// EVERY-LABEL: hydra.entry @loss
// EVERY-LABEL: hydra.entry @loss
// EVERY-LABEL: hydra.entry @loss
// EVERY-NOT: hydra.boundary
// EVERY: hydra.linear %x, %layers.0.up
// EVERY: hydra.linear {{.*}}, %layers.1.up
// EVERY: hydra.linear {{.*}}, %layers.1.down
// EVERY: %[[U:.*]] = hydra.linear %x, %layers.0.up
// EVERY-NEXT: hydra.tanh %[[U]]
// EVERY-NOT: hydra.linear
// EVERY: hydra.return
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @up [6, 4] init = ones
    hydra.param @down [4, 6] init = ones
  }
  hydra.entry @loss(%x: [3, 4] f32) {
    %end = hydra.for @layers carry(%h = %x) {
      %up = hydra.use @up
      %down = hydra.use @down
      %a = hydra.linear %h, %up
      %t = hydra.tanh %a
      %y = hydra.linear %t, %down
      hydra.yield %y
    }
    %s = hydra.sum %end axes = [0, 1]
    hydra.return loss = %s
  }
}

// -----

// Marks touch no value: what two layers compute alike is one value, with marks and without.
// EVERY-LABEL: hydra.entry @loss
// EVERY: hydra.mean %a axes = [0]
// EVERY-NOT: hydra.mean %a axes = [0]
// EVERY: hydra.return
hydra.model @m version 1 {
  hydra.param @a [6] init = ones
  hydra.stack @layers[2] {
    hydra.param @w [6, 6] init = ones
  }
  hydra.entry @loss(%x: [3, 6] f32) {
    %a = hydra.use @a
    %end = hydra.for @layers carry(%h = %x) {
      %w = hydra.use @w
      %m = hydra.mean %a axes = [0]
      %l = hydra.linear %h, %w
      %y = hydra.add %l, %m
      hydra.yield %y
    }
    %s = hydra.sum %end axes = [0, 1]
    hydra.return loss = %s
  }
}

// -----

// Of three layers that can be replayed (the fourth is needed at once), two that are spread evenly.
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers=boundaries --canonicalize --cse --hydra-differentiate --hydra-recompute='light=false layers=2' | FileCheck %s --check-prefix=LAYERS
// LAYERS-LABEL: hydra.entry @loss
// LAYERS-LABEL: hydra.entry @loss
// LAYERS-LABEL: hydra.entry @loss
// LAYERS-LABEL: hydra.entry @loss
// LAYERS-LABEL: hydra.entry @loss
// LAYERS: hydra.linear {{.*}}, %layers.3.w
// LAYERS: hydra.sum
// LAYERS-NOT: hydra.linear {{.*}}, %layers.1.w
// LAYERS: hydra.linear {{.*}}, %layers.2.w
// LAYERS-NOT: hydra.linear {{.*}}, %layers.1.w
// LAYERS: hydra.linear {{.*}}, %layers.0.w
// LAYERS: hydra.return
hydra.model @m version 1 {
  hydra.stack @layers[4] {
    hydra.param @w [4, 4] init = ones
  }
  hydra.entry @loss(%x: [3, 4] f32) {
    %end = hydra.for @layers carry(%h = %x) {
      %w = hydra.use @w
      %a = hydra.linear %h, %w
      %y = hydra.tanh %a
      %z = hydra.mul %y, %y
      hydra.yield %z
    }
    %s = hydra.sum %end axes = [0, 1]
    hydra.return loss = %s
  }
}

// -----

// A rounded parameter is rounded again where its layer's derivative needs it, on request.
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-differentiate --hydra-mixed-precision --canonicalize --cse --hydra-recompute='light=false copies' | FileCheck %s --check-prefix=COPIES
// COPIES-LABEL: hydra.entry @loss
// COPIES-LABEL: hydra.entry @loss
// COPIES-LABEL: hydra.entry @loss
// COPIES-LABEL: hydra.entry @loss
// COPIES-LABEL: hydra.entry @loss
// COPIES-LABEL: hydra.entry @loss
// COPIES: %[[W:.*]] = hydra.cast %layers.0.w
// COPIES: hydra.linear {{.*}}, %[[W]]
// COPIES: hydra.sum
// COPIES: %[[AGAIN:.*]] = hydra.cast %layers.1.w
// COPIES-NEXT: hydra.matmul {{.*}}, %[[AGAIN]]
// COPIES: hydra.return
hydra.model @m version 1 {
  hydra.param @first [4, 4] init = ones
  hydra.stack @layers[6] {
    hydra.param @w [4, 4] init = ones
  }
  hydra.entry @loss(%x: [3, 4] f32) {
    %first = hydra.use @first
    %start = hydra.linear %x, %first
    %end = hydra.for @layers carry(%h = %start) {
      %w = hydra.use @w
      %a = hydra.linear %h, %w
      %y = hydra.tanh %a
      %z = hydra.mul %y, %y
      hydra.yield %z
    }
    %s = hydra.sum %end axes = [0, 1]
    hydra.return loss = %s
  }
}
