// What a loop makes of sequences side by side is not known, and no reason to refuse them.
//
// RUN: hydra-opt %s --hydra-bind='batch=2 programs=prefill@decode:logits:S=4,decode@decode:logits:S=1 context=32' --hydra-unroll-layers --hydra-cache=context=32 | FileCheck %s

// CHECK: hydra.state @cache.{{[0-9]+}}.carried0 [2, 1, 8] init = zeros as cache
// CHECK: hydra.entry @prefill(
// CHECK: hydra.loop
// CHECK: hydra.entry @decode(
// CHECK: hydra.loop
hydra.model @m version 1 {
  hydra.symbols dims(D = 8, V = 23, R = 9)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @w [D, D] init = normal(0.5)
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %zero = hydra.constant value = 0.0 shape = [B, 1, D]
    %y, %end = hydra.scan axis = 1 chunk = 1 over(%c = %x) carry(%s = %zero) {
      %n = hydra.let tanh(%s * 0.9 + %c)
      %rounds = hydra.iota axis = 0 shape = [R]
      %u, %o = hydra.scan axis = 0 chunk = 1 over(%i = %rounds) carry(%v = %n) {
        %t = hydra.let tanh(linear(%v, @w) + %c)
        hydra.yield %i, %t
      }
      hydra.yield %o, %n
    }
    %logits = hydra.let linear(%y, @e)
    hydra.return logits = %logits
  }
}
