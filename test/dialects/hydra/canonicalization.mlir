// RUN: hydra-opt %s --split-input-file --hydra-bind --canonicalize | FileCheck %s

// Only what keeps every bit is folded: x * 1, x - 0, x / 1, -(-x).
// CHECK-LABEL: hydra.entry @exact(%x
// CHECK-NEXT: hydra.return a = %x, b = %x, c = %x, d = %x
hydra.model @m version 1 {
  hydra.entry @exact(%x: [4] f32) {
    %one = hydra.constant value = 1.0
    %zero = hydra.constant value = 0.0
    %a = hydra.mul %x, %one
    %b = hydra.sub %x, %zero
    %c = hydra.div %x, %one
    %n = hydra.neg %x
    %d = hydra.neg %n
    hydra.return a = %a, b = %b, c = %c, d = %d
  }
}

// -----

// x + 0 stays: it would turn -0 into 0.
// CHECK-LABEL: hydra.entry @inexact
// CHECK: hydra.add
hydra.model @m version 1 {
  hydra.entry @inexact(%x: [4] f32) {
    %zero = hydra.constant value = 0.0
    %a = hydra.add %x, %zero
    hydra.return a = %a
  }
}

// -----

// Reshapes and transpositions merge, and a transposed operand of a matmul becomes a flag.
// CHECK-LABEL: hydra.entry @shapes(%x
// CHECK-NOT: hydra.transpose
// CHECK: hydra.matmul %x, %x transpose_b
// CHECK: hydra.reshape %x shape = [12] : tensor<3x4xf32>
hydra.model @m version 1 {
  hydra.entry @shapes(%x: [3, 4] f32) {
    %t = hydra.transpose %x order = [1, 0]
    %p = hydra.matmul %x, %t
    %r = hydra.reshape %x shape = [2, 6]
    %s = hydra.reshape %r shape = [12]
    hydra.return p = %p, s = %s
  }
}
