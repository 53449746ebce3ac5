// RUN: hydra-opt %s --hydra-nest-loops="programs=e chunks=4" | FileCheck %s
// RUN: hydra-opt %s --hydra-nest-loops="programs=e chunks=4" --hydra-differentiate="programs=e" | FileCheck %s --check-prefix=GRAD

// 12 iterations become 3 times 4; of 7 nobody knows parts. The backward pass keeps what the outer loop
// carries, and runs the inner one again.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.param @w [3] init = normal(1.0)
  // CHECK: hydra.entry @body_part_0({{.*}}) scan <4 over[0] carried 1>
  // CHECK-NOT: hydra.entry @body(
  // CHECK: hydra.entry @seven({{.*}}) scan <7 over[0] carried 1>
  // CHECK: hydra.entry @body_parts_0(%chunk0: tensor<4x3xf32>, %carried0: tensor<1x3xf32>) scan <3 over[0] carried 1>
  // CHECK: hydra.loop @body_part_0(%chunk0, %carried0)
  // CHECK: hydra.entry @e
  // CHECK: hydra.loop @body_parts_0
  // CHECK: hydra.loop @seven
  // GRAD: hydra.entry @body_parts_0_backward_0
  // GRAD: hydra.loop @body_part_0_saving_0(
  // GRAD: hydra.loop @body_part_0_backward_0
  // GRAD: hydra.entry @body_parts_0_saving_0({{.*}}) scan <3 over[0] carried 1 stacked[0]>
  hydra.entry @body(%chunk0: tensor<1x3xf32>, %carried0: tensor<1x3xf32>) scan <12 over[0] carried 1> {
    %curve = hydra.tanh %carried0 : tensor<1x3xf32>
    %next = hydra.mul %chunk0, %curve : tensor<1x3xf32>, tensor<1x3xf32>
    hydra.return carried0 = %next : tensor<1x3xf32>
  }
  hydra.entry @seven(%chunk0: tensor<1x3xf32>, %carried0: tensor<1x3xf32>) scan <7 over[0] carried 1> {
    %next = hydra.add %chunk0, %carried0 : tensor<1x3xf32>, tensor<1x3xf32>
    hydra.return carried0 = %next : tensor<1x3xf32>
  }
  hydra.entry @e(%x: tensor<12x3xf32>, %y: tensor<7x3xf32>) {
    %w = hydra.use @w : tensor<3xf32>
    %start = hydra.reshape %w shape = [1, 3] : tensor<3xf32>
    %middle = hydra.loop @body(%x, %start) : (tensor<12x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    %end = hydra.loop @seven(%y, %middle) : (tensor<7x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    %loss = hydra.sum %end axes = [0, 1] : tensor<1x3xf32>
    hydra.return loss = %loss : tensor<f32>
  }
}
