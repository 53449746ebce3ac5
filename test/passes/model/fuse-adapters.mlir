// RUN: hydra-opt %s --hydra-bind --hydra-lora="rank=2 alpha=2 targets=w?" --canonicalize --cse --hydra-fuse-qkv --hydra-fuse-gate-up --hydra-fuse-adapters | FileCheck %s

// The adapters' first matrices are joined, and the second ones read slices. Projections that an adapter adds to stay
// apart; those without one are joined as ever.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[Q:.*]] = hydra.linear %x, %wq :
// CHECK: %[[A:.*]] = hydra.concat %wq.lora_a, %wk.lora_a, %wv.lora_a axis = 0
// CHECK: %[[L:.*]] = hydra.linear %x, %[[A]] : tensor<1x4x8xf32>, tensor<6x8xf32>
// CHECK: %[[LQ:.*]] = hydra.slice %[[L]] axis = 2 size = 2 start = 0
// CHECK: %[[PQ:.*]] = hydra.linear %[[LQ]], %wq.lora_b
// CHECK: hydra.add %[[Q]], %[[PQ]]
// CHECK-NOT: hydra.concat
// CHECK: hydra.attention
// CHECK: hydra.concat %gate, %up axis = 0
// CHECK-NOT: hydra.concat
hydra.model @m version 1 {
  hydra.param @wq [8, 8] init = normal(0.02)
  hydra.param @wk [8, 8] init = normal(0.02)
  hydra.param @wv [8, 8] init = normal(0.02)
  hydra.param @gate [6, 8] init = normal(0.02)
  hydra.param @up [6, 8] init = normal(0.02)
  hydra.entry @loss(%x: [1, 4, 8] f32) {
    %q0, %k0, %v0 = hydra.let linear(%x, @wq), linear(%x, @wk), linear(%x, @wv)
    %q = hydra.reshape %q0 shape = [1, 4, 2, 4]
    %k = hydra.reshape %k0 shape = [1, 4, 2, 4]
    %v = hydra.reshape %v0 shape = [1, 4, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    %y = hydra.reshape %o shape = [1, 4, 8]
    %g, %u = hydra.let linear(%y, @gate), linear(%y, @up)
    %h = hydra.let silu(%g) * %u
    %loss = hydra.mean %h axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
