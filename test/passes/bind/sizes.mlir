// What no machine holds is refused at its line, and no sum of sizes is too large for a number.
//
// RUN: not hydra-opt %s --hydra-bind --hydra-unroll-layers 2>&1 | FileCheck %s
// RUN: not hydra-opt %s --hydra-bind=set=N=70368744177664 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not hydra-opt %s --hydra-bind=set=N=9223372036854775807 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: hydra-opt %s --hydra-bind='set=N=1048576' --hydra-unroll-layers | FileCheck %s --check-prefix=SMALL

// CHECK: sizes.mlir:{{[0-9]+:14}}: error: 'hydra.neg' op is one of those whose values take more than 2^62 bytes
// LARGE: sizes.mlir:{{[0-9]+}}:3: error: 'hydra.entry' op argument shape {{.*}} has more than 2^45 elements, which no process can address
// SMALL: hydra.entry @e
hydra.model @m version 1 {
  hydra.symbols dims(N = 35184372088832)
  hydra.stack @layers[1024] {
  }
  hydra.entry @e(%start: [N] f32) {
    %end = hydra.for @layers carry(%x = %start) {
      %y1 = hydra.neg %x
      %y2 = hydra.neg %y1
      %y3 = hydra.neg %y2
      %y4 = hydra.neg %y3
      %y5 = hydra.neg %y4
      %y6 = hydra.neg %y5
      %y7 = hydra.neg %y6
      %y8 = hydra.neg %y7
      %y9 = hydra.neg %y8
      %y10 = hydra.neg %y9
      %y11 = hydra.neg %y10
      %y12 = hydra.neg %y11
      %y13 = hydra.neg %y12
      %y14 = hydra.neg %y13
      %y15 = hydra.neg %y14
      %y16 = hydra.neg %y15
      %y17 = hydra.neg %y16
      %y18 = hydra.neg %y17
      %y19 = hydra.neg %y18
      %y20 = hydra.neg %y19
      %y21 = hydra.neg %y20
      %y22 = hydra.neg %y21
      %y23 = hydra.neg %y22
      %y24 = hydra.neg %y23
      %y25 = hydra.neg %y24
      %y26 = hydra.neg %y25
      %y27 = hydra.neg %y26
      %y28 = hydra.neg %y27
      %y29 = hydra.neg %y28
      %y30 = hydra.neg %y29
      %y31 = hydra.neg %y30
      %y32 = hydra.neg %y31
      %y33 = hydra.neg %y32
      hydra.yield %y33
    }
    hydra.return end = %end
  }
}
