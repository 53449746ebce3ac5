// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=layers.1.up:tf32,*.up:fp32" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=layers.1.up:tf32,*.up:fp32" --hydra-select-quantized="least=8 keep=none" | FileCheck %s --check-prefix=QUANTIZED
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=both.*:fp32" --hydra-differentiate="programs=loss" --canonicalize --cse --hydra-mixed-precision | FileCheck %s --check-prefix=MIXED
// RUN: not hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=bias:fp32" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=*.up:fp32,layers.0.up:tf32" 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: not hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=nobody:fp32" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-precision="rules=head:bf16" 2>&1 | FileCheck %s --check-prefix=BAD

// The first rule that names a layer holds. What is computed from parameters is none, and has no format.
// CHECK-LABEL: hydra.entry @loss
// CHECK: hydra.linear %{{.*}}, %layers.0.up, %bias{{.*}} compute = f32 : tensor
// CHECK: hydra.linear %{{.*}}, %layers.1.up, %bias{{.*}} compute = tf32 : tensor
// CHECK: hydra.linear %{{.*}}, %{{[0-9]+}} : tensor
// CHECK: hydra.linear %{{.*}}, %head{{.*}} : tensor

// What multiplies in more bits does not in fewer.
// QUANTIZED-LABEL: hydra.entry @loss
// QUANTIZED: hydra.linear %{{.*}}, %layers.0.up, %bias{{.*}} compute = f32 : tensor
// QUANTIZED: hydra.linear %{{.*}}, %layers.1.up, %bias{{.*}} compute = tf32 : tensor
// QUANTIZED: hydra.linear %{{.*}}, %head{{.*}} quantize = f8E4M3FN

// A weight of several parameters; derivatives read f32 too.
// MIXED-LABEL: hydra.entry @loss
// MIXED: hydra.linear %{{.*}}, %{{.*}} compute = f32 : tensor<4x8xf32>, tensor<16x8xf32>
// MIXED: hydra.matmul %{{.*}}, %{{.*}} compute = f32 : tensor<4x16xf32>, tensor<16x8xf32>
// MIXED: hydra.matmul %{{.*}}, %{{.*}} compute = f32 transpose_a : tensor<4x16xf32>, tensor<4x8xf32>

// NONE: --layer-precision: 'bias:fp32' changes no layer: none multiplies by what it names, or others before it name the same
// HIDDEN: --layer-precision: 'layers.0.up:tf32' changes no layer
// NOBODY: --layer-precision: 'nobody' matches no parameter; they are head, bias, both.a, ...
// BAD: --layer-precision: 'head:bf16' is no rule; expected PATTERN:fp32 or PATTERN:tf32
hydra.model @m version 1 {
  hydra.param @head [16, 8] init = normal(0.02)
  hydra.param @bias [8] init = zeros
  hydra.param @both.a [8, 8] init = normal(0.02)
  hydra.param @both.b [8, 8] init = normal(0.02)
  hydra.stack @layers[2] {
    hydra.param @up [8, 8] init = normal(0.02)
  }
  hydra.entry @loss(%x: [4, 8] f32) {
    %end = hydra.for @layers carry(%h = %x) {
      %y = hydra.let linear(%h, @up, @bias)
      hydra.yield %y
    }
    %computed = hydra.let linear(%end, @head * 2.0)
    %both = hydra.let linear(%end, concat(@both.a, @both.b, axis = 0))
    %out = hydra.let linear(%end, @head) + %computed + %both
    %loss = hydra.let mean(%out, axes = [0, 1])
    hydra.return loss = %loss
  }
}
