// A program that measures a loss over labels which it makes itself also returns how many of them count.
//
// RUN: hydra-opt %s --hydra-bind="programs=eval@eval:made,given@eval:given,trained:made,both@eval:both" | FileCheck %s
// RUN: sed 's/return loss = %loss$/return loss = %loss, loss_labels = %loss/' %s | not hydra-opt --hydra-bind="programs=eval@eval:made" 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: error: 'hydra.return' op has an output 'loss_labels', which programs that measure add

// CHECK-LABEL: hydra.entry @eval(
// CHECK: %[[LABELS:.*]] = hydra.select
// CHECK: hydra.cross_entropy %{{.*}}, %[[LABELS]]
// CHECK: %[[FLAT:.*]] = hydra.reshape %[[LABELS]] shape = [8]
// CHECK: hydra.compare %[[FLAT]], %{{.*}} is = "ne"
// CHECK: %[[COUNT:.*]] = hydra.sum
// CHECK: hydra.return loss = %{{.*}}, loss_labels = %[[COUNT]] : tensor<f32>, tensor<f32>

// Labels that are given are counted by whoever gives them, and training counts those of a step.
// CHECK-LABEL: hydra.entry @given(
// CHECK: hydra.return loss = %{{[a-z0-9_]+}} : tensor<f32>
// CHECK-LABEL: hydra.entry @trained(
// CHECK: hydra.return loss = %{{[a-z0-9_]+}} : tensor<f32>

// Of several sets, all that count in each.
// CHECK-LABEL: hydra.entry @both(
// CHECK: %[[FIRST:.*]] = hydra.sum
// CHECK: %[[SECOND:.*]] = hydra.sum
// CHECK: %[[ALL:.*]] = hydra.add %[[FIRST]], %[[SECOND]]
// CHECK: hydra.return loss = %{{.*}}, loss_labels = %[[ALL]] : tensor<f32>, tensor<f32>
hydra.model @m version 1 {
  hydra.param @w [5, 5] init = zeros
  hydra.entry @made(%tokens: [2, 4] i32, %labels: [2, 4] i32) {
    %x = hydra.let embedding(%tokens, @w)
    %kept = hydra.let select(%tokens == 0, -100, %labels)
    %loss = hydra.let cross_entropy(%x, %kept)
    hydra.return loss = %loss
  }
  hydra.entry @given(%tokens: [2, 4] i32, %labels: [2, 4] i32) {
    %x = hydra.let embedding(%tokens, @w)
    %loss = hydra.let cross_entropy(reshape(%x, [8, 5]), reshape(%labels, [8]))
    hydra.return loss = %loss
  }
  hydra.entry @both(%tokens: [2, 4] i32, %labels: [2, 4] i32) {
    %x = hydra.let embedding(%tokens, @w)
    %kept = hydra.let select(%tokens == 0, -100, %labels)
    %loss = hydra.let cross_entropy(%x, %kept) + cross_entropy(%x, %labels) + cross_entropy(reshape(%x, [8, 5]), reshape(%kept, [8]))
    hydra.return loss = %loss
  }
}
