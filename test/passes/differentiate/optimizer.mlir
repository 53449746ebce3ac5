// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=clip=false | FileCheck %s --check-prefix=NOCLIP
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=accum=4 | FileCheck %s --check-prefix=ACCUM
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='accum=4 clip=false' | FileCheck %s --check-prefix=NONORM
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=holds=true | FileCheck %s --check-prefix=HOLDS
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='ema-decay=0.9 norm-spike=true group-norms=true' | FileCheck %s --check-prefix=MORE
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='grad-histograms=true clip=false' | FileCheck %s --check-prefix=COUNTS
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='swa-from=3 accum=2' | FileCheck %s --check-prefix=SWA
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='batch-filter=true' | FileCheck %s --check-prefix=FILTER
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='batch-filter=true accum=4' | FileCheck %s --check-prefix=FILTERS
// RUN: not hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='norm-spike=true clip=false' 2>&1 | FileCheck %s --check-prefix=SPIKE
// RUN: not hydra-opt %s --hydra-bind --hydra-optimizer 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=accum=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/return loss = \(.*\) updates/return loss = \1, applied = \1 updates/' %s | not hydra-opt --hydra-bind --hydra-differentiate --hydra-optimizer 2>&1 | FileCheck %s --check-prefix=TAKEN

// Moments and the count of updates are state; learning rate and clip are arguments; each group has its
// own optimizer and numbers. One guard selects old or new in all that is updated.
// CHECK: hydra.state @w.m [4] init = zeros of @w as moment
// CHECK: hydra.state @w.v [4] init = zeros of @w as moment
// CHECK: hydra.state @c.momentum [4] init = zeros of @c as moment
// CHECK-NOT: hydra.state @d
// CHECK: hydra.state @step [] i32 init = constant(1) as update_count
// CHECK: hydra.entry @loss(%x: tensor<4xf32>, %lr: tensor<f32> = 1.000000e-03, %clip: tensor<f32> = 0.000000e+00) stage(train)
// CHECK: %[[LOSS:[0-9]+]] = hydra.mean
// CHECK: %[[N:.*]] = hydra.global_norm
// CHECK: %[[BELOW:.*]] = hydra.compare %[[LOSS]], %{{.*}} is = "le"
// CHECK: %[[ABOVE:.*]] = hydra.compare %[[LOSS]], %{{.*}} is = "ge"
// CHECK: %[[NUMBER:.*]] = hydra.select %[[ABOVE]], %[[N]], %[[INFINITY:[^ ]*]] :
// CHECK: %[[SEEN:.*]] = hydra.select %[[BELOW]], %[[NUMBER]], %[[INFINITY]] :
// CHECK: hydra.neg %[[SEEN]]
// CHECK: %[[OK:.*]] = hydra.compare {{.*}} is = "le"
// CHECK: %[[APPLIED:.*]] = hydra.cast %[[OK]] to = f32
// CHECK: hydra.guard %[[OK]], %{{.*}}, %seen{{.*}} : tensor<i1>
// CHECK: hydra.adamw {{.*}} lr_scale = 1.000000e+00 wd = 1.000000e-01
// CHECK: hydra.guard %[[OK]], %p1, %w_{{[0-9]+}} : tensor<i1>, tensor<4xf32>, tensor<4xf32>
// CHECK: hydra.guard %[[OK]], %{{.*}}, %w.m
// CHECK: hydra.guard %[[OK]], %{{.*}}, %w.v
// CHECK: hydra.adamw {{.*}} lr_scale = 5.000000e-01 wd = 0.000000e+00
// CHECK: %{{.*}}, %{{.*}} = hydra.sgd %c_{{[0-9]+}}, %c.momentum, {{.*}} lr_scale = 1.000000e+00 momentum = 9.000000e-01 wd = 1.000000e-02
// CHECK: hydra.sgd %d_{{[0-9]+}}, {{.*}} lr_scale = 1.000000e+00 wd = 0.000000e+00
// CHECK: hydra.guard %[[OK]], %{{.*}}, %step : tensor<i1>, tensor<i32>, tensor<i32>
// CHECK: hydra.return loss = %{{.*}}, grad_norm = %[[N]], applied = %[[APPLIED]] updates(@seen = %{{.*}}, @w = %{{.*}}, @w.m = %{{.*}}, @w.v = %{{.*}}, @b = %{{.*}}, @b.m = %{{.*}}, @b.v = %{{.*}}, @c = %{{.*}}, @c.momentum = %{{.*}}, @d = %{{.*}}, @step = %{{.*}})

