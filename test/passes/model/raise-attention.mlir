// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-decompose-attention | hydra-opt --split-input-file --hydra-raise-attention --canonicalize | FileCheck %s

// Every mask, grouped heads, another scale, another length of keys: there and back.
// CHECK-LABEL: hydra.entry @causal
// CHECK-NOT: hydra.matmul
// CHECK: hydra.attention %q, %k, %v causal scale = 2.500000e-01 : tensor<2x5x4x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>
// CHECK-NOT: hydra.softmax
hydra.model @m version 1 {
  hydra.entry @causal(%q: [2, 5, 4, 4] f32, %k: [2, 5, 2, 4] f32, %v: [2, 5, 2, 4] f32) {
    %o = hydra.attention %q, %k, %v scale = 0.25 causal
    hydra.return o = %o
  }
}

// -----

// CHECK-LABEL: hydra.entry @everything
// CHECK: hydra.attention %q, %k, %v scale = 3.000000e+00 : tensor<1x3x2x4xf32>, tensor<1x7x2x4xf32>, tensor<1x7x2x6xf32>
hydra.model @m version 1 {
  hydra.entry @everything(%q: [1, 3, 2, 4] f32, %k: [1, 7, 2, 4] f32, %v: [1, 7, 2, 6] f32) {
    %o = hydra.attention %q, %k, %v scale = 3.0
    hydra.return o = %o
  }
}

// -----

// CHECK-LABEL: hydra.entry @masks
// CHECK: hydra.attention %q, %q, %q causal chunk = 4 scale = 5.000000e-01
// CHECK: hydra.attention %q, %q, %q causal scale = 5.000000e-01 window = 3
// CHECK: hydra.attention %q, %q, %q causal chunk = 4 scale = 5.000000e-01 window = 2
// CHECK-NOT: hydra.softmax
hydra.model @m version 1 {
  hydra.entry @masks(%q: [1, 10, 1, 4] f32) {
    %a = hydra.attention %q, %q, %q scale = 0.5 causal chunk = 4
    %b = hydra.attention %q, %q, %q scale = 0.5 causal window = 3
    %c = hydra.attention %q, %q, %q scale = 0.5 causal chunk = 4 window = 2
    hydra.return a = %a, b = %b, c = %c
  }
}

// -----

// By hand: heads first, scores divided, keys transposed, the mask added as minus infinities.
// CHECK-LABEL: hydra.entry @written
// CHECK: hydra.attention {{.*}} causal scale = 5.000000e-01 : tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>
// CHECK-NOT: hydra.softmax
hydra.model @m version 1 {
  hydra.entry @written(%q: [2, 3, 6, 4] f32, %k: [2, 3, 6, 4] f32, %v: [2, 3, 6, 4] f32) {
    %kt = hydra.transpose %k order = [0, 1, 3, 2]
    %s0 = hydra.matmul %q, %kt
    %two = hydra.constant value = 2.0
    %s1 = hydra.div %s0, %two
    %row = hydra.iota shape = [6, 6] axis = 0
    %column = hydra.iota shape = [6, 6] axis = 1
    %visible = hydra.compare %row, %column is = "ge"
    %zero = hydra.constant value = 0.0
    %never = hydra.constant value = -inf
    %bias = hydra.select %visible, %zero, %never
    %s2 = hydra.add %s1, %bias
    %p = hydra.softmax %s2
    %o = hydra.matmul %p, %v
    hydra.return o = %o
  }
}

// -----

// Not when something else wants the weights, nor under a mask that attention does not have.
// CHECK-LABEL: hydra.entry @wanted
// CHECK-NOT: hydra.attention
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @wanted(%q: [2, 3, 6, 4] f32, %k: [2, 3, 6, 4] f32, %v: [2, 3, 6, 4] f32, %m: [6, 6] f32) {
    %s0 = hydra.matmul %q, %k transpose_b
    %p = hydra.softmax %s0
    %o = hydra.matmul %p, %v
    %s1 = hydra.add %s0, %m
    %r = hydra.softmax %s1
    %u = hydra.matmul %r, %v
    hydra.return o = %o, p = %p, u = %u
  }
}

// -----

// Attention has a positive scale and heads of at most 4096: anything else stays as it is written.
// CHECK-LABEL: hydra.entry @scales
// CHECK-NOT: hydra.attention
// CHECK-COUNT-4: hydra.softmax
// CHECK-NOT: hydra.attention
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.def @scaled(%q, %by) {
    %s = hydra.matmul %q, %q transpose_b
    %z = hydra.mul %s, %by
    %w = hydra.softmax %z
    %o = hydra.matmul %w, %q
    hydra.yield %o
  }
  hydra.entry @scales(%q: [1, 2, 5, 4] f32, %wide: [1, 1, 2, 4097] f32) {
    %minus = hydra.constant value = -1.0
    %zero = hydra.constant value = 0.0
    %never = hydra.constant value = inf
    %one = hydra.constant value = 1.0
    %a = hydra.call @scaled(%q, %minus)
    %b = hydra.call @scaled(%q, %zero)
    %c = hydra.call @scaled(%q, %never)
    %d = hydra.call @scaled(%wide, %one)
    hydra.return a = %a, b = %b, c = %c, d = %d
  }
}

// -----

