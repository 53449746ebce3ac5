// RUN: hydra-opt %s --split-input-file --hydra-bind --canonicalize --cse --hydra-reuse-norm-stats --canonicalize --cse | FileCheck %s

// The inner update of TTT (models.md section 4.3): the derivative of a layer norm, written out, reads the mean and the
// deviation that the norm has.
// CHECK-LABEL: hydra.entry @inner
// CHECK: %[[Y:.*]], %[[S:.*]]:2 = hydra.layer_norm %t, %gamma, %beta {{.*}}saving
// CHECK: hydra.reshape %[[S]]#0 shape = [5, 1]
// CHECK-NOT: hydra.rsqrt
// CHECK: hydra.mean
// CHECK: hydra.mean
// CHECK-NOT: hydra.mean
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.param @gamma [8] init = ones
  hydra.param @beta [8] init = zeros
  hydra.entry @inner(%t: [5, 8] f32, %k: [5, 8] f32, %v: [5, 8] f32) {
    %gamma = hydra.use @gamma
    %beta = hydra.use @beta
    %n = hydra.layer_norm %t, %gamma, %beta eps = 1.0e-5
    %y = hydra.add %k, %n
    %e = hydra.sub %y, %v
    %g = hydra.mul %e, %gamma
    %mu = hydra.mean %t axes = [1] keep
    %c = hydra.sub %t, %mu
    %c2 = hydra.mul %c, %c
    %var = hydra.mean %c2 axes = [1] keep
    %eps = hydra.constant value = 1.0e-5
    %shifted = hydra.add %var, %eps
    %r = hydra.rsqrt %shifted
    %x = hydra.mul %c, %r
    %gm = hydra.mean %g axes = [1] keep
    %gx = hydra.mul %g, %x
    %gxm = hydra.mean %gx axes = [1] keep
    %u0 = hydra.sub %g, %gm
    %u1 = hydra.mul %x, %gxm
    %u2 = hydra.sub %u0, %u1
    %u = hydra.mul %u2, %r
    hydra.return u = %u, y = %y
  }
}

// -----

// Two norms of the same rows share their statistics; a formula before the norm does too.
// CHECK-LABEL: hydra.entry @two
// CHECK: %{{.*}}, %[[R:.*]] = hydra.rms_norm %x, %a {{.*}}saving
// CHECK-NOT: hydra.rms_norm
// CHECK-NOT: hydra.rsqrt
// CHECK: hydra.return
// Another eps, and another input, are other statistics.
// CHECK-LABEL: hydra.entry @others
// CHECK: hydra.rms_norm
// CHECK: hydra.rms_norm
// CHECK: hydra.rsqrt
hydra.model @m version 1 {
  hydra.param @a [8] init = ones
  hydra.param @b [8] init = ones
  hydra.entry @two(%x: [2, 5, 8] f32) {
    %a = hydra.use @a
    %b = hydra.use @b
    %x2 = hydra.mul %x, %x
    %m = hydra.mean %x2 axes = [-1]
    %eps = hydra.constant value = 1.0e-5
    %me = hydra.add %eps, %m
    %r = hydra.rsqrt %me
    %y = hydra.rms_norm %x, %a eps = 1.0e-5
    %z = hydra.rms_norm %x, %b eps = 1.0e-5
    hydra.return r = %r, y = %y, z = %z
  }
  hydra.entry @others(%x: [5, 5] f32, %y: [5, 5] f32) {
    %w = hydra.constant value = 1 shape = [5]
    %n = hydra.rms_norm %x, %w eps = 1.0e-5
    %o = hydra.rms_norm %x, %w eps = 1.0e-6
    %y2 = hydra.mul %y, %y
    %m = hydra.mean %y2 axes = [1]
    %eps = hydra.constant value = 1.0e-5
    %me = hydra.add %eps, %m
    %r = hydra.rsqrt %me
    hydra.return n = %n, o = %o, r = %r
  }
}

// -----

// A mean that stands before the norm, and even before its parameters are read; and one that stands before
// they are computed, which stays.
// CHECK-LABEL: hydra.model @early
// CHECK: hydra.use @w
// CHECK: hydra.layer_norm {{.*}} saving
// CHECK-NOT: hydra.mean
// CHECK: hydra.entry @late
// CHECK: hydra.mean
// CHECK: hydra.layer_norm
hydra.model @early version 1 {
  hydra.param @w [8] init = ones
  hydra.param @b [8] init = zeros
  hydra.entry @loss(%x: [4, 8] f32) {
    %m = hydra.mean %x axes = [1] keep
    %c = hydra.sub %x, %m
    %w = hydra.use @w
    %b = hydra.use @b
    %n = hydra.layer_norm %c, %w, %b eps = 1.0e-5
    %y = hydra.layer_norm %x, %w, %b eps = 1.0e-5
    %z = hydra.add %n, %y
    hydra.return z = %z
  }
  hydra.entry @late(%x: [4, 8] f32) {
    %m = hydra.mean %x axes = [1] keep
    %c = hydra.sub %x, %m
    %b = hydra.use @b
    %w = hydra.sum %c axes = [0]
    %y = hydra.layer_norm %x, %w, %b eps = 1.0e-5
    hydra.return y = %y
  }
}