// Without a norm the loss is the guard.
// NOCLIP: hydra.entry @loss(%x: tensor<4xf32>, %lr: tensor<f32> = 1.000000e-03) stage(train)
// NOCLIP-NOT: hydra.global_norm
// NOCLIP: %[[LOSS:[0-9]+]] = hydra.mean
// NOCLIP: hydra.neg %[[LOSS]]
// NOCLIP: hydra.compare {{.*}} is = "le"

// What can be held, looks at the sum of the norm, where the loss is finite, and a number of the step, and returns the norm itself.
// HOLDS: hydra.entry @loss(%x: tensor<4xf32>, %lr: tensor<f32> = 1.000000e-03, %hold: tensor<f32> = 0.000000e+00, %clip: tensor<f32> = 0.000000e+00)
// HOLDS: %[[N:.*]] = hydra.global_norm
// HOLDS: %[[NUMBER:.*]] = hydra.select %{{.*}}, %[[N]], %
// HOLDS: %[[BOTH:.*]] = hydra.select %{{.*}}, %[[NUMBER]], %
// HOLDS: %[[SEEN:.*]] = hydra.add %[[BOTH]], %hold
// HOLDS: hydra.neg %[[SEEN]]
// HOLDS: grad_norm = %[[N]]

// A loss above the limit, if there is one, is refused.
// FILTER: hydra.entry @loss(%x: tensor<4xf32>, %lr: tensor<f32> = 1.000000e-03, %loss_limit: tensor<f32> = 0.000000e+00, %clip: tensor<f32> = 0.000000e+00)
// FILTER: %[[LOSS:[0-9]+]] = hydra.mean
// FILTER: hydra.compare %[[LOSS]], %loss_limit is = "gt"
// FILTER: %[[LIMITED:.*]] = hydra.select
// FILTER: %[[ANY:.*]] = hydra.compare %loss_limit, %{{.*}} is = "gt"
// FILTER: %[[WITHIN:.*]] = hydra.select %[[ANY]], %[[LIMITED]], %
// FILTER: hydra.neg %[[WITHIN]]
// That of a step over micro-batches is their mean.
// FILTERS: hydra.entry @accumulate
// FILTERS: %[[BEFORE:.*]] = hydra.use @loss.sum
// FILTERS: hydra.add %[[BEFORE]], %
// FILTERS: hydra.entry @apply(%lr: tensor<f32> = 1.000000e-03, %loss_limit: tensor<f32> = 0.000000e+00, %clip
// FILTERS: hydra.constant {{.*}} value = 2.500000e-01
// FILTERS: hydra.compare %{{.*}}, %loss_limit is = "gt"

// One program adds a quarter of each gradient to state and updates copies of the model's state, the other
// uses and clears the sums, and makes the copies what the model has, or the other way round.
// ACCUM: hydra.state @seen.next [] init = zeros of @seen as copy
// ACCUM: hydra.state @w.grad [4] init = zeros of @w as gradient
// ACCUM: hydra.entry @accumulate(%x: tensor<4xf32>)
// ACCUM: %[[SEEN:.*]] = hydra.use @seen.next
// ACCUM: hydra.constant {{.*}} value = 2.500000e-01
// Whether all losses were finite.
// ACCUM: %[[BEFORE:.*]] = hydra.use @loss.sum
// ACCUM: hydra.select %{{.*}}, %[[BEFORE]], %
// ACCUM: updates(@seen.next = %{{.*}}, @w.grad = %{{.*}}, @b.grad = %{{.*}}, @c.grad = %{{.*}}, @d.grad = %{{.*}}, @loss.sum = %{{.*}})
// ACCUM: hydra.entry @apply(%lr: tensor<f32> = 1.000000e-03, %clip: tensor<f32> = 0.000000e+00)
// ACCUM: %[[KEPT:.*]] = hydra.guard %{{.*}}, %seen.next, %seen
// ACCUM: updates(@w.grad = %{{.*}}, @b.grad = %{{.*}}, {{.*}}@seen = %[[KEPT]], @w = %{{.*}}, @seen.next = %[[KEPT]])

