// Collectives and the mesh survive printing and parsing.
//
// RUN: hydra-opt %s | FileCheck %s
// RUN: hydra-opt %s | hydra-opt | FileCheck %s

// CHECK: hydra.model @m version 1 mesh <["node", "gpu"], [2, 3]> bound {}
hydra.model @m version 1 mesh <["node", "gpu"], [2, 3]> bound {} {
  // CHECK: hydra.entry @e(%x: tensor<6x4xf32>, %s: tensor<f32>) rows <6 arguments[0, -1] results[-1, 0, -1]>
  hydra.entry @e(%x: tensor<6x4xf32>, %s: tensor<f32>) rows <6 arguments [0, -1] results [-1, 0, -1]> {
    // CHECK: %[[R:.*]] = hydra.rank over = "gpu" ranks = 3 : tensor<i32>
    %r = hydra.rank over = "gpu" ranks = 3 : tensor<i32>
    // CHECK: hydra.all_gather %x axis = 1 number = 4 over = "node" ranks = 2 : tensor<6x4xf32>
    %g = hydra.all_gather %x axis = 1 over = "node" ranks = 2 number = 4 : tensor<6x4xf32>
    // CHECK: hydra.all_to_all %{{.*}} axis = 0 number = 5 over = "gpu" ranks = 3 : tensor<6x8xf32>
    %t = hydra.all_to_all %g axis = 0 over = "gpu" ranks = 3 number = 5 : tensor<6x8xf32>
    // CHECK: hydra.reduce_scatter %{{.*}} axis = 1 over = "node" ranks = 2 : tensor<6x8xf32>
    %p = hydra.reduce_scatter %t axis = 1 over = "node" ranks = 2 : tensor<6x8xf32>
    // CHECK: hydra.all_reduce %s, %s over = "gpu" ranks = 3 : tensor<f32>, tensor<f32>
    %y = hydra.all_reduce %s, %s over = "gpu" ranks = 3 : tensor<f32>, tensor<f32>
    // Several axes as one.
    // CHECK: hydra.all_gather %{{.*}} axis = 0 number = 6 over = "gpu*node" ranks = 6 : tensor<1xf32>
    %s1 = hydra.reshape %s shape = [1] : tensor<f32>
    %w = hydra.all_gather %s1 axis = 0 over = "gpu*node" ranks = 6 number = 6 : tensor<1xf32>
    // CHECK: hydra.rank over = "gpu*node" ranks = 6 : tensor<i32>
    %q = hydra.rank over = "gpu*node" ranks = 6 : tensor<i32>
    hydra.return y = %y, p = %p, r = %r : tensor<f32>, tensor<6x4xf32>, tensor<i32>
  }
  hydra.entry @f(%s: tensor<i32>) rows <1 arguments [-1]> {
    // CHECK: hydra.all_reduce %s over = "gpu" ranks = 3 : tensor<i32>
    %y = hydra.all_reduce %s over = "gpu" ranks = 3 : tensor<i32>
    hydra.return y = %y : tensor<i32>
  }
}
