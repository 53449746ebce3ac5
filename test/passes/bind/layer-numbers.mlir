// RUN: hydra-opt %s --hydra-bind="programs=loss:loss" --hydra-unroll-layers | FileCheck %s
// RUN: not hydra-opt %s --hydra-bind="programs=shapes:shapes" --hydra-unroll-layers 2>&1 | FileCheck %s --check-prefix=SHAPES
// RUN: not hydra-opt %s --hydra-bind="programs=bad:bad" --hydra-unroll-layers 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: hydra-opt %s --hydra-bind="programs=loss:loss" | hydra-opt --hydra-unroll-layers | FileCheck %s

// The number of a layer as a number: in arithmetic, as what a definition is given, in attributes, and in scans.
// CHECK-LABEL: hydra.entry @loss
// CHECK: hydra.constant value = 5.000000e-01
// CHECK: hydra.rms_norm %{{.*}}, %layers.0.w eps = 1.000000e+00
// CHECK: hydra.loop @scan_{{[0-9]+}}
// CHECK: hydra.constant value = 0.33333333
// CHECK: hydra.rms_norm %{{.*}}, %layers.1.w eps = 2.000000e+00
// CHECK: hydra.loop @scan_{{[0-9]+}}
// SHAPES: error: 'hydra.broadcast' op is 'tensor<2x3xf32>' in layers.1, and 'tensor<1x3xf32>' in the first layer; expected the same in all
// BAD: error: hydra.rms_norm: eps is -1; expected a finite number from 0
hydra.model @m version 1 {
  hydra.symbols dims(L = 2, D = 3)
  hydra.stack @layers[L] { hydra.param @w [D] init = ones }
  hydra.def @normed(%x) reals(g) = rms_norm(%x, @w, eps = g)
  hydra.entry @loss(%a: [16, D] f32) {
    %zero = hydra.constant value = 0 shape = [1, D]
    %e = hydra.for @layers carry(%x = %a) {
      %y = hydra.let @normed(%x * (1.0 / (layer + 2)), g = layer + 1)
      %all, %end = hydra.scan axis = 0 chunk = 1 over(%row = %y) carry(%s = %zero) {
        %n = hydra.let %s * 0.5 + %row * (layer + 1)
        hydra.yield %n, %n
      }
      hydra.yield %all
    }
    %l = hydra.let sum(%e, axes = [0, 1])
    hydra.return loss = %l
  }
  hydra.entry @shapes(%a: [D] f32) {
    %e = hydra.for @layers carry(%x = %a) {
      %y = hydra.let sum(broadcast(%x * @w, [layer + 1, D]), axes = [0])
      hydra.yield %y
    }
    %l = hydra.let sum(%e, axes = [0])
    hydra.return loss = %l
  }
  hydra.entry @bad(%a: [2, D] f32) {
    %e = hydra.for @layers carry(%x = %a) {
      %y = hydra.let rms_norm(%x, @w, eps = 1.0 - 2.0 * layer)
      hydra.yield %y
    }
    %l = hydra.let sum(%e, axes = [0, 1])
    hydra.return loss = %l
  }
}
