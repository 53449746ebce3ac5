// A prefix scan over the channels of each token keeps nothing of earlier tokens: what it carries begins with the same
// number for all of them.
//
// RUN: hydra-opt %s --hydra-bind='batch=2 programs=prefill@decode:logits:S=4,decode@decode:logits:S=1 context=32' --hydra-unroll-layers --hydra-cache=context=32 | FileCheck %s

// CHECK-NOT: carried
// CHECK: hydra.entry @prefill(%tokens: tensor<2x4xi32>, %position: tensor<2xf32>,
// CHECK-NOT: scan_
// CHECK: hydra.return logits = %{{.*}}, token = %{{.*}} updates(@cache.{{[0-9]+}}.seen = %{{.*}})
hydra.model @m version 1 {
  hydra.symbols dims(D = 8, V = 23)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %y = hydra.prefix_scan axis = 2 over(%here = %x) combine(%before) {
      %largest = hydra.let max(%before, %here)
      hydra.yield %largest
    }
    %logits = hydra.let linear(%y, @e)
    hydra.return logits = %logits
  }
}
