// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-fuse-qkv --hydra-fuse-rope --canonicalize | FileCheck %s

// Queries and keys of one matmul are rotated at once, with other numbers of heads too; values stay.
// CHECK-LABEL: hydra.entry @grouped
// CHECK: %[[ALL:.*]] = hydra.linear
// CHECK: %[[QK:.*]] = hydra.slice %[[ALL]] axis = 2 size = 24 start = 0
// CHECK: %[[HEADS:.*]] = hydra.reshape %[[QK]] shape = [1, 5, 6, 4]
// CHECK: %[[R:.*]] = hydra.rope %[[HEADS]] base = 10000
// CHECK-NOT: hydra.rope
// CHECK-DAG: hydra.slice %[[R]] axis = 2 size = 4 start = 0
// CHECK-DAG: hydra.slice %[[R]] axis = 2 size = 2 start = 4
// CHECK: hydra.attention
hydra.model @m version 1 {
  hydra.param @wq [16, 8] init = ones
  hydra.param @wk [8, 8] init = ones
  hydra.param @wv [8, 8] init = ones
  hydra.entry @grouped(%x: [1, 5, 8] f32) {
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %q0 = hydra.linear %x, %wq
    %k0 = hydra.linear %x, %wk
    %v0 = hydra.linear %x, %wv
    %q1 = hydra.reshape %q0 shape = [1, 5, 4, 4]
    %k1 = hydra.reshape %k0 shape = [1, 5, 2, 4]
    %v = hydra.reshape %v0 shape = [1, 5, 2, 4]
    %q = hydra.rope %q1 base = 10000
    %k = hydra.rope %k1 base = 10000
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    hydra.return o = %o
  }
}

// -----

// Other angles, and heads of other values, stay apart.
// CHECK-LABEL: hydra.entry @apart
// CHECK-COUNT-4: hydra.rope
hydra.model @m version 1 {
  hydra.entry @apart(%x: [1, 5, 16] f32, %y: [1, 5, 16] f32) {
    %a0 = hydra.slice %x axis = 2 start = 0 size = 8
    %b0 = hydra.slice %x axis = 2 start = 8 size = 8
    %c0 = hydra.slice %y axis = 2 start = 8 size = 8
    %a1 = hydra.reshape %a0 shape = [1, 5, 2, 4]
    %b1 = hydra.reshape %b0 shape = [1, 5, 2, 4]
    %c1 = hydra.reshape %c0 shape = [1, 5, 2, 4]
    %a = hydra.rope %a1 base = 10000
    %b = hydra.rope %b1 base = 500
    %c = hydra.rope %c1 base = 10000
    %d = hydra.rope %a1 base = 10000 half_split
    hydra.return a = %a, b = %b, c = %c, d = %d
  }
}
