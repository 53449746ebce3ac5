// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=1" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=1 keep=layers.1.up,default" | FileCheck %s --check-prefix=BOTH
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=1 keep=layers.1.up" | FileCheck %s --check-prefix=NAMED
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-select-quantized="least=1 keep=none" | FileCheck %s --check-prefix=NONE

// By default what gives the scores of a choice stays as it is, however many are chosen from: of experts, and of tokens. What the
// scores are computed from, and what is chosen, are layers like any other, also where they are as many numbers.
// CHECK-LABEL: hydra.entry @run
// CHECK: hydra.linear %{{.*}}, %layers.1.up quantize
// CHECK: hydra.linear %{{.*}}, %layers.1.inner quantize
// CHECK: hydra.linear %{{.*}}, %layers.1.router : tensor
// CHECK: hydra.linear %{{.*}}, %layers.1.gate : tensor
// CHECK: hydra.linear %{{.*}}, %layers.1.down quantize

// So with a pattern beside, but not with one alone.
// BOTH-LABEL: hydra.entry @run
// BOTH: hydra.linear %{{.*}}, %layers.1.up : tensor
// BOTH: hydra.linear %{{.*}}, %layers.1.inner quantize
// BOTH: hydra.linear %{{.*}}, %layers.1.router : tensor
// BOTH: hydra.linear %{{.*}}, %layers.1.gate : tensor
// NAMED-LABEL: hydra.entry @run
// NAMED: hydra.linear %{{.*}}, %layers.1.up : tensor
// NAMED: hydra.linear %{{.*}}, %layers.1.router quantize
// NAMED: hydra.linear %{{.*}}, %layers.1.gate quantize
// NONE-LABEL: hydra.entry @run
// NONE: hydra.linear %{{.*}}, %layers.1.router quantize
// NONE: hydra.linear %{{.*}}, %layers.1.gate quantize
hydra.model @m version 1 {
  hydra.stack @layers[3] {
    hydra.param @up [8, 8] init = normal(0.02)
    hydra.param @inner [8, 8] init = normal(0.02)
    hydra.param @router [8, 8] init = normal(0.02)
    hydra.param @bias [8] init = zeros
    hydra.param @gate [1, 8] init = normal(0.02)
    hydra.param @down [8, 8] init = normal(0.02)
  }
  hydra.entry @run(%x: [4, 8] f32) {
    %end = hydra.for @layers carry(%h = %x) {
      %u = hydra.let %h + linear(%h, @up)
      %shares = hydra.let softmax(linear(silu(linear(%u, @inner)), @router)) + @bias
      %chosen = hydra.top_k %shares k = 2
      %index, %group, %place, %offsets = hydra.route %chosen k = 2
      %experts = hydra.let take_rows(take_rows(%u, %index, %place), %place, %index)
      %mask = hydra.let reshape(sigmoid(linear(%u, @gate)) > 0.5, [4])
      %active, %at, %count = hydra.compact %mask
      %some = hydra.let take_rows(take_rows(%u, %active, %at), %at, %active)
      %y = hydra.let %u + linear(%experts + %some, @down)
      hydra.yield %y
    }
    hydra.return out = %end
  }
}
