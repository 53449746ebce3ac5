// RUN: hydra-opt %s --hydra-reshard="between=1" | FileCheck %s
// RUN: hydra-opt %s | hydra-opt > %t
// RUN: hydra-opt %s --hydra-reshard | diff %t -

hydra.model @m version 1 mesh <["gpu"], [2]> bound {} {
  hydra.param @unit.a [1, 1024] init = zeros unit = #hydra.unit<"gpu", 2, [<"a", [4, 4], 0, <ones>>]>
  hydra.param @unit.b [1, 1024] init = zeros unit = #hydra.unit<"gpu", 2, [<"b", [4, 4], 0, <ones>>]>

  // Between the first reader and the others another unit is gathered: these read what is gathered again, by
  // views of their own. One gather in between is too few for the default. Another number: it is no copy.
  // CHECK: %[[A:.*]] = hydra.all_gather %unit.a axis = 0 number = 0
  // CHECK: %[[FLAT:.*]] = hydra.reshape %[[A]] shape = [2048]
  // CHECK: %[[SLICE:.*]] = hydra.slice %[[FLAT]]
  // CHECK: %[[W:.*]] = hydra.reshape %[[SLICE]] shape = [4, 4]
  // CHECK: hydra.linear %x, %[[W]]
  // CHECK: %[[B:.*]] = hydra.all_gather %unit.b axis = 0 number = 1
  // CHECK: %[[AGAIN:.*]] = hydra.all_gather %unit.a axis = 0 number = 2
  // CHECK: %[[FLAT2:.*]] = hydra.reshape %[[AGAIN]] shape = [2048]
  // CHECK: %[[SLICE2:.*]] = hydra.slice %[[FLAT2]]
  // CHECK: %[[W2:.*]] = hydra.reshape %[[SLICE2]] shape = [4, 4]
  // CHECK: hydra.linear %{{.*}}, %[[W2]]
  // CHECK: hydra.linear %{{.*}}, %[[W2]]
  // CHECK-NOT: all_gather
  hydra.entry @loss(%x: tensor<2x4xf32>) rows <2 arguments [0] results [0]> {
    %ra = hydra.use @unit.a : tensor<1x1024xf32>
    %ga = hydra.all_gather %ra axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<1x1024xf32>
    %fa = hydra.reshape %ga shape = [2048] : tensor<2x1024xf32>
    %sa = hydra.slice %fa axis = 0 size = 16 start = 0 : tensor<2048xf32>
    %wa = hydra.reshape %sa shape = [4, 4] : tensor<16xf32>
    %1 = hydra.linear %x, %wa : tensor<2x4xf32>, tensor<4x4xf32>
    %rb = hydra.use @unit.b : tensor<1x1024xf32>
    %gb = hydra.all_gather %rb axis = 0 number = 1 over = "gpu" ranks = 2 : tensor<1x1024xf32>
    %fb = hydra.reshape %gb shape = [2048] : tensor<2x1024xf32>
    %sb = hydra.slice %fb axis = 0 size = 16 start = 0 : tensor<2048xf32>
    %wb = hydra.reshape %sb shape = [4, 4] : tensor<16xf32>
    %2 = hydra.linear %1, %wb : tensor<2x4xf32>, tensor<4x4xf32>
    %3 = hydra.linear %2, %wa : tensor<2x4xf32>, tensor<4x4xf32>
    %4 = hydra.linear %3, %wa : tensor<2x4xf32>, tensor<4x4xf32>
    hydra.return y = %4 : tensor<2x4xf32>
  }
}
