// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer=ema-decay=0.9 | FileCheck %s --check-prefix=AVERAGE
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer --hydra-mixed-precision=policy=pure_bf16 | FileCheck %s --check-prefix=PURE
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate --hydra-optimizer --hydra-lower-losses --canonicalize --cse --hydra-form-fusions --hydra-assign-layouts --hydra-schedule | FileCheck %s --check-prefix=FUSED

// Moments of 8 bits are blocks of the parameter's elements: of 256, or the largest number from 64 that divides these.
// What is small, or has no such number, has the moments of AdamW. Updates are guarded by blocks.
// CHECK-DAG: hydra.state @w.m8 [24, 256] f8E4M3FN init = zeros of @w as moment
// CHECK-DAG: hydra.state @w.m8_scale [24, 1] init = zeros of @w as moment
// CHECK-DAG: hydra.state @w.r8 [24, 256] f8E4M3FN init = zeros of @w as moment
// CHECK-DAG: hydra.state @w.r8_scale [24, 1] init = zeros of @w as moment
// CHECK-DAG: hydra.state @odd.m8 [25, 169] f8E4M3FN
// CHECK-DAG: hydra.state @prime.m [4099] init
// CHECK-DAG: hydra.state @small.v [64] init
// CHECK-DAG: hydra.state @little.m8 [1, 100] f8E4M3FN
// CHECK: hydra.compare {{.*}} is = "ge"
// CHECK: %[[OK:.*]] = hydra.compare {{.*}} is = "le"
// CHECK: %[[P:.*]] = hydra.reshape %w{{.*}} shape = [24, 256]
// CHECK: %[[G:.*]] = hydra.reshape %{{.*}} shape = [24, 256]
// CHECK: %[[P1:[^,]*]], %[[M1:[^,]*]], %[[S1:[^,]*]], %[[R1:[^,]*]], %{{.*}} = hydra.adamw8bit %[[P]], %w.m8, %w.m8_scale, %w.r8, %w.r8_scale, %[[G]], %lr, %step{{[_0-9]*}}, %{{.*}}
// CHECK: hydra.guard %[[OK]], %[[P1]], %{{.*}} : tensor<i1>, tensor<24x256xf32>, tensor<24x256xf32>
// CHECK: hydra.guard %[[OK]], %[[M1]], %w.m8 : tensor<i1>, tensor<24x256xf8E4M3FN>
// CHECK: hydra.guard %[[OK]], %[[S1]], %w.m8_scale : tensor<i1>, tensor<24x1xf32>
// CHECK: hydra.guard %[[OK]], %[[R1]], %w.r8
// CHECK: hydra.adamw %prime

// An average moves by blocks, too.
// AVERAGE: hydra.state @w.average [64, 96] init = zeros of @w as average
// AVERAGE: hydra.sgd %{{.*}}, %p1{{.*}} : tensor<24x256xf32>, tensor<24x256xf32>

// No policy changes the format of moments of 8 bits, or of their scales.
// PURE-DAG: hydra.param @w [64, 96] bf16
// PURE-DAG: hydra.state @w.m8 [24, 256] f8E4M3FN
// PURE-DAG: hydra.state @w.m8_scale [24, 1] init
// PURE-DAG: hydra.state @prime.m [4099] bf16
// PURE: hydra.adamw8bit {{.*}} : tensor<24x256xbf16>, tensor<24x256xf8E4M3FN>, tensor<24x1xf32>

// One kernel reads and writes all that a parameter has.
// FUSED: hydra.fused rows = [24] inner = [256]
// FUSED: hydra.adamw8bit
// FUSED-NOT: hydra.fused
// FUSED: hydra.guard
// FUSED-NOT: hydra.fused
// FUSED: hydra.guard
// FUSED-NOT: hydra.fused
// FUSED: hydra.guard
// FUSED-NOT: hydra.fused
// FUSED: hydra.guard
// FUSED-NOT: hydra.fused
// FUSED: hydra.guard
hydra.model @m version 1 {
  hydra.group @default adamw8bit(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.group @all adamw8bit(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1, min_size = 0.0)
  hydra.param @w [64, 96] init = normal(1.0)
  hydra.param @odd [65, 65] init = normal(1.0)
  hydra.param @prime [4099] init = normal(1.0)
  hydra.param @small [64] init = normal(1.0)
  hydra.param @little [10, 10] init = normal(1.0) group = @all
  hydra.entry @loss(%x: [] f32) {
    %w = hydra.use @w
    %odd = hydra.use @odd
    %prime = hydra.use @prime
    %small = hydra.use @small
    %little = hydra.use @little
    %w2 = hydra.mul %w, %w
    %a = hydra.sum %w2 axes = [0, 1]
    %odd2 = hydra.mul %odd, %odd
    %b = hydra.sum %odd2 axes = [0, 1]
    %prime2 = hydra.mul %prime, %prime
    %c = hydra.sum %prime2 axes = [0]
    %small2 = hydra.mul %small, %small
    %d = hydra.sum %small2 axes = [0]
    %little2 = hydra.mul %little, %little
    %e = hydra.sum %little2 axes = [0, 1]
    %ab = hydra.add %a, %b
    %cd = hydra.add %c, %d
    %abcd = hydra.add %ab, %cd
    %abcde = hydra.add %abcd, %e
    %loss = hydra.mul %abcde, %x
    hydra.return loss = %loss
  }
}
