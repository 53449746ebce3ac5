// RUN: hydra-opt %s | FileCheck %s
// RUN: hydra-opt %s | hydra-opt | FileCheck %s
// RUN: hydra-opt %s --mlir-print-op-generic | hydra-opt | FileCheck %s
//
// Arithmetic prints as it is written, with the parentheses that it needs.

// CHECK-LABEL: hydra.model @arithmetic
hydra.model @arithmetic version 1 {
  hydra.symbols dims(D = 4, L = 2) reals(eps = 0.5) flags(tied = false)
  hydra.param @w [D] init = ones
  hydra.param @"odd.name" [D] init = ones
  hydra.stack @layers[L] {
    hydra.param @scale [D] init = ones
  }
  // CHECK: hydra.def @unit(%arg0) = %arg0 / sqrt(max(sum(%arg0 * %arg0, 1), 1))
  hydra.def @unit(%x) = (%x) / sqrt(max(sum(%x * %x, 1), 1))
  // CHECK: hydra.def @part(%arg0, %arg1) dims(n, m = 2) reals(gain = 1.000000e+00) flags(last = false) =
  // CHECK-SAME: when(last, slice(%arg0, axis = 1, size = m, start = D - m), -%arg1 * gain * n)
  hydra.def @part(%x, %y) dims(n, m = 2) reals(gain = 1.0) flags(last = false)
      = when(last, slice(%x, axis = 1, start = D - m, size = m), -%y * gain * n)
  // CHECK: hydra.def @two(%arg0) = %arg0 + 1, %arg0 - 1
  hydra.def @two(%x) = %x + 1, %x - 1

  hydra.entry @e(%x: [3, D] f32, %t: [3] i32) {
    // CHECK: %0 = hydra.let (%x - mean(%x, 1)) * rsqrt(mean(%x * %x, [0, -1]) + eps)
    %n = hydra.let (%x - mean(%x, 1)) * rsqrt(mean(%x * %x, [0, -1]) + eps)
    // CHECK: hydra.let %x - (%0 - 1) - 2 * %x / (%0 / 3) * -(%x + %0)
    %a = hydra.let (%x - (%n - 1)) - ((2 * %x) / (%n / 3)) * -(%x + %n)
    // What holds no value is one number.
    // CHECK: hydra.let %x * (2 * D) + (D + 1) * %x - -1 - sqrt(D)
    %b = hydra.let %x * (2 * D) + (D + 1) * %x - -1 - sqrt(D)
    // CHECK: hydra.let max(max(%x, %0), 0) > 1
    %c = hydra.let max(%x, %n, 0) > 1
    // CHECK: hydra.let select(%t == 3, -100, %t), compare(%t, 2, is = "ne"), (%t < 1) == (%t >= 2)
    %d, %e, %f = hydra.let select(%t == 3, -100, %t), compare(%t, 2, is = "ne"), (%t < 1) == (%t >= 2)
    // CHECK: hydra.let reshape(transpose(%x, [1, 0]), [2, 6]) + constant(shape = [2, 1], value = 1) + iota(axis = 1, dtype = f32, shape = [2, 6])
    %g = hydra.let reshape(transpose(%x, [1, 0]), [2, 6]) + constant(value = 1, shape = [2, 1]) + iota(axis = 1, shape = [2, 6], dtype = f32)
    // CHECK: hydra.let sum(%x, axes = [1]), matmul(%x, %x, dtype = bf16, transpose_b), cast(%t, to = f32)
    %h, %i, %j = hydra.let sum(%x, axes = [1]), matmul(%x, %x, transpose_b, dtype = bf16), cast(%t, to = f32)
    // CHECK: hydra.let linear(@unit(%x) * @w, @odd.name) - @part(%x, %x - 1, n = 2 * D, last = tied)
    %k = hydra.let linear(@unit(%x) * @w, @"odd.name") - @part(%x, %x - 1, n = 2 * D, last = tied)
    // CHECK: %[[ODD:odd_name]] = hydra.use @odd.name
    // CHECK: hydra.let %[[ODD]] * 2
    %odd = hydra.use @"odd.name"
    %l = hydra.let %odd * 2
    // CHECK: hydra.call @part(%x, %x, n = 1, gain = 2.000000e+00 * eps)
    %m = hydra.call @part(%x, %x, n = 1, gain = 2.0 * eps)
    // CHECK: %{{.*}}:2 = hydra.call @two(%x)
    %o, %p = hydra.call @two(%x)
    // CHECK: hydra.for @layers carry(%[[C:.*]] = %x) {
    // CHECK-NEXT: hydra.let %[[C]] * when(layer == 0, @scale, @w)
    %end = hydra.for @layers carry(%c1 = %x) {
      %next = hydra.let %c1 * when(layer == 0, @scale, @w)
      hydra.yield %next
    }
    // CHECK: hydra.prefix_scan axis = 0 over(%[[HERE:.*]] = %x, %{{.*}} = %0) combine(%[[BEFORE:.*]], %{{.*}}) {
    // CHECK-NEXT: hydra.let %[[BEFORE]] + %[[HERE]]
    %q, %r = hydra.prefix_scan axis = 0 over(%here = %x, %other = %n) combine(%before, %rest) {
      %sum = hydra.let %before + %here
      hydra.yield %sum, %rest
    }
    hydra.return y = %end
  }
}

// Fields of bundles are written behind a point, or by name where the printer numbers values.

// CHECK-LABEL: hydra.model @bundles
hydra.model @bundles version 1 {
  // CHECK: hydra.def @pair(%arg0) = bundle(re = %arg0 + 1, im = bundle(of = %arg0))
  hydra.def @pair(%x) = bundle(re = %x + 1, im = bundle(of = %x))
  // CHECK: hydra.def @length(%arg0) = %arg0.re * %arg0.im.of
  hydra.def @length(%z) = %z.re * %z.im.of
  hydra.entry @e(%x: [3] f32) {
    // CHECK: %[[P:.*]] = hydra.let @pair(%x)
    %p = hydra.let @pair(%x)
    // CHECK: hydra.let field(field(%[[P]], name = "im"), name = "of") + 1
    %y = hydra.let %p.im.of + 1
    // CHECK: %[[B:.*]] = hydra.bundle re = %x, im = %[[P]]
    %b = hydra.bundle re = %x, im = %p
    // CHECK: hydra.field %[[B]] name = "re"
    %f = hydra.field %b name = "re"
    %z = hydra.let @length(%p)
    hydra.return y = %y, f = %f, z = %z
  }
}
