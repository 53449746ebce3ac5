// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-mixed-precision="policy=bf16" --hydra-widen-late | FileCheck %s

// Each roll reads the one before it twice: a chain of them takes no longer than its length.
// CHECK-LABEL: hydra.entry @rolls
// CHECK-COUNT-40: hydra.concat {{.*}} : tensor<2x31x2x2xbf16>, tensor<2x1x2x2xbf16>
// CHECK: hydra.cast %{{.*}} to = f32 : tensor<2x32x2x2xbf16>
hydra.model @m version 1 {
  hydra.param @w [4, 4] init = normal(0.5)
  hydra.def @roll(%x) = concat(slice(%x, axis = 1, start = 1, size = 31), slice(%x, axis = 1, start = 0, size = 1), axis = 1)
  hydra.entry @rolls(%x: [2, 32, 4] f32) {
    %r0 = hydra.let rope(reshape(linear(%x, @w), [2, 32, 2, 2]), base = 10000)
    %r1 = hydra.call @roll(%r0)
    %r2 = hydra.call @roll(%r1)
    %r3 = hydra.call @roll(%r2)
    %r4 = hydra.call @roll(%r3)
    %r5 = hydra.call @roll(%r4)
    %r6 = hydra.call @roll(%r5)
    %r7 = hydra.call @roll(%r6)
    %r8 = hydra.call @roll(%r7)
    %r9 = hydra.call @roll(%r8)
    %r10 = hydra.call @roll(%r9)
    %r11 = hydra.call @roll(%r10)
    %r12 = hydra.call @roll(%r11)
    %r13 = hydra.call @roll(%r12)
    %r14 = hydra.call @roll(%r13)
    %r15 = hydra.call @roll(%r14)
    %r16 = hydra.call @roll(%r15)
    %r17 = hydra.call @roll(%r16)
    %r18 = hydra.call @roll(%r17)
    %r19 = hydra.call @roll(%r18)
    %r20 = hydra.call @roll(%r19)
    %r21 = hydra.call @roll(%r20)
    %r22 = hydra.call @roll(%r21)
    %r23 = hydra.call @roll(%r22)
    %r24 = hydra.call @roll(%r23)
    %r25 = hydra.call @roll(%r24)
    %r26 = hydra.call @roll(%r25)
    %r27 = hydra.call @roll(%r26)
    %r28 = hydra.call @roll(%r27)
    %r29 = hydra.call @roll(%r28)
    %r30 = hydra.call @roll(%r29)
    %r31 = hydra.call @roll(%r30)
    %r32 = hydra.call @roll(%r31)
    %r33 = hydra.call @roll(%r32)
    %r34 = hydra.call @roll(%r33)
    %r35 = hydra.call @roll(%r34)
    %r36 = hydra.call @roll(%r35)
    %r37 = hydra.call @roll(%r36)
    %r38 = hydra.call @roll(%r37)
    %r39 = hydra.call @roll(%r38)
    %r40 = hydra.call @roll(%r39)
    %y, %scores = hydra.let sum(%r40 * %r40, [3]), matmul(transpose(%r0, [0, 2, 1, 3]), transpose(%r0, [0, 2, 1, 3]), transpose_b)
    hydra.return y = %y, scores = %scores
  }
}