// Attention adds nothing to its matmuls, and chooses the formats that it computes in.
// CHECK-LABEL: hydra.entry @plus
// CHECK-NOT: hydra.attention
// CHECK-COUNT-4: hydra.softmax
// CHECK-NOT: hydra.attention
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @plus(%q: [2, 3, 6, 4] f32, %k: [2, 3, 6, 4] f32, %v: [2, 3, 6, 4] f32, %m: [2, 3, 6, 6] f32) {
    %s = hydra.matmul %q, %k transpose_b
    %p = hydra.softmax %s
    %a = hydra.matmul %p, %v, %q
    %s1 = hydra.matmul %q, %k, %m transpose_b
    %p1 = hydra.softmax %s1
    %b = hydra.matmul %p1, %v
    %s2 = hydra.matmul %k, %q transpose_b full_precision
    %p2 = hydra.softmax %s2
    %c = hydra.matmul %p2, %v
    %s3 = hydra.matmul %v, %q transpose_b
    %p3 = hydra.softmax %s3
    %d = hydra.matmul %p3, %v compute = tf32
    hydra.return a = %a, b = %b, c = %c, d = %d
  }
}

// -----

// A cap, there and back.
// CHECK-LABEL: hydra.entry @capped
// CHECK: hydra.attention %q, %k, %v cap = 3.200000e+01 causal scale = 2.500000e-01 window = 3
// CHECK: hydra.attention %q, %k, %v cap = 2.000000e+00 scale = 5.000000e-01
// CHECK-NOT: hydra.softmax
hydra.model @m version 1 {
  hydra.entry @capped(%q: [2, 5, 4, 4] f32, %k: [2, 5, 2, 4] f32, %v: [2, 5, 2, 4] f32) {
    %o = hydra.attention %q, %k, %v scale = 0.25 cap = 32.0 causal window = 3
    %p = hydra.attention %q, %k, %v scale = 0.5 cap = 2.0
    hydra.return o = %o, p = %p
  }
}

// -----

// As transformers writes it: scaled, divided by the cap, tanh, times the cap. A scale behind the cap makes another cap.
// CHECK-LABEL: hydra.entry @written
// CHECK: hydra.attention {{.*}} cap = 8.000000e+00 causal scale = 5.000000e-01
// CHECK: hydra.attention {{.*}} cap = 4.000000e+00 scale = 2.500000e-01
// CHECK-NOT: hydra.softmax
hydra.model @m version 1 {
  hydra.entry @written(%q: [2, 3, 6, 4] f32, %k: [2, 3, 6, 4] f32, %v: [2, 3, 6, 4] f32) {
    %half = hydra.constant value = 0.5
    %cap = hydra.constant value = 8.0
    %never = hydra.constant value = -inf
    %s0 = hydra.matmul %q, %k transpose_b
    %s1 = hydra.mul %s0, %half
    %s2 = hydra.div %s1, %cap
    %s3 = hydra.tanh %s2
    %s4 = hydra.mul %s3, %cap
    %row = hydra.iota shape = [6, 6] axis = 0
    %column = hydra.iota shape = [6, 6] axis = 1
    %visible = hydra.compare %row, %column is = "ge"
    %s5 = hydra.select %visible, %s4, %never
    %p = hydra.softmax %s5
    %o = hydra.matmul %p, %v
    %t0 = hydra.matmul %q, %k transpose_b
    %t1 = hydra.mul %t0, %half
    %t2 = hydra.div %t1, %cap
    %t3 = hydra.tanh %t2
    %t4 = hydra.mul %t3, %cap
    %t5 = hydra.mul %t4, %half
    %r = hydra.softmax %t5
    %u = hydra.matmul %r, %v
    hydra.return o = %o, u = %u
  }
}

// -----

// No cap of attention: a mask under it, which hides nothing; a negative one; two; one that something else reads.
// CHECK-LABEL: hydra.entry @others
// CHECK-NOT: hydra.attention
// CHECK-COUNT-4: hydra.softmax
// CHECK-NOT: hydra.attention
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @others(%q: [2, 3, 6, 4] f32, %k: [2, 3, 6, 4] f32, %v: [2, 3, 6, 4] f32) {
    %cap = hydra.constant value = 8.0
    %minus = hydra.constant value = -8.0
    %never = hydra.constant value = -inf
    %row = hydra.iota shape = [6, 6] axis = 0
    %column = hydra.iota shape = [6, 6] axis = 1
    %visible = hydra.compare %row, %column is = "ge"
    %a0 = hydra.matmul %q, %k transpose_b
    %a1 = hydra.select %visible, %a0, %never
    %a2 = hydra.tanh %a1
    %a3 = hydra.mul %a2, %cap
    %a4 = hydra.softmax %a3
    %a = hydra.matmul %a4, %v
    %b0 = hydra.matmul %q, %k transpose_b
    %b1 = hydra.tanh %b0
    %b2 = hydra.mul %b1, %minus
    %b3 = hydra.softmax %b2
    %b = hydra.matmul %b3, %v
    %c0 = hydra.matmul %q, %k transpose_b
    %c1 = hydra.tanh %c0
    %c2 = hydra.tanh %c1
    %c3 = hydra.softmax %c2
    %c = hydra.matmul %c3, %v
    %d0 = hydra.matmul %q, %k transpose_b
    %d1 = hydra.tanh %d0
    %d2 = hydra.softmax %d1
    %d = hydra.matmul %d2, %v
    hydra.return a = %a, b = %b, c = %c, d = %d, e = %d1
  }
}

// -----

// No attention: the probabilities of two sequences become rows of one, whose values the two share.
// CHECK-LABEL: hydra.entry @one_of_values
// CHECK-NOT: hydra.attention
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @one_of_values(%q: [2, 1, 6, 4] f32, %k: [2, 1, 6, 4] f32, %v: [1, 1, 6, 4] f32) {
    %s = hydra.matmul %q, %k transpose_b
    %p = hydra.softmax %s
    %rows = hydra.reshape %p shape = [1, 1, 12, 6]
    %o = hydra.matmul %rows, %v
    hydra.return o = %o
  }
}
