// RUN: hydra-opt %s --hydra-bind="set=S=5" | FileCheck %s
// RUN: hydra-opt %s | hydra-opt --hydra-bind="set=S=5" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="set=S=12" | FileCheck %s --check-prefix=LOOP

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

// From eight rows on, a combination that works number by number is a loop from row to row, in front of which stands the first.
// LOOP: hydra.entry @scan_0(%chunk0: tensor<1x1x3xf32>, %carried0: tensor<1x3xf32>) scan <11 over[1] carried 1 stacked[1]> {
// LOOP-NEXT: %[[HERE:.*]] = hydra.reshape %chunk0 shape = [1, 3]
// LOOP-NEXT: %[[SUM:.*]] = hydra.add %carried0, %[[HERE]]
// LOOP-NEXT: %[[ROW:.*]] = hydra.reshape %[[SUM]] shape = [1, 1, 3]
// LOOP-NEXT: hydra.return joined0 = %[[ROW]], carried0 = %[[SUM]]
// LOOP: hydra.entry @e
// LOOP-NEXT: %[[X:.*]] = hydra.reshape %x shape = [1, 12, 3]
// LOOP-NEXT: %[[FIRST:.*]] = hydra.slice %[[X]] axis = 1 size = 1 start = 0
// LOOP-NEXT: %[[REST:.*]] = hydra.slice %[[X]] axis = 1 size = 11 start = 1
// LOOP-NEXT: %[[START:.*]] = hydra.reshape %[[FIRST]] shape = [1, 3]
// LOOP-NEXT: %[[LATER:.*]]:2 = hydra.loop @scan_0(%[[REST]], %[[START]])
// LOOP-NEXT: %[[ALL:.*]] = hydra.concat %[[FIRST]], %[[LATER]]#0 axis = 1
// LOOP-NEXT: %[[Y:.*]] = hydra.reshape %[[ALL]] shape = [12, 3]
// LOOP-NEXT: hydra.return y = %[[Y]]
