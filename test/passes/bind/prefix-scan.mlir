// RUN: hydra-opt %s --hydra-bind="set=S=5" | FileCheck %s
// RUN: hydra-opt %s | hydra-opt --hydra-bind="set=S=5" | FileCheck %s

// Rows 1, 2 and 4 apart are combined; the rows before stay as they are.
hydra.model @m version 1 {
  hydra.symbols dims(S)
  // CHECK-LABEL: hydra.entry @e
  // CHECK: %[[A:.*]] = hydra.slice %x axis = 0 size = 4 start = 0
  // CHECK: %[[B:.*]] = hydra.slice %x axis = 0 size = 4 start = 1
  // CHECK: %[[AB:.*]] = hydra.add %[[A]], %[[B]]
  // CHECK: %[[FIRST:.*]] = hydra.slice %x axis = 0 size = 1 start = 0
  // CHECK: %[[ONE:.*]] = hydra.concat %[[FIRST]], %[[AB]] axis = 0
  // CHECK: hydra.slice %[[ONE]] axis = 0 size = 3 start = 0
  // CHECK: hydra.slice %[[ONE]] axis = 0 size = 3 start = 2
  // CHECK: %[[TWO:.*]] = hydra.concat {{.*}} : tensor<2x3xf32>, tensor<3x3xf32>
  // CHECK: hydra.slice %[[TWO]] axis = 0 size = 1 start = 4
  // CHECK: %[[FOUR:.*]] = hydra.concat {{.*}} : tensor<4x3xf32>, tensor<1x3xf32>
  // CHECK: hydra.return y = %[[FOUR]]
  hydra.entry @e(%x: [S, 3] f32) {
    %y = hydra.prefix_scan axis = 0 over(%here = %x) combine(%before) {
      %sum = hydra.add %before, %here
      hydra.yield %sum
    }
    hydra.return y = %y
  }
}
