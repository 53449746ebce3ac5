// Rotations by positions that a model computes treat each token alone: they keep nothing, and follow what the call says of
// where it begins.
//
// RUN: hydra-opt %s --hydra-bind='batch=2 programs=prefill@decode:logits:S=4,decode@decode:logits:S=1 context=32' --hydra-unroll-layers --hydra-cache=context=32 | FileCheck %s

// CHECK: hydra.entry @prefill(%tokens: tensor<2x4xi32>, %position: tensor<2xf32>,
// CHECK: %[[BEGIN:.*]] = hydra.max %position,
// CHECK: %[[ROWS:.*]] = hydra.reshape %[[BEGIN]] shape = [2, 1]
// CHECK: %[[FROM:.*]] = hydra.broadcast %[[ROWS]] shape = [2, 4]
// CHECK: %[[TOKENS:.*]] = hydra.add %{{.*}}, %[[FROM]]
// CHECK: %[[FAR:.*]] = hydra.mul %{{.*}} : tensor<2x4xf32>
// CHECK: hydra.rope %{{.*}}, %[[FAR]] base = 1.000000e+02 : tensor<2x4x2x4xf32>, tensor<2x4xf32>
hydra.model @m version 1 {
  hydra.symbols dims(D = 8, V = 23)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %far = hydra.let iota(axis = 1, shape = [B, S], dtype = f32, positions) * 2
    %h = hydra.let rope(reshape(%x, [B, S, 2, D / 2]), %far, base = 100.0)
    %y = hydra.let reshape(attention(%h, %h, %h, scale = 0.5, causal), [B, S, D])
    %logits = hydra.let linear(%y, @e)
    hydra.return logits = %logits
  }
}
