// RUN: hydra-opt %s --hydra-bind='batch=2 programs=prefill@decode:logits:S=4,decode@decode:logits:S=1 context=32' --hydra-unroll-layers --hydra-cache=context=32 | FileCheck %s
// RUN: hydra-opt %s --hydra-bind='batch=2 programs=prefill@decode:logits:S=4,decode@decode:logits:S=1 context=32' --hydra-unroll-layers --hydra-cache=context=32 --canonicalize --cse --hydra-form-fusions | FileCheck %s --check-prefix=FUSED

// A window of 6 tokens, of which calls of 4 write all before the first one reads: 9 slots. A scan's state, and the two
// rows before the call, for each sequence.
// CHECK: hydra.param @e
// CHECK-DAG: hydra.state @cache.{{[0-9]+}}.keys [2, 1, 9, 4] init = zeros as cache
// CHECK-DAG: hydra.state @cache.{{[0-9]+}}.values [2, 1, 9, 4] init = zeros as cache
// CHECK-DAG: hydra.state @cache.{{[0-9]+}}.rows [2, 2, 4] init = zeros as cache
// CHECK-DAG: hydra.state @cache.{{[0-9]+}}.carried0 [2, 1, 4] init = zeros as cache
// CHECK-DAG: hydra.state @cache.{{[0-9]+}}.seen [2, 1] i32 init = zeros as cache

// CHECK: hydra.entry @prefill(%tokens: tensor<2x4xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) role(decode)
// CHECK-NOT: scan_
// CHECK: hydra.rope %{{.*}}, %{{.*}} base = 1.000000e+02
// CHECK: %{{.*}}, %[[KEYS:.*]], %[[VALUES:.*]] = hydra.cached_attention %{{.*}}, %cache.{{[0-9]+}}.keys, %cache.{{[0-9]+}}.values, %position cap = 2.000000e+01 scale = 5.000000e-01 window = 6 : tensor<2x4x1x4xf32>,
// Only the last token has scores.
// CHECK-COUNT-2: hydra.slice %{{.*}} axis = 1 size = 1 start = 3 : tensor<2x4x4xf32>
// CHECK: %[[LAST:.*]] = hydra.add %{{.*}} : tensor<2x1x4xf32>
// CHECK: %[[LOGITS:.*]] = hydra.linear %[[LAST]]
// An id is drawn from them, by the ids that the sequences have.
// CHECK: %[[SCORES:.*]] = hydra.reshape %[[LOGITS]]
// CHECK: %[[TOKEN:.*]], %[[SEEN:.*]] = hydra.sample %[[SCORES]], %tokens, %cache.{{[0-9]+}}.seen, %position, %settings, %draw : tensor<2x10xf32>, tensor<2x4xi32>, tensor<2x1xi32>,
// CHECK: hydra.return logits = %[[LOGITS]], token = %[[TOKEN]] updates({{.*}}@cache.{{[0-9]+}}.seen = %[[SEEN]]

// CHECK: hydra.entry @decode(%tokens: tensor<2x1xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) role(decode)
// CHECK: hydra.cached_attention %{{.*}} : tensor<2x1x1x4xf32>,
// CHECK: hydra.sample %{{.*}}, %tokens, %{{.*}} : tensor<2x10xf32>, tensor<2x1xi32>,
// CHECK: hydra.return logits = %{{.*}}, token = %{{.*}} updates(@cache.

// The rotation by positions is one of a group's operations.
// FUSED: hydra.fused rows = [2, 4] inner = [1, 4]
// FUSED-NEXT: hydra.rope %{{.*}}, %{{.*}} base = 1.000000e+02
hydra.model @m version 1 {
  hydra.symbols dims(D = 4, V = 10)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.def @mix(%x) {
    %h = hydra.let rope(reshape(%x, [B, S, 1, D]), base = 100.0)
    %o = hydra.let reshape(attention(%h, %h, %h, scale = 0.5, cap = 20.0, causal, window = 6), [B, S, D])
    hydra.yield %o
  }
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %earlier = hydra.let slice(pad(%x, axis = 1, before = 2, after = 0), axis = 1, start = 0, size = S)
    %zero = hydra.constant value = 0 shape = [B, 1, D]
    %sums, %last = hydra.scan axis = 1 chunk = 1 over(%row = %earlier) carry(%sum = %zero) {
      %next = hydra.let %sum * 0.5 + %row
      hydra.yield %next, %next
    }
    %logits = hydra.let linear(%sums + @mix(%x), @e)
    hydra.return logits = %logits
  }
}
