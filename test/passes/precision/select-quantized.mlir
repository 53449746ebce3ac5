// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=8" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=8 keep=layers.*.up format=e4m3" | FileCheck %s --check-prefix=NAMED
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=8 keep=default,layers.1.up" | FileCheck %s --check-prefix=MORE
// RUN: not hydra-opt %s --hydra-bind --hydra-select-quantized="keep=none format=e3m4" 2>&1 | FileCheck %s --check-prefix=BAD

// The first and the last layer stay as they are, so does the head, and what has few outputs; a weight that is computed is
// no parameter.
// CHECK-LABEL: hydra.entry @run
// CHECK: hydra.linear %{{.*}}, %layers.0.up : tensor
// CHECK: hydra.linear %{{.*}}, %layers.0.router : tensor
// CHECK: hydra.linear %{{.*}}, %layers.1.up quantize = f8E4M3FN quantize_gradient = f8E5M2 : tensor
// CHECK: hydra.linear %{{.*}}, %layers.1.router : tensor
// CHECK: hydra.linear %{{.*}}, %layers.2.up : tensor
// CHECK: hydra.linear %{{.*}}, %{{[0-9]+}} : tensor
// CHECK: hydra.linear %{{.*}}, %head{{.*}} : tensor
// CHECK-NOT: quantize
// NAMED: hydra.linear %{{.*}}, %layers.1.up : tensor
// NAMED: hydra.linear %{{.*}}, %head{{.*}} quantize = f8E4M3FN quantize_gradient = f8E4M3FN : tensor
// MORE-LABEL: hydra.entry @run
// MORE-NOT: quantize
// MORE: hydra.linear %{{.*}}, %layers.1.up : tensor
// MORE-NOT: quantize
// MORE: hydra.linear %{{.*}}, %head{{.*}} : tensor
// MORE-NOT: quantize
// BAD: has no 8-bit format 'e3m4'; expected hybrid or e4m3
hydra.model @m version 1 {
  hydra.param @head [16, 8] init = normal(0.02)
  hydra.stack @layers[3] {
    hydra.param @up [8, 8] init = normal(0.02)
    hydra.param @router [2, 8] init = normal(0.02)
  }
  hydra.entry @run(%x: [4, 8] f32) {
    %end = hydra.for @layers carry(%h = %x) {
      %a = hydra.let linear(%h, @up)
      %b = hydra.let sum(linear(%h, @router), axes = [1], keep)
      %y = hydra.let %a + %b
      hydra.yield %y
    }
    %computed = hydra.let linear(%end, @head * 2.0)
    %out = hydra.let linear(%end, @head) + %computed
    hydra.return out = %out
  }
}
