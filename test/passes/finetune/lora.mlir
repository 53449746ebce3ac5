// RUN: hydra-opt %s --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-lora="rank=2 alpha=6 targets=*.w,inner" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-lora="rank=2 alpha=2 targets=*.w" --hydra-differentiate --canonicalize --cse | FileCheck %s --check-prefix=GRAD

// Beside each matrix stand two small ones; all others are frozen. The product of the small ones is added to what the
// matrix gives, times alpha / rank.
// CHECK-LABEL: hydra.model @m
// CHECK: hydra.param @layers.0.w [6, 4] init = ones from "h.0.w.weight" frozen in "layers.0"
// CHECK-NEXT: hydra.param @layers.0.w.lora_a [2, 4] init = uniform(5.000000e-01) in "layers.0" adapter = #hydra.adapter<"base_model.model.h.0.w.lora_A.weight", 6.000000e+00 : f64>
// CHECK-NEXT: hydra.param @layers.0.w.lora_b [6, 2] init = zeros in "layers.0" adapter = #hydra.adapter<"base_model.model.h.0.w.lora_B.weight", 6.000000e+00 : f64>
// CHECK: hydra.param @layers.1.w.lora_b
// CHECK: hydra.param @inner [4, 4] init = ones frozen
// CHECK: adapter = #hydra.adapter<"base_model.model.inner.lora_A.weight",

// A loop over chunks is given the small matrices beside the one that it keeps.
// CHECK: hydra.entry @[[BODY:[a-z_0-9]*lora_0]]({{.*}}, %lora_a{{[0-9]}}: tensor<2x4xf32>, %lora_b{{[0-9]}}: tensor<4x2xf32>)
// CHECK: %[[W:.*]] = hydra.linear %[[X:.*]], %kept0
// CHECK-NEXT: %[[D:.*]] = hydra.linear %[[X]], %lora_a
// CHECK: %[[S:.*]] = hydra.mul %[[D]], %
// CHECK-NEXT: %[[U:.*]] = hydra.linear %[[S]], %lora_b
// CHECK-NEXT: hydra.add %[[W]], %[[U]]

// CHECK: hydra.entry @loss
// CHECK: %[[A:.*]] = hydra.use @layers.0.w.lora_a
// CHECK-NEXT: %[[B:.*]] = hydra.use @layers.0.w.lora_b
// CHECK: %[[Y:.*]] = hydra.linear %[[X:.*]], %layers.0.w, %layers.0.b
// CHECK-NEXT: %[[L:.*]] = hydra.linear %[[X]], %[[A]]
// CHECK: %[[C:.*]] = hydra.constant {{.*}}value = 3.000000e+00
// CHECK: %[[M:.*]] = hydra.mul %[[L]], %[[C]]
// CHECK-NEXT: %[[H:.*]] = hydra.linear %[[M]], %[[B]]
// CHECK-NEXT: hydra.add %[[Y]], %[[H]]
// CHECK: hydra.loop @[[BODY]](

// At alpha = rank nothing is scaled. Gradients are of small matrices alone.
// GRAD-LABEL: hydra.entry @loss
// GRAD-NOT: value = 1.000000e+00 : tensor<8x2xf32>
// GRAD: hydra.return loss = %{{[^,]*}}, grad @layers.0.w.lora_a = %{{[^,]*}}, grad @layers.0.w.lora_b = %{{[^,]*}}, grad @layers.1.w.lora_a = %{{[^,]*}}, grad @layers.1.w.lora_b = %{{[^,]*}} :
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [6, 4] init = ones from "h.{layer}.w.weight"
    hydra.param @b [6] init = ones
    hydra.param @down [4, 6] init = ones
  }
  hydra.param @inner [4, 4] init = ones
  hydra.entry @loss(%x: [1, 8, 4] f32) {
    %y = hydra.for @layers carry(%h = %x) {
      %u = hydra.let linear(linear(%h, @w, @b), @down)
      hydra.yield %u
    }
    %zero = hydra.constant shape = [1, 1, 4] value = 0.0
    %z, %end = hydra.scan axis = 1 chunk = 1 over(%t = %y) carry(%c = %zero) {
      %n = hydra.let linear(%t, @inner) + %c
      hydra.yield %n, %n
    }
    %square = hydra.let %z * %z
    %loss = hydra.mean %square axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
