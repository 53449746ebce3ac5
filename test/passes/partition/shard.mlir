// RUN: hydra-opt %s --hydra-shard="whole-below=12" | FileCheck %s
// RUN: hydra-opt %s --hydra-shard="whole-below=12" --hydra-partition | FileCheck %s --check-prefix=RANKS
// RUN: hydra-opt %s --hydra-shard="whole-below=12 levels=2" --hydra-partition | FileCheck %s --check-prefix=LEVELS

hydra.model @m version 1 mesh <["node", "gpu"], [2, 3]> bound {} {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)

  // Parameters of an element of a stack that are used alike lie in one vector, each at a multiple of 128
  // elements, but side by side where the model joins them; rows that 3 ranks can share.
  // CHECK: hydra.param @unit.layers.0 [3, 1024] init = zeros in "layers.0" unit = #hydra.unit<"gpu", 1,
  // CHECK-SAME: <"layers.0.q", [4, 4], 0, <normal(1.000000e+00)>>
  // CHECK-SAME: <"layers.0.k", [2, 4], 16,
  // CHECK-SAME: <"layers.0.o", [4, 4], 128,
  // Few elements stay whole.
  // CHECK-NEXT: hydra.param @layers.0.norm [4] init
  // What is not multiplied is rounded otherwise, and has a vector of its own.
  // CHECK-NEXT: hydra.param @unit.layers.0.1 [3, 1024] init = zeros in "layers.0" unit = #hydra.unit<"gpu", 1, [<"layers.0.table"
  // Without an element, each is alone.
  // CHECK-NEXT: hydra.param @unit.head [3, 1024] init = zeros unit = #hydra.unit<"gpu", 1, [<"head", [5, 4], 0,

  // RANKS: hydra.param @unit.layers.0 [1, 1024] {{.*}} unit = #hydra.unit<"gpu", 3,
  // Of both axes the inner one has the larger pieces.
  // LEVELS: hydra.param @unit.layers.0 [1, 1024] {{.*}} unit = #hydra.unit<"gpu*node", 6,
  hydra.param @layers.0.q [4, 4] init = normal(1.0) in "layers.0"
  hydra.param @layers.0.k [2, 4] init = normal(1.0) in "layers.0"
  hydra.param @layers.0.norm [4] init = ones in "layers.0"
  hydra.param @layers.0.o [4, 4] init = normal(1.0) in "layers.0"
  hydra.param @layers.0.table [7, 4] init = normal(1.0) in "layers.0"
  hydra.param @head [5, 4] init = normal(1.0)

  // CHECK-LABEL: hydra.entry @logits
  // A unit is read where the first of its members is needed.
  // CHECK: %[[ROWS:.*]] = hydra.use @unit.layers.0 : tensor<3x1024xf32>
  // CHECK: %[[ALL:.*]] = hydra.reshape %[[ROWS]] shape = [3072]
  // CHECK: %[[QK:.*]] = hydra.slice %[[ALL]] axis = 0 size = 24 start = 0
  // CHECK: %[[W:.*]] = hydra.reshape %[[QK]] shape = [6, 4]
  // CHECK: hydra.linear %{{.*}}, %[[W]]
  // CHECK: hydra.use @unit.head
  // CHECK: hydra.linear

  // RANKS-LABEL: hydra.entry @logits
  // RANKS: %[[ROWS:.*]] = hydra.use @unit.layers.0 : tensor<1x1024xf32>
  // RANKS: hydra.all_gather %[[ROWS]] axis = 0 {{.*}}over = "gpu" ranks = 3 : tensor<1x1024xf32>
  // RANKS: hydra.linear
  // RANKS-NOT: all_reduce

  // LEVELS-LABEL: hydra.entry @logits
  // LEVELS: %[[ROWS:.*]] = hydra.use @unit.layers.0 : tensor<1x1024xf32>
  // LEVELS: %[[ALL:.*]] = hydra.all_gather %[[ROWS]] axis = 0 {{.*}}over = "gpu*node" ranks = 6 : tensor<1x1024xf32>
  // LEVELS: hydra.reshape %[[ALL]] {{.*}} : tensor<6x1024xf32>
  // LEVELS: hydra.linear
  // LEVELS-NOT: over = "node"

  hydra.entry @logits(%x: tensor<12x4xf32>, %i: tensor<12xi32>) rows <1 arguments [0, 0]> {
    %q = hydra.use @layers.0.q : tensor<4x4xf32>
    %k = hydra.use @layers.0.k : tensor<2x4xf32>
    %o = hydra.use @layers.0.o : tensor<4x4xf32>
    %n = hydra.use @layers.0.norm : tensor<4xf32>
    %t = hydra.use @layers.0.table : tensor<7x4xf32>
    %h = hydra.use @head : tensor<5x4xf32>
    %e = hydra.embedding %i, %t : tensor<12xi32>, tensor<7x4xf32>
    %y = hydra.rms_norm %e, %n eps = 1.0e-5 : tensor<12x4xf32>, tensor<4xf32>
    %w = hydra.concat %q, %k axis = 0 : tensor<4x4xf32>, tensor<2x4xf32>
    %a = hydra.linear %y, %w : tensor<12x4xf32>, tensor<6x4xf32>
    %b = hydra.linear %x, %h : tensor<12x4xf32>, tensor<5x4xf32>
    %c = hydra.linear %x, %o : tensor<12x4xf32>, tensor<4x4xf32>
    hydra.return a = %a, b = %b, c = %c : tensor<12x6xf32>, tensor<12x5xf32>, tensor<12x4xf32>
  }
}
