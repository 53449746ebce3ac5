// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --hydra-fuse-qkv | FileCheck %s

// Queries with four heads, keys and values with two; rotations in between.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[W:.*]] = hydra.concat %wq, %wk, %wv axis = 0 : tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = hydra.linear %x, %[[W]]
// CHECK-NEXT: %[[Q:.*]] = hydra.slice %[[Y]] axis = 2 size = 8 start = 0
// CHECK-NEXT: hydra.slice %[[Y]] axis = 2 size = 4 start = 8
// CHECK-NEXT: hydra.slice %[[Y]] axis = 2 size = 4 start = 12
// CHECK-NOT: hydra.linear
// CHECK: hydra.reshape %[[Q]]

hydra.model @m version 1 {
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [4, 8] init = ones
  hydra.param @wv [4, 8] init = ones
  hydra.entry @loss(%x: [2, 5, 8] f32) {
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %q0 = hydra.linear %x, %wq
    %k0 = hydra.linear %x, %wk
    %v0 = hydra.linear %x, %wv
    %q1 = hydra.reshape %q0 shape = [2, 5, 4, 2]
    %k1 = hydra.reshape %k0 shape = [2, 5, 2, 2]
    %v = hydra.reshape %v0 shape = [2, 5, 2, 2]
    %q = hydra.rope %q1 base = 1.0e4
    %k = hydra.rope %k1 base = 1.0e4
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    %s = hydra.sum %o axes = [0, 1, 2, 3]
    hydra.return loss = %s
  }
}

// -----

// Not for other inputs, other attentions, or weights that are no parameters.
// CHECK-LABEL: hydra.entry @different
// CHECK-NOT: hydra.concat
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [8, 8] init = ones
  hydra.param @wv [8, 8] init = ones
  hydra.entry @different(%x: [2, 5, 8] f32, %z: [2, 5, 8] f32) {
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %scaled = hydra.add %wv, %wv
    %q0 = hydra.linear %x, %wq
    %k0 = hydra.linear %z, %wk
    %v0 = hydra.linear %x, %scaled
    %q = hydra.reshape %q0 shape = [2, 5, 2, 4]
    %k = hydra.reshape %k0 shape = [2, 5, 2, 4]
    %v = hydra.reshape %v0 shape = [2, 5, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    hydra.return o = %o
  }
}

// -----

// A projection that something else reads as well stays; the other two are fused.
// CHECK-LABEL: hydra.entry @partly
// CHECK: hydra.concat %wq, %wk axis = 0
// CHECK: hydra.linear %x, %wv
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [8, 8] init = ones
  hydra.param @wv [8, 8] init = ones
  hydra.entry @partly(%x: [2, 5, 8] f32) {
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %q0 = hydra.linear %x, %wq
    %k0 = hydra.linear %x, %wk
    %v0 = hydra.linear %x, %wv
    %q = hydra.reshape %q0 shape = [2, 5, 2, 4]
    %k = hydra.reshape %k0 shape = [2, 5, 2, 4]
    %v = hydra.reshape %v0 shape = [2, 5, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    hydra.return o = %o, values = %v0
  }
}

// -----

// Through whatever works on a value row by row, with parameters alone beside it: here a norm of heads with a weight, and
// a function of values. Queries to which something else is added are left out.
// CHECK-LABEL: hydra.entry @through
// CHECK: hydra.linear %x, %wq
// CHECK: hydra.concat %wk, %wv axis = 0
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [8, 8] init = ones
  hydra.param @wv [8, 8] init = ones
  hydra.param @norm [4] init = ones
  hydra.entry @through(%x: [1, 5, 8] f32, %added: [1, 5, 8] f32) {
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %norm = hydra.use @norm
    %q0 = hydra.linear %x, %wq
    %k0 = hydra.linear %x, %wk
    %v0 = hydra.linear %x, %wv
    %q1 = hydra.add %q0, %added
    %v1 = hydra.tanh %v0
    %q = hydra.reshape %q1 shape = [1, 5, 2, 4]
    %k1 = hydra.reshape %k0 shape = [1, 5, 2, 4]
    %v = hydra.reshape %v1 shape = [1, 5, 2, 4]
    %k = hydra.rms_norm %k1, %norm eps = 1.0e-5
    %o = hydra.attention %q, %k, %v scale = 0.5
    hydra.return o = %o
  }
}

// -----

// A rotation by halves is of the value alone: what is added up was computed from it.
// CHECK-LABEL: hydra.entry @turned
// CHECK: hydra.concat %wq, %wk, %wv axis = 0
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [8, 8] init = ones
  hydra.param @wv [8, 8] init = ones
  hydra.entry @turned(%x: [1, 5, 8] f32, %cos: [1, 5, 1, 2] f32) {
    %q0, %k0, %v0 = hydra.let linear(%x, @wq), linear(%x, @wk), linear(%x, @wv)
    %q, %k1 = hydra.let reshape(%q0, [1, 5, 2, 4]), reshape(%k0, [1, 5, 2, 4])
    %v = hydra.let reshape(%v0, [1, 5, 2, 4])
    %a, %b = hydra.let slice(%k1, axis = 3, start = 0, size = 2), slice(%k1, axis = 3, start = 2, size = 2)
    %k = hydra.let concat(%a * %cos - %b, %b * %cos + %a, axis = 3)
    %o = hydra.attention %q, %k, %v scale = 0.5
    hydra.return o = %o
  }
}

// -----

// What is frozen and what is trained are not joined: a gradient of the whole would be one of frozen matrices too.
// CHECK-LABEL: hydra.entry @partly
// CHECK: hydra.concat %wk, %wv axis = 0
// CHECK-NOT: hydra.concat
// CHECK: hydra.attention
hydra.model @partly version 1 {
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [8, 8] init = ones frozen
  hydra.param @wv [8, 8] init = ones frozen
  hydra.entry @partly(%x: [1, 4, 8] f32) {
    %q0, %k0, %v0 = hydra.let linear(%x, @wq), linear(%x, @wk), linear(%x, @wv)
    %q = hydra.reshape %q0 shape = [1, 4, 2, 4]
    %k = hydra.reshape %k0 shape = [1, 4, 2, 4]
    %v = hydra.reshape %v0 shape = [1, 4, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    hydra.return o = %o
  }
}
