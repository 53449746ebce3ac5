// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=clip=false | FileCheck %s --check-prefix=NOCLIP
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=accum=4 | FileCheck %s --check-prefix=ACCUM
// RUN: not hydra-opt %s --hydra-bind --hydra-optimizer 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=accum=0 2>&1 | FileCheck %s --check-prefix=ZERO

// Moments are state; learning rate, step and clip are arguments; each group has its own numbers.
// CHECK: hydra.state @w.m [4] init = zeros
// CHECK: hydra.state @w.v [4] init = zeros
// CHECK: hydra.entry @loss(%x: tensor<4xf32>, %lr: tensor<f32> = 1.000000e-03, %step: tensor<i32> = 1, %clip: tensor<f32> = 0.000000e+00) stage(train)
// CHECK: %[[N:.*]] = hydra.global_norm
// CHECK: hydra.adamw {{.*}} lr_scale = 1.000000e+00 wd = 1.000000e-01
// CHECK: hydra.adamw {{.*}} lr_scale = 5.000000e-01 wd = 0.000000e+00
// CHECK: hydra.return loss = %{{.*}}, grad_norm = %[[N]] updates(@w = %{{.*}}, @w.m = %{{.*}}, @w.v = %{{.*}}, @b = %{{.*}}, @b.m = %{{.*}}, @b.v = %{{.*}})

// NOCLIP: hydra.entry @loss(%x: tensor<4xf32>, %lr: tensor<f32> = 1.000000e-03, %step: tensor<i32> = 1) stage(train)
// NOCLIP-NOT: hydra.global_norm

// One program adds a quarter of each gradient to state, the other uses and clears the sums.
// ACCUM: hydra.entry @accumulate(%x: tensor<4xf32>)
// ACCUM: hydra.constant {{.*}} value = 2.500000e-01
// ACCUM: updates(@w.grad = %{{.*}}, @b.grad = %{{.*}})
// ACCUM: hydra.entry @apply(%lr: tensor<f32> = 1.000000e-03, %step: tensor<i32> = 1, %clip: tensor<f32> = 0.000000e+00)
// ACCUM: updates(@w.grad = %{{.*}}, @b.grad = %{{.*}}, @w = %{{.*}}

// EARLY: @loss is not differentiated; run hydra-differentiate first
// ZERO: accum is 0; expected at least 1
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.group @slow adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0, lr_scale = 0.5)
  hydra.param @w [4] init = ones
  hydra.param @b [4] init = zeros group = @slow
  hydra.entry @loss(%x: [4] f32) {
    %w = hydra.use @w
    %b = hydra.use @b
    %a = hydra.mul %x, %w
    %y = hydra.add %a, %b
    %loss = hydra.mean %y axes = [0]
    hydra.return loss = %loss
  }
}
