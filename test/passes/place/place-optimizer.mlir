// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --hydra-differentiate --hydra-optimizer=clip=false --hydra-place-optimizer | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --hydra-differentiate --hydra-optimizer=clip=true --hydra-place-optimizer | FileCheck %s --check-prefix=CLIP

// The last layer is updated before the gradient of the first one is made, but behind the matmul that still
// reads its old weight. With a clip by the global norm every gradient comes first.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[DB:.*]] = hydra.matmul {{.*}} transpose_a
// CHECK: hydra.adamw %b{{[_0-9]*}}, %b.m, %b.v, %[[DB]]
// CHECK: %[[DA:.*]] = hydra.matmul {{.*}} transpose_a
// CHECK: hydra.adamw %a{{[_0-9]*}}, %a.m, %a.v, %[[DA]]
// CHECK: hydra.return

// CLIP-LABEL: hydra.entry @loss
// CLIP: hydra.matmul {{.*}} transpose_a
// CLIP: hydra.matmul {{.*}} transpose_a
// CLIP: hydra.global_norm
// CLIP: hydra.adamw
// CLIP: hydra.adamw
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, wd = 0.0)
  hydra.param @a [4, 4] init = ones
  hydra.param @b [4, 4] init = ones
  hydra.entry @loss(%x: [3, 4] f32) {
    %a = hydra.use @a
    %b = hydra.use @b
    %h = hydra.linear %x, %a
    %t = hydra.tanh %h
    %y = hydra.linear %t, %b
    %s = hydra.sum %y axes = [0, 1]
    hydra.return loss = %s
  }
}
