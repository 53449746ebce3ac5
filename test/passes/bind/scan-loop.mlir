// RUN: hydra-opt %s --hydra-bind="set=S=21" --hydra-unroll-layers | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="set=S=21" --hydra-unroll-layers | hydra-opt | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="set=S=21" --hydra-unroll-layers --hydra-differentiate="programs=e" | FileCheck %s --check-prefix=GRAD

// Many chunks become a loop over an entry of its own, the last short one stands behind it. Parameters are
// read outside. Two layers share a body unless it depends on the layer.
hydra.model @m version 1 {
  // CHECK: hydra.entry @scan_0(%chunk0: tensor<2x3xf32>, %carried0: tensor<1x3xf32>, %kept0: tensor<3xf32>) scan <10 over[0] carried 1 stacked[0]>
  // CHECK: hydra.return joined0 = %{{.*}}, carried0 = %{{.*}} : tensor<2x3xf32>, tensor<1x3xf32>
  // CHECK: hydra.entry @scan_1_0({{.*}}) scan <21 over[0] carried 1>
  // CHECK-NEXT: %{{.*}} = hydra.sin
  // CHECK: hydra.entry @scan_1_1({{.*}}) scan <21 over[0] carried 1>
  // CHECK-NEXT: %{{.*}} = hydra.tanh
  // CHECK-LABEL: hydra.entry @e
  // CHECK: %[[U:.*]] = hydra.use @layers.0.w
  // CHECK: %[[HEAD:.*]] = hydra.slice %x axis = 0 size = 20 start = 0
  // CHECK: hydra.loop @scan_0(%[[HEAD]], %{{.*}}, %[[U]]) : (tensor<20x3xf32>, tensor<1x3xf32>, tensor<3xf32>) -> (tensor<20x3xf32>, tensor<1x3xf32>)
  // CHECK: hydra.slice %x axis = 0 size = 1 start = 20
  // CHECK: hydra.loop @scan_1_0
  // CHECK: hydra.loop @scan_0(
  // CHECK: hydra.loop @scan_1_1

  // The derivative iterates backwards: over the sequence, what was carried into every chunk, and the gradient of
  // the joined result; it carries the gradient of what is carried and the sum of that of the parameter.
  // GRAD: hydra.entry @scan_0_backward_0({{.*}}) scan <10 over[0, 0, 0] carried 2 stacked[0] reverse true>
  // GRAD: hydra.entry @scan_0_saving_0({{.*}}) scan <10 over[0] carried 1 stacked[0, 0]>
  // GRAD: %[[SAVED:.*]]:3 = hydra.loop @scan_0_saving_0
  // GRAD: hydra.loop @scan_0_backward_0(%{{.*}}, %[[SAVED]]#1,
  hydra.stack @layers[2] {
    hydra.param @w [3] init = normal(1.0)
  }
  hydra.entry @e(%x: [S, 3] f32, %start: [1, 3] f32) dims(S) {
    %all = hydra.for @layers carry(%a = %x) {
      %y, %end = hydra.scan axis = 0 chunk = 2 over(%part = %a) carry(%c = %start) {
        %u = hydra.use @w
        %product = hydra.mul %part, %c
        %joined = hydra.tanh %product
        %mean = hydra.mean %joined axes = [0] keep
        %next = hydra.mul %mean, %u
        hydra.yield %joined, %next
      }
      %last = hydra.scan axis = 0 chunk = 1 over(%part = %y) carry(%c = %end) {
        %scaled = hydra.when layer >= 1 {
          %curve = hydra.tanh %part
          hydra.yield %curve
        } else {
          %curve = hydra.sin %part
          hydra.yield %curve
        }
        %next = hydra.add %c, %scaled
        hydra.yield %next
      }
      %out = hydra.mul %y, %last
      hydra.yield %out
    }
    %loss = hydra.sum %all axes = [0, 1]
    hydra.return loss = %loss
  }
}
