// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=grad-histograms=true | FileCheck %s --check-prefix=TOGETHER
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer='grad-histograms=true clip=false' | FileCheck %s --check-prefix=APART
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate=loss-scale --hydra-optimizer=grad-histograms=true | FileCheck %s --check-prefix=SCALED

// Gradients that wait for their norm are counted together.
// TOGETHER: %[[N:.*]] = hydra.count_exponents %{{[^ ]*}}, %{{[^ ]*}} count = 64 first = -40 : tensor<4xf32>, tensor<4xf32>
// TOGETHER-NEXT: %[[COUNTS:.*]] = hydra.cast %[[N]] to = f32 : tensor<64xi32>
// TOGETHER-NOT: hydra.count_exponents
// TOGETHER: hydra.global_norm
// TOGETHER: hydra.return loss = %{{.*}}, grad_histogram.default = %[[COUNTS]], grad_norm = %

// Others where they are made, so that each can be updated and given up there.
// APART: hydra.count_exponents %{{[^ ]*}} count = 64 first = -40 : tensor<4xf32>
// APART: hydra.count_exponents %{{[^ ]*}} count = 64 first = -40 : tensor<4xf32>
// APART: %[[SUM:[0-9]+]] = hydra.add %{{.*}}, %{{.*}} : tensor<64xi32>, tensor<64xi32>
// APART-NEXT: %[[COUNTS:[0-9]+]] = hydra.cast %[[SUM]] to = f32 : tensor<64xi32>
// APART: hydra.return loss = %{{.*}}, grad_histogram.default = %[[COUNTS]], applied = %

// Those of a scaled loss are divided by the scale.
// SCALED: %[[INVERSE:.*]] = hydra.div
// SCALED: hydra.count_exponents %[[INVERSE]], %{{[^ ]*}}, %{{[^ ]*}} count = 64 first = -40 scaled : tensor<f32>, tensor<4xf32>, tensor<4xf32>
hydra.model @m version 1 {
  hydra.group @default sgd()
  hydra.param @w [4] init = ones
  hydra.param @b [4] init = zeros
  hydra.entry @loss(%x: [4] f32) {
    %w = hydra.use @w
    %b = hydra.use @b
    %a = hydra.mul %x, %w
    %y = hydra.add %a, %b
    %loss = hydra.mean %y axes = [0]
    hydra.return loss = %loss
  }
}
