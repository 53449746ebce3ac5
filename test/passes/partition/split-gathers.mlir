// RUN: hydra-opt %s --hydra-split-gathers | FileCheck %s
// RUN: hydra-opt %s --hydra-split-gathers --hydra-split-gathers | FileCheck %s

// A rank's own piece goes across nodes, and what all nodes have of it inside of them: the axis named first has the
// larger pieces.
hydra.model @m version 1 mesh <["node", "gpu"], [2, 3]> bound {} {
  // CHECK-LABEL: hydra.entry @logits
  // CHECK: %[[ACROSS:.*]] = hydra.all_gather %x axis = 0 number = 8 over = "node" ranks = 2 : tensor<4x1024xf32>
  // CHECK: %[[ALL:.*]] = hydra.all_gather %[[ACROSS]] axis = 0 number = 3 over = "gpu" ranks = 3 : tensor<8x1024xf32>
  // What goes over one axis stays.
  // CHECK: %[[ONE:.*]] = hydra.all_gather %x axis = 0 number = 7 over = "gpu" ranks = 3 : tensor<4x1024xf32>
  // Where the rank is along the first axis counts most.
  // CHECK: %[[GPU:.*]] = hydra.rank over = "gpu" ranks = 3
  // CHECK: %[[NODE:.*]] = hydra.rank over = "node" ranks = 2
  // CHECK: %[[TIMES:.*]] = hydra.mul %[[GPU]], %{{.*}} : tensor<i32>
  // CHECK: %[[RANK:.*]] = hydra.add %[[TIMES]], %[[NODE]] : tensor<i32>
  // CHECK: hydra.return y = %[[ALL]], z = %[[ONE]], r = %[[RANK]]
  hydra.entry @logits(%x: tensor<4x1024xf32>) rows <1 arguments [-1]> {
    %y = hydra.all_gather %x axis = 0 over = "gpu*node" ranks = 6 number = 3 : tensor<4x1024xf32>
    %z = hydra.all_gather %x axis = 0 over = "gpu" ranks = 3 number = 7 : tensor<4x1024xf32>
    %r = hydra.rank over = "gpu*node" ranks = 6 : tensor<i32>
    hydra.return y = %y, z = %z, r = %r : tensor<24x1024xf32>, tensor<12x1024xf32>, tensor<i32>
  }
}
