// RUN: hydra-opt %s --hydra-bind="set=S=12" | FileCheck %s

// Rows of different sizes would be several steps in every iteration of a loop, and no lanes: they are combined at once,
// 1, 2, 4 and 8 apart.
// CHECK-NOT: hydra.loop
// CHECK: hydra.slice %x axis = 0 size = 11 start = 0
// CHECK: hydra.slice {{.*}} axis = 0 size = 4 start = 8
// CHECK-NOT: hydra.loop
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.symbols dims(S)
  hydra.entry @e(%x: [S, 3] f32, %begins: [S, 1] f32) {
    %all, %begun = hydra.prefix_scan axis = 0 over(%here = %x, %b1 = %begins) combine(%before, %b0) {
      %both, %any = hydra.let select(%b1 > 0, %here, %before + %here), max(%b0, %b1)
      hydra.yield %both, %any
    }
    hydra.return y = %all
  }
}
