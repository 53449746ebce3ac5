// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-schedule | FileCheck %s

// Both large values are summed at the end: each sum moves to where its operand dies, and only one
// large value is alive at a time.
// CHECK-LABEL: hydra.entry @late
// CHECK: %[[A:.*]] = hydra.exp
// CHECK-NEXT: hydra.sum %[[A]]
// CHECK-NEXT: %[[B:.*]] = hydra.tanh
// CHECK-NEXT: hydra.sum %[[B]]
hydra.model @m version 1 {
  hydra.entry @late(%x: [64, 64] f32) {
    %a = hydra.exp %x
    %b = hydra.tanh %x
    %s = hydra.sum %a axes = [0, 1]
    %t = hydra.sum %b axes = [0, 1]
    hydra.return s = %s, t = %t
  }
}

// -----

// Nothing to gain: the order stays.
// CHECK-LABEL: hydra.entry @chain
// CHECK: hydra.exp
// CHECK-NEXT: hydra.tanh
// CHECK-NEXT: hydra.neg
hydra.model @m version 1 {
  hydra.entry @chain(%x: [64, 64] f32) {
    %a = hydra.exp %x
    %b = hydra.tanh %a
    %c = hydra.neg %b
    hydra.return c = %c
  }
}