// Without a norm that alone is the guard.
// NONORM: hydra.entry @accumulate(%x: tensor<4xf32>)
// NONORM: %[[BEFORE:.*]] = hydra.use @loss.sum
// NONORM-NOT: hydra.add %[[BEFORE]]
// NONORM: hydra.select %{{.*}}, %[[BEFORE]], %
// NONORM: hydra.entry @apply(%lr: tensor<f32> = 1.000000e-03)
// NONORM: %[[SEEN:.*]] = hydra.use @loss.sum
// NONORM: hydra.neg %[[SEEN]]

// Averages move to the new value by a share, under the same guard. A norm above the bound halves the rate. Every
// group has its norm.
// MORE: hydra.state @w.average [4] init = zeros of @w as average
// MORE: %clip: tensor<f32> = 0.000000e+00, %norm_spike: tensor<f32> = 0.000000e+00) stage(train)
// MORE: hydra.compare {{.*}} is = "ge"
// MORE: %[[OK:.*]] = hydra.compare {{.*}} is = "le"
// MORE: hydra.constant {{.*}} value = 0.09999
// MORE: %[[AVERAGE:.*]] = hydra.sgd %w.average, %p1{{.*}} wd = 1.000000e+00
// MORE: %[[KEPT:.*]] = hydra.guard %[[OK]], %[[AVERAGE]], %w.average
// MORE: hydra.return loss = %{{.*}}, grad_norm.default = %{{.*}}, grad_norm.slow = %{{.*}}, grad_norm.plain = %{{.*}}, grad_norm.plainest = %{{.*}}, grad_norm = %{{.*}} @w.average = %[[KEPT]]

// The nearest exponents of the gradients of every group are counted (grad-histograms.mlir).
// COUNTS: hydra.count_exponents %{{.*}} count = 64 first = -40 : tensor<4xf32>
// COUNTS: %[[COUNTS:[0-9]+]] = hydra.cast %{{.*}} to = f32 : tensor<64xi32>
// COUNTS: hydra.return loss = %{{.*}}, grad_histogram.default = %[[COUNTS]], grad_histogram.slow = %{{.*}}, grad_histogram.plain = %{{.*}}, grad_histogram.plainest = %{{.*}}, applied = %

// Before update 3 an average is the parameter.
// SWA: hydra.entry @apply(
// SWA: hydra.constant {{.*}} value = 2.000000e+00
// SWA: hydra.sgd %d.average, %p1

// SPIKE: norm-spike needs the norm of gradients; expected clip
// EARLY: @loss is not differentiated; run hydra-differentiate first
// ZERO: accum is 0; expected at least 1
// TAKEN: has an output 'applied', which the optimizer adds
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.group @slow adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0, lr_scale = 0.5)
  hydra.group @plain sgd(momentum = 0.9, wd = 0.01)
  hydra.group @plainest sgd()
  hydra.param @w [4] init = ones
  hydra.param @b [4] init = zeros group = @slow
  hydra.param @c [4] init = zeros group = @plain
  hydra.param @d [4] init = zeros group = @plainest
  hydra.state @seen [] init = zeros
  hydra.entry @loss(%x: [4] f32) {
    %w = hydra.use @w
    %b = hydra.use @b
    %c = hydra.use @c
    %d = hydra.use @d
    %seen = hydra.use @seen
    %a = hydra.mul %x, %w
    %a1 = hydra.add %a, %c
    %a2 = hydra.add %a1, %d
    %y = hydra.add %a2, %b
    %loss = hydra.mean %y axes = [0]
    %more = hydra.add %seen, %loss
    hydra.return loss = %loss updates(@seen = %more)
  }
}
