// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-apply-dropout="programs=loss" | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-apply-dropout | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-apply-dropout="programs=loss" --hydra-differentiate | FileCheck %s --check-prefix=GRAD
// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2 set=part=0.0" --hydra-unroll-layers --hydra-apply-dropout="programs=loss" | FileCheck %s --check-prefix=NONE

// Where nothing is trained, or nothing dropped, nothing is left of it.
// NONE-NOT: hydra.dropout
// NONE-NOT: hydra.random
// NONE-NOT: draw_low

// A program that trains takes a key and the number of the micro-batch. Two dropouts of one value have streams of their own.
// A word is kept from p 2^32 - 2^31 on: -2^30.
// CHECK-LABEL: hydra.model @two
// CHECK: hydra.entry @loss(%x: tensor<2x3x4xf32>, %draw_low: tensor<i32>{{.*}}, %draw_high: tensor<i32>{{.*}}, %micro_batch: tensor<i32>
// CHECK: %[[V:.*]] = hydra.mul
// CHECK-DAG: hydra.broadcast %micro_batch
// CHECK-DAG: hydra.iota axis = 0 {{.*}}shape = [2, 3, 4]
// CHECK-DAG: hydra.iota axis = 1 {{.*}}shape = [2, 3, 4]
// CHECK-DAG: hydra.iota axis = 2 {{.*}}shape = [2, 3, 4]
// CHECK: %[[R0:.*]] = hydra.random {{.*}} stream = 0
// CHECK: hydra.constant {{.*}} value = -1073741824.0 : tensor<2x3x4xi32>
// CHECK: %[[K0:.*]] = hydra.compare %[[R0]], %{{.*}} is = "ge"
// CHECK: hydra.dropout %[[V]], %[[K0]] p = 2.500000e-01
// CHECK: hydra.random {{.*}} stream = 1
// CHECK: hydra.dropout %[[V]], %

// Another program of the same entry drops nothing.
// CHECK: hydra.entry @other(%x: tensor<2x3x4xf32>){{.*}} {
// CHECK-NOT: hydra.dropout

// The derivative drops the same of the gradient.
// GRAD-LABEL: hydra.model @two
// GRAD: hydra.dropout %{{.*}}, %[[K0:.*]] p = 2.500000e-01
// GRAD: hydra.dropout %{{.*}}, %[[K1:.*]] p = 2.500000e-01
// GRAD: hydra.dropout %{{.*}}, %[[K1]] p = 2.500000e-01
// GRAD: hydra.dropout %{{.*}}, %[[K0]] p = 2.500000e-01
hydra.model @two version 1 {
  hydra.symbols reals(part = 0.25)
  hydra.param @w [4] init = ones
  hydra.entry @loss(%x: [2, 3, 4] f32) {
    %v = hydra.let %x * @w
    %y = hydra.let dropout(%v, p = part) + dropout(%v, p = part)
    %loss = hydra.mean %y axes = [0, 1, 2]
    hydra.return loss = %loss
  }
  hydra.entry @other(%x: [2, 3, 4] f32) {
    %v = hydra.let %x * @w
    %y = hydra.let dropout(%v, p = part)
    hydra.return y = %y
  }
}

// -----

// A loop gets a body that draws by a key of its own and the number of the iteration; the body of who drops nothing stays.
// CHECK-LABEL: hydra.model @loop
// CHECK: hydra.entry @[[DRAWS:[a-z_0-9]*drawing_0]](
// CHECK-SAME: tensor<1xi32>
// CHECK: hydra.random {{.*}} stream = 0 : tensor<i32>
// CHECK: hydra.random {{.*}} stream = 1 : tensor<i32>
// CHECK: hydra.random {{.*}} stream = 2 : tensor<1x2x4xi32>
// CHECK: hydra.dropout
// CHECK: hydra.entry @loss
// CHECK: hydra.random {{.*}} stream = 0 : tensor<i32>
// CHECK: hydra.random {{.*}} stream = 1 : tensor<i32>
// CHECK: hydra.iota axis = 0 {{.*}}shape = [4]
// CHECK: hydra.loop @[[DRAWS]](
hydra.model @loop version 1 {
  hydra.symbols reals(part = 0.25)
  hydra.param @w [4] init = ones
  hydra.entry @loss(%x: [1, 8, 4] f32) {
    %v = hydra.let %x * @w
    %zero = hydra.constant shape = [1, 2, 4] value = 0.0
    %z, %end = hydra.scan axis = 1 chunk = 2 over(%t = %v) carry(%c = %zero) {
      %n = hydra.let dropout(%t, p = part) + %c
      hydra.yield %n, %n
    }
    %loss = hydra.mean %z axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
