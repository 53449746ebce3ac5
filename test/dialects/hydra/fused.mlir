// Groups of row-wise operations: what is printed reads back the same, also in generic form.
//
// RUN: hydra-opt %s -o %t.out
// RUN: FileCheck %s --input-file=%t.out
// RUN: hydra-opt %t.out | diff %t.out -
// RUN: hydra-opt %s --mlir-print-op-generic | hydra-opt | diff %t.out -

hydra.model @m version 1 bound {symbols = {}} {
  hydra.param @table [11, 8] init = ones
  hydra.param @w [8] init = ones
  // CHECK-LABEL: hydra.entry @loss
  hydra.entry @loss(%x: tensor<2x3x8xf32>, %ids: tensor<2x3xi32>, %s: tensor<f32>) {
    %table = hydra.use @table : tensor<11x8xf32>
    %w = hydra.use @w : tensor<8xf32>

    // Values of every form: tiles, row values, column values, scalars, a table.
    // CHECK:      %0:3 = hydra.fused rows = [2, 3] inner = [8] (%arg0 = %ids, %arg1 = %table, %arg2 = %x, %arg3 = %w, %arg4 = %s) : tensor<2x3xi32>, tensor<11x8xf32>, tensor<2x3x8xf32>, tensor<8xf32>, tensor<f32> {
    // CHECK-NEXT:   hydra.embedding %arg0, %arg1
    // CHECK:        hydra.broadcast %arg4 shape = [2, 3, 8]
    // CHECK:        hydra.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<8xf32>
    // CHECK-NEXT: }
    %y:3 = hydra.fused rows = [2, 3] inner = [8]
        (%i = %ids, %t = %table, %a = %x, %c = %w, %f = %s)
        : tensor<2x3xi32>, tensor<11x8xf32>, tensor<2x3x8xf32>, tensor<8xf32>, tensor<f32> {
      %e = hydra.embedding %i, %t : tensor<2x3xi32>, tensor<11x8xf32>
      %sum = hydra.add %e, %a : tensor<2x3x8xf32>, tensor<2x3x8xf32>
      %fs = hydra.broadcast %f shape = [2, 3, 8] : tensor<f32>
      %scaled = hydra.mul %sum, %fs : tensor<2x3x8xf32>, tensor<2x3x8xf32>
      %n, %r = hydra.rms_norm %scaled, %c eps = 1.0e-5 saving : tensor<2x3x8xf32>, tensor<8xf32>
      %columns = hydra.sum %n axes = [0, 1] : tensor<2x3x8xf32>
      hydra.yield %n, %r, %columns : tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<8xf32>
    }

    // Without inputs, and over nothing but one number.
    // CHECK: %1 = hydra.fused rows = [] inner = [] {
    %one = hydra.fused rows = [] inner = [] {
      %c = hydra.constant value = 1.0 : tensor<f32>
      hydra.yield %c : tensor<f32>
    }
    hydra.return y = %y#0, r = %y#1, s = %y#2, one = %one
        : tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<8xf32>, tensor<f32>
  }
}
