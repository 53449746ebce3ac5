// RUN: hydra-opt %s --hydra-bucket-collectives | FileCheck %s
// RUN: hydra-opt %s --hydra-bucket-collectives="bytes=40" | FileCheck %s --check-prefix=FULL

hydra.model @m version 1 mesh <["node", "gpu"], [2, 3]> bound {} {
  // Sums along one axis that nothing has used yet become one. To what a sum begins with the first rank
  // adds its part before.
  // CHECK-LABEL: hydra.entry @sums
  // CHECK: %[[X:.*]] = hydra.reshape %x shape = [6]
  // CHECK: hydra.rank over = "gpu"
  // CHECK: %[[BEGUN:.*]] = hydra.select %{{.*}}, %{{.*}}, %y
  // CHECK: %[[ALL:.*]] = hydra.concat %[[X]], %[[BEGUN]] axis = 0
  // CHECK: %[[SUMS:.*]] = hydra.all_reduce %[[ALL]] over = "gpu" ranks = 3 : tensor<10xf32>
  // CHECK: hydra.slice %[[SUMS]] axis = 0 size = 6 start = 0
  // CHECK: hydra.slice %[[SUMS]] axis = 0 size = 4 start = 6
  // CHECK: hydra.tanh
  // A bucket ends where one of its sums is used: what follows is another.
  // CHECK: hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<3x2xf32>
  // Other axes and types are other buckets.
  // CHECK: hydra.all_reduce %y over = "node" ranks = 2 : tensor<4xf32>
  // CHECK: hydra.all_reduce %n over = "gpu" ranks = 3 : tensor<i32>

  // A bucket has room for so many bytes.
  // FULL-LABEL: hydra.entry @sums
  // FULL: hydra.all_reduce %{{.*}} : tensor<10xf32>
  // FULL-LABEL: hydra.entry @large
  // FULL: hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<3x2xf32>
  // FULL: hydra.all_reduce %z over = "gpu" ranks = 3 : tensor<3x2xf32>
  hydra.entry @sums(%x: tensor<3x2xf32>, %y: tensor<4xf32>, %s: tensor<4xf32>, %n: tensor<i32>) rows <1 arguments [-1, -1, -1, -1]> {
    %a = hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<3x2xf32>
    %b = hydra.all_reduce %y, %s over = "gpu" ranks = 3 : tensor<4xf32>, tensor<4xf32>
    %c = hydra.tanh %a : tensor<3x2xf32>
    %d = hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<3x2xf32>
    %e = hydra.all_reduce %y over = "node" ranks = 2 : tensor<4xf32>
    %f = hydra.all_reduce %n over = "gpu" ranks = 3 : tensor<i32>
    hydra.return b = %b, c = %c, d = %d, e = %e, f = %f : tensor<4xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<4xf32>, tensor<i32>
  }
  hydra.entry @large(%x: tensor<3x2xf32>, %z: tensor<3x2xf32>) rows <1 arguments [-1, -1]> {
    %a = hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<3x2xf32>
    %b = hydra.all_reduce %z over = "gpu" ranks = 3 : tensor<3x2xf32>
    hydra.return a = %a, b = %b : tensor<3x2xf32>, tensor<3x2xf32>
  }

  // Sums of slices that make up a value are slices of one sum, which is in a bucket with what follows; sums of
  // a part of a value, and those that begin with something, stay.
  // CHECK-LABEL: hydra.entry @slices
  // CHECK: %[[FLAT:.*]] = hydra.reshape %x shape = [6]
  // CHECK: %[[BOTH:.*]] = hydra.concat %[[FLAT]], %y axis = 0
  // CHECK: %[[SUMS:.*]] = hydra.all_reduce %[[BOTH]] over = "gpu" ranks = 3 : tensor<10xf32>
  // CHECK: %[[OWN:.*]] = hydra.slice %[[SUMS]] axis = 0 size = 6 start = 0
  // CHECK: %[[X:.*]] = hydra.reshape %[[OWN]] shape = [3, 2]
  // CHECK: hydra.slice %[[X]] axis = 0 size = 2 start = 1
  // CHECK: hydra.slice %[[X]] axis = 0 size = 1 start = 0
  // CHECK-LABEL: hydra.entry @part
  // CHECK-COUNT-2: hydra.slice %x
  // CHECK: hydra.all_reduce
  hydra.entry @slices(%x: tensor<3x2xf32>, %y: tensor<4xf32>) rows <1 arguments [-1, -1]> {
    %0 = hydra.slice %x axis = 0 start = 0 size = 1 : tensor<3x2xf32>
    %1 = hydra.slice %x axis = 0 start = 1 size = 2 : tensor<3x2xf32>
    %b = hydra.all_reduce %1 over = "gpu" ranks = 3 : tensor<2x2xf32>
    %a = hydra.all_reduce %0 over = "gpu" ranks = 3 : tensor<1x2xf32>
    %c = hydra.all_reduce %y over = "gpu" ranks = 3 : tensor<4xf32>
    hydra.return a = %a, b = %b, c = %c : tensor<1x2xf32>, tensor<2x2xf32>, tensor<4xf32>
  }
  hydra.entry @part(%x: tensor<3x2xf32>) rows <1 arguments [-1]> {
    %0 = hydra.slice %x axis = 0 start = 0 size = 1 : tensor<3x2xf32>
    %1 = hydra.slice %x axis = 0 start = 1 size = 1 : tensor<3x2xf32>
    %a = hydra.all_reduce %0 over = "gpu" ranks = 3 : tensor<1x2xf32>
    %b = hydra.all_reduce %1 over = "gpu" ranks = 3 : tensor<1x2xf32>
    hydra.return a = %a, b = %b : tensor<1x2xf32>, tensor<1x2xf32>
  }

  // What is summed up along one axis and then along another is one bucket of both, also where gradients are slices of
  // what one matmul makes.
  // CHECK-LABEL: hydra.entry @levels
  // CHECK: %[[BOTH:.*]] = hydra.concat %{{.*}}, %{{.*}} axis = 0 : tensor<6xf32>, tensor<4xf32>
  // CHECK-NEXT: %[[INNER:.*]] = hydra.all_reduce %[[BOTH]] over = "gpu" ranks = 3 : tensor<10xf32>
  // CHECK-NEXT: %[[OUTER:.*]] = hydra.all_reduce %[[INNER]] over = "node" ranks = 2 : tensor<10xf32>
  // CHECK: hydra.slice %[[OUTER]] axis = 0 size = 6 start = 0
  // CHECK: hydra.slice %[[OUTER]] axis = 0 size = 4 start = 6
  // CHECK-NOT: hydra.all_reduce
  // CHECK: hydra.return
  hydra.entry @levels(%x: tensor<3x2xf32>, %y: tensor<4xf32>) rows <1 arguments [-1, -1]> {
    %p = hydra.slice %x axis = 0 size = 1 start = 0 : tensor<3x2xf32>
    %p1 = hydra.all_reduce %p over = "gpu" ranks = 3 : tensor<1x2xf32>
    %p2 = hydra.all_reduce %p1 over = "node" ranks = 2 : tensor<1x2xf32>
    %q = hydra.slice %x axis = 0 size = 2 start = 1 : tensor<3x2xf32>
    %q1 = hydra.all_reduce %q over = "gpu" ranks = 3 : tensor<2x2xf32>
    %q2 = hydra.all_reduce %q1 over = "node" ranks = 2 : tensor<2x2xf32>
    %y1 = hydra.all_reduce %y over = "gpu" ranks = 3 : tensor<4xf32>
    %y2 = hydra.all_reduce %y1 over = "node" ranks = 2 : tensor<4xf32>
    hydra.return p = %p2, q = %q2, y = %y2 : tensor<1x2xf32>, tensor<2x2xf32>, tensor<4xf32>
  }

  // Sums of slices of a sum that is joined itself: the slices are then of what takes its place.
  // CHECK-LABEL: hydra.entry @nested
  // CHECK: %[[SUM:.*]] = hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<4x2xf32>
  // CHECK: %[[HALF:.*]] = hydra.slice %[[SUM]] axis = 0 size = 2 start = 0
  // CHECK: %[[OUTER:.*]] = hydra.all_reduce %[[HALF]] over = "node" ranks = 2 : tensor<2x2xf32>
  // CHECK-NOT: hydra.all_reduce
  // CHECK: hydra.return
  hydra.entry @nested(%x: tensor<4x2xf32>) rows <1 arguments [-1]> {
    %p = hydra.slice %x axis = 0 size = 2 start = 0 : tensor<4x2xf32>
    %p1 = hydra.all_reduce %p over = "gpu" ranks = 3 : tensor<2x2xf32>
    %a = hydra.slice %p1 axis = 0 size = 1 start = 0 : tensor<2x2xf32>
    %a1 = hydra.all_reduce %a over = "node" ranks = 2 : tensor<1x2xf32>
    %b = hydra.slice %p1 axis = 0 size = 1 start = 1 : tensor<2x2xf32>
    %b1 = hydra.all_reduce %b over = "node" ranks = 2 : tensor<1x2xf32>
    %q = hydra.slice %x axis = 0 size = 2 start = 2 : tensor<4x2xf32>
    %q1 = hydra.all_reduce %q over = "gpu" ranks = 3 : tensor<2x2xf32>
    hydra.return a = %a1, b = %b1, q = %q1 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>
  }
}
