// RUN: hydra-opt %s --hydra-bind="preset=small batch=2 seq=5" | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="preset=small set=D=12,wide=true batch=2 seq=5" | FileCheck %s --check-prefix=WIDE
// RUN: hydra-opt %s --hydra-bind="preset=small batch=2 seq=5 programs=train:loss,eval:loss" | FileCheck %s --check-prefix=PROGRAMS

// Symbols become numbers, expressions of initialisers too; `layer` stays until layers are unrolled.
// CHECK: hydra.model @m version 1 bound {preset = "small"
// CHECK: hydra.param @e [7, 8] init = normal(5.000000e-01)
// CHECK-NOT: hydra.param @extra
// CHECK: hydra.stack @layers[2]
// CHECK: hydra.param @w [8] init = constant(real(layer))
// Arguments and values get static types; ids are bounded by the table they index.
// CHECK: hydra.entry @loss(%tokens: tensor<2x5xi32>) ids(7)
// CHECK: hydra.embedding {{.*}} : tensor<2x5xi32>, tensor<7x8xf32>
// The body of a definition replaces its call, and a broadcast becomes explicit.
// CHECK: hydra.broadcast {{.*}} shape = [2, 5, 8] : tensor<8xf32>
// CHECK: hydra.mul {{.*}} : tensor<2x5x8xf32>, tensor<2x5x8xf32>
// The branch that is not taken is gone.
// CHECK: hydra.tanh
// CHECK-NOT: hydra.exp
// CHECK-NOT: hydra.def

// A setting goes over the preset; a flag brings parameter and branch.
// WIDE: hydra.param @extra [12]
// WIDE-NOT: hydra.tanh
// WIDE: hydra.exp

// One entry can serve two programs.
// PROGRAMS: hydra.entry @train(
// PROGRAMS: hydra.entry @eval(
hydra.model @m version 1 {
  hydra.symbols dims(D, V, L = 2) reals(std = 0.5) flags(wide = false)
  hydra.derive half = D / 2
  hydra.preset @small {D = 8, V = 7}
  hydra.param @e [V, half * 2] init = normal(std)
  hydra.param @extra [D] init = ones when wide
  hydra.stack @layers[L] {
    hydra.param @w [D] init = constant(real(layer))
  }
  hydra.def @scale(%x) {
    %y = hydra.for @layers carry(%h = %x) {
      %w = hydra.use @w
      %z = hydra.mul %h, %w
      hydra.yield %z
    }
    hydra.yield %y
  }
  hydra.entry @loss(%tokens: [B, S] i32) dims(B, S) {
    %e = hydra.use @e
    %x = hydra.embedding %tokens, %e
    %y = hydra.call @scale(%x)
    %z = hydra.when wide {
      %extra = hydra.use @extra
      %a = hydra.exp %y
      %b = hydra.add %a, %extra
      hydra.yield %b
    } else {
      %a = hydra.tanh %y
      hydra.yield %a
    }
    %loss = hydra.mean %z axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
