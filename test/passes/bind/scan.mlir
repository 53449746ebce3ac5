// RUN: hydra-opt %s --hydra-bind="set=S=5" | FileCheck %s
// RUN: hydra-opt %s | hydra-opt --hydra-bind="set=S=5" | FileCheck %s

// The body stands once for every chunk; the last has one row. What is yielded first is joined, what is
// carried goes on.
hydra.model @m version 1 {
  hydra.symbols dims(S)
  // CHECK-LABEL: hydra.entry @e
  // CHECK: %[[A:.*]] = hydra.slice %x axis = 0 size = 2 start = 0
  // CHECK: %[[SA:.*]] = hydra.add %[[A]], %{{.*}} : tensor<2x3xf32>
  // CHECK: hydra.constant value = 2 : tensor<f32>
  // CHECK: %[[B:.*]] = hydra.slice %x axis = 0 size = 2 start = 2
  // CHECK: %[[SB:.*]] = hydra.add %[[B]],
  // CHECK: %[[C:.*]] = hydra.slice %x axis = 0 size = 1 start = 4
  // CHECK: %[[SC:.*]] = hydra.add %[[C]], %{{.*}} : tensor<1x3xf32>
  // CHECK: hydra.constant value = 1 : tensor<f32>
  // CHECK: %[[LAST:.*]] = hydra.mul %{{.*}} : tensor<1x3xf32>
  // CHECK: %[[ALL:.*]] = hydra.concat %[[SA]], %[[SB]], %[[SC]] axis = 0
  // CHECK: hydra.return y = %[[ALL]], end = %[[LAST]]
  hydra.entry @e(%x: [S, 3] f32, %start: [1, 3] f32) {
    %y, %end = hydra.scan axis = 0 chunk = 2 over(%part = %x) carry(%c = %start) {
      %sum = hydra.add %part, %c
      %n = hydra.constant value = rows
      %next = hydra.mul %c, %n
      hydra.yield %sum, %next
    }
    hydra.return y = %y, end = %end
  }
}
