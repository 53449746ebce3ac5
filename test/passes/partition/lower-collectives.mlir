// RUN: hydra-opt %s --hydra-lower-collectives | FileCheck %s
// RUN: hydra-opt %s --hydra-lower-collectives="latency-bytes=1024" | FileCheck %s --check-prefix=SMALL
// RUN: hydra-opt %s --hydra-lower-collectives --hydra-lower-collectives | FileCheck %s
// RUN: hydra-opt %s --hydra-lower-collectives="slice-bytes=24" | FileCheck %s --check-prefix=SLICE

hydra.model @m version 1 mesh <["node", "gpu"], [2, 3]> bound {} {
  // Each of three ranks adds up one piece of seven elements (padded to nine), from rank 0 to the last. Of
  // two ranks each gets the other's value and adds both: no more bytes, and one exchange less.
  // CHECK-LABEL: hydra.entry @reduce
  // CHECK: %[[FLAT:.*]] = hydra.reshape %x shape = [7]
  // CHECK: %[[ZEROS:.*]] = hydra.constant {{.*}}shape = [2] value = 0.0
  // CHECK: %[[PAD:.*]] = hydra.concat %[[FLAT]], %[[ZEROS]] axis = 0
  // CHECK: %[[GOT:.*]] = hydra.all_to_all %[[PAD]] axis = 0 {{.*}} over = "gpu" ranks = 3 : tensor<9xf32>
  // CHECK: %[[PIECES:.*]] = hydra.reshape %[[GOT]] shape = [3, 3]
  // CHECK: hydra.slice %[[PIECES]] axis = 0 size = 1 start = 0
  // CHECK: hydra.slice %[[PIECES]] axis = 0 size = 1 start = 1
  // CHECK: %[[ONE:.*]] = hydra.add
  // CHECK: hydra.slice %[[PIECES]] axis = 0 size = 1 start = 2
  // CHECK: %[[SUM:.*]] = hydra.add %[[ONE]], %{{.*}} : tensor<3xf32>
  // CHECK: %[[ALL:.*]] = hydra.all_gather %{{.*}} axis = 0 {{.*}} over = "gpu" ranks = 3 : tensor<3xf32>
  // CHECK: hydra.slice %[[ALL]] axis = 0 size = 7 start = 0
  // CHECK: %[[BOTH:.*]] = hydra.all_gather %{{.*}} axis = 0 {{.*}} over = "node" ranks = 2 : tensor<1x1x7xf32>
  // CHECK-NOT: hydra.all_to_all
  // CHECK: hydra.return

  // So do three of which all is less than one more exchange costs.
  // SMALL-LABEL: hydra.entry @reduce
  // SMALL-NOT: hydra.all_to_all
  // SMALL: hydra.all_gather %{{.*}} over = "gpu" ranks = 3 : tensor<1x1x7xf32>
  // SMALL: hydra.all_gather %{{.*}} over = "node" ranks = 2 : tensor<1x1x7xf32>
  // SMALL: hydra.return
  // In slices of two elements of each piece, three ranks' of which are 24 bytes.
  // SLICE-LABEL: hydra.entry @reduce
  // SLICE: %[[FLAT:.*]] = hydra.reshape %x shape = [7]
  // SLICE: %[[A:.*]] = hydra.slice %[[FLAT]] axis = 0 size = 6 start = 0
  // SLICE: hydra.all_to_all %[[A]] axis = 0 {{.*}} ranks = 3 : tensor<6xf32>
  // SLICE: %[[FIRST:.*]] = hydra.all_gather %{{.*}} : tensor<2xf32>
  // SLICE: %[[B:.*]] = hydra.slice %[[FLAT]] axis = 0 size = 1 start = 6
  // SLICE: hydra.concat %[[B]], %{{.*}} axis = 0
  // SLICE: hydra.all_to_all %{{.*}} axis = 0 {{.*}} ranks = 3 : tensor<3xf32>
  // SLICE: %[[ALL:.*]] = hydra.all_gather %{{.*}} : tensor<1xf32>
  // SLICE: %[[LAST:.*]] = hydra.slice %[[ALL]] axis = 0 size = 1 start = 0
  // SLICE: %[[SUM:.*]] = hydra.concat %[[FIRST]], %[[LAST]] axis = 0
  // SLICE: hydra.reshape %[[SUM]] shape = [1, 7]
  hydra.entry @reduce(%x: tensor<1x7xf32>) rows <1 arguments [-1]> {
    %y = hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<1x7xf32>
    %z = hydra.all_reduce %y over = "node" ranks = 2 : tensor<1x7xf32>
    hydra.return y = %y, z = %z : tensor<1x7xf32>, tensor<1x7xf32>
  }

  // The chain of adds begins with what the sum begins with: rank 0 has added it before pieces are
  // exchanged.
  // CHECK-LABEL: hydra.entry @start
  // CHECK: %[[ADDED:.*]] = hydra.add %s, %x
  // CHECK: %[[RANK:.*]] = hydra.rank over = "gpu" ranks = 3
  // CHECK: %[[FIRST:.*]] = hydra.compare %[[RANK]], %{{.*}} is = "eq"
  // CHECK: hydra.select %{{.*}}, %[[ADDED]], %x
  // CHECK: hydra.all_to_all

  // SMALL-LABEL: hydra.entry @start
  // SMALL: hydra.slice %{{.*}} start = 0
  // SMALL: %[[ZERO:.*]] = hydra.reshape
  // SMALL: hydra.add %s, %[[ZERO]]
  hydra.entry @start(%x: tensor<6xf32>, %s: tensor<6xf32>) rows <1 arguments [-1, -1]> {
    %y = hydra.all_reduce %x, %s over = "gpu" ranks = 3 : tensor<6xf32>, tensor<6xf32>
    hydra.return y = %y : tensor<6xf32>
  }

  // Along other axes than the first, pieces are put one behind the other.
  // CHECK-LABEL: hydra.entry @along
  // CHECK: hydra.all_gather %{{.*}} axis = 0 {{.*}} : tensor<1x4x2xf32>
  // CHECK: hydra.transpose %{{.*}} order = [1, 0, 2] : tensor<3x4x2xf32>
  // CHECK: hydra.reshape %{{.*}} shape = [4, 6]
  // CHECK: hydra.reshape %{{.*}} shape = [4, 3, 2]
  // CHECK: %[[FRONT:.*]] = hydra.transpose %{{.*}} order = [1, 0, 2] : tensor<4x3x2xf32>
  // CHECK: hydra.all_to_all %[[FRONT]] axis = 0 {{.*}} : tensor<3x4x2xf32>
  // CHECK: hydra.all_to_all %{{.*}} axis = 0 {{.*}} : tensor<3x4x2xf32>
  // CHECK: hydra.add %{{.*}} : tensor<4x2xf32>
  // CHECK: hydra.add %{{.*}} : tensor<4x2xf32>
  // SLICE-LABEL: hydra.entry @along
  // SLICE: %[[PIECES:.*]] = hydra.reshape %{{.*}} shape = [3, 8]
  // SLICE: %[[A:.*]] = hydra.slice %[[PIECES]] axis = 1 size = 2 start = 0
  // SLICE: hydra.all_to_all %[[A]] axis = 0 {{.*}} : tensor<3x2xf32>
  // SLICE: hydra.slice %[[PIECES]] axis = 1 size = 2 start = 6
  // SLICE: hydra.concat %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} axis = 0
  // SLICE: hydra.reshape %{{.*}} shape = [4, 2]
  hydra.entry @along(%x: tensor<4x2xf32>) rows <1 arguments [-1]> {
    %g = hydra.all_gather %x axis = 1 over = "gpu" ranks = 3 number = 0 : tensor<4x2xf32>
    %t = hydra.all_to_all %g axis = 1 over = "gpu" ranks = 3 number = 1 : tensor<4x6xf32>
    %y = hydra.reduce_scatter %t axis = 1 over = "gpu" ranks = 3 : tensor<4x6xf32>
    hydra.return y = %y : tensor<4x2xf32>
  }

  // Parts of a sum that are read apart are added up apart, in their own shape; parts that share elements, and
  // those that are no neighbours, are not.
  // CHECK-LABEL: hydra.entry @parts
  // CHECK: %[[ALL:.*]] = hydra.all_gather %{{.*}} axis = 0 {{.*}} over = "node" ranks = 2 : tensor<1x10xf32>
  // CHECK: %[[OWN:.*]] = hydra.slice %[[ALL]] axis = 0 size = 1 start = 0
  // CHECK: %[[FIRST:.*]] = hydra.slice %[[OWN]] axis = 1 size = 6 start = 0
  // CHECK: hydra.reshape %[[FIRST]] shape = [2, 3]
  // CHECK: %[[OTHER:.*]] = hydra.slice %[[ALL]] axis = 0 size = 1 start = 1
  // CHECK: hydra.slice %[[OTHER]] axis = 1 size = 6 start = 0
  // CHECK: %[[A:.*]] = hydra.add %{{.*}} : tensor<2x3xf32>
  // CHECK: hydra.slice %{{.*}} axis = 1 size = 2 start = 8
  // CHECK: %[[B:.*]] = hydra.add %{{.*}} : tensor<2xf32>
  // CHECK-NOT: hydra.slice
  // CHECK: hydra.return a = %[[A]], b = %[[B]]
  hydra.entry @parts(%x: tensor<10xf32>) rows <1 arguments [-1]> {
    %y = hydra.all_reduce %x over = "node" ranks = 2 : tensor<10xf32>
    %s = hydra.slice %y axis = 0 start = 0 size = 6 : tensor<10xf32>
    %a = hydra.reshape %s shape = [2, 3] : tensor<6xf32>
    %b = hydra.slice %y axis = 0 start = 8 size = 2 : tensor<10xf32>
    hydra.return a = %a, b = %b : tensor<2x3xf32>, tensor<2xf32>
  }
  // CHECK-LABEL: hydra.entry @whole
  // CHECK: hydra.all_gather %{{.*}} : tensor<1x10xf32>
  // CHECK: hydra.add %{{.*}} : tensor<10xf32>
  // CHECK: hydra.all_gather %{{.*}} : tensor<1x2x5xf32>
  // CHECK: hydra.add %{{.*}} : tensor<2x5xf32>
  hydra.entry @whole(%x: tensor<10xf32>, %z: tensor<2x5xf32>) rows <1 arguments [-1, -1]> {
    %y = hydra.all_reduce %x over = "node" ranks = 2 : tensor<10xf32>
    %a = hydra.slice %y axis = 0 start = 0 size = 6 : tensor<10xf32>
    %b = hydra.slice %y axis = 0 start = 4 size = 6 : tensor<10xf32>
    %w = hydra.all_reduce %z over = "node" ranks = 2 : tensor<2x5xf32>
    %c = hydra.slice %w axis = 1 start = 0 size = 2 : tensor<2x5xf32>
    hydra.return a = %a, b = %b, c = %c : tensor<6xf32>, tensor<6xf32>, tensor<2x2xf32>
  }
  // Of what is summed up over one axis and then over another, only the piece that a rank has summed up goes over the
  // second.
  // CHECK-LABEL: hydra.entry @levels
  // CHECK: hydra.all_to_all %x axis = 0 {{.*}} over = "gpu" ranks = 3 : tensor<9xf32>
  // CHECK: hydra.add %{{.*}} : tensor<3xf32>
  // CHECK: %[[PIECE:.*]] = hydra.add %{{.*}} : tensor<3xf32>
  // CHECK: %[[ONE:.*]] = hydra.reshape %[[PIECE]] shape = [1, 3]
  // CHECK: hydra.all_gather %[[ONE]] axis = 0 {{.*}} over = "node" ranks = 2 : tensor<1x3xf32>
  // CHECK: %[[SUM:.*]] = hydra.add %{{.*}} : tensor<3xf32>
  // CHECK: %[[ALL:.*]] = hydra.all_gather %[[SUM]] axis = 0 {{.*}} over = "gpu" ranks = 3 : tensor<3xf32>
  // CHECK: hydra.return y = %[[ALL]]
  hydra.entry @levels(%x: tensor<9xf32>) rows <1 arguments [-1]> {
    %a = hydra.all_reduce %x over = "gpu" ranks = 3 : tensor<9xf32>
    %b = hydra.all_reduce %a over = "node" ranks = 2 : tensor<9xf32>
    hydra.return y = %b : tensor<9xf32>
  }

  // Behind axes of one nothing has to move.
  // CHECK-LABEL: hydra.entry @pieces
  // CHECK: %[[FLAT:.*]] = hydra.reshape %x shape = [6, 4]
  // CHECK: hydra.all_to_all %[[FLAT]] axis = 0 {{.*}} over = "gpu" ranks = 3 : tensor<6x4xf32>
  // CHECK-NOT: hydra.transpose
  // CHECK: hydra.add %s, %{{.*}} : tensor<1x2x4xf32>
  // CHECK: hydra.all_gather %{{.*}} axis = 0 {{.*}} over = "node" ranks = 2 : tensor<1x1x6x4xf32>
  // CHECK-NOT: hydra.transpose
  // CHECK: hydra.return
  hydra.entry @pieces(%x: tensor<1x6x4xf32>, %s: tensor<1x2x4xf32>) rows <1 arguments [-1, -1]> {
    %y = hydra.reduce_scatter %x, %s axis = 1 over = "gpu" ranks = 3 : tensor<1x6x4xf32>, tensor<1x2x4xf32>
    %z = hydra.all_gather %x axis = 1 over = "node" ranks = 2 number = 0 : tensor<1x6x4xf32>
    hydra.return y = %y, z = %z : tensor<1x2x4xf32>, tensor<1x12x4xf32>
  }

  // Slices of whole rows, each of which begins with what the sum begins with.
  // SLICE-LABEL: hydra.entry @rows
  // SLICE: %[[PIECES:.*]] = hydra.reshape %x shape = [3, 2048]
  // SLICE: %[[A:.*]] = hydra.slice %[[PIECES]] axis = 1 size = 1024 start = 0
  // SLICE: hydra.all_to_all %[[A]] axis = 0 {{.*}} : tensor<3x1024xf32>
  // SLICE: hydra.add %{{.*}} : tensor<1x1024xf32>
  // SLICE: %[[B:.*]] = hydra.slice %[[PIECES]] axis = 1 size = 1024 start = 1024
  // SLICE: hydra.all_to_all %[[B]]
  // SLICE: hydra.concat %{{.*}}, %{{.*}} axis = 0 : tensor<1x1024xf32>, tensor<1x1024xf32>
  hydra.entry @rows(%x: tensor<6x1024xf32>, %s: tensor<2x1024xf32>) rows <1 arguments [-1, -1]> {
    %y = hydra.reduce_scatter %x, %s axis = 0 over = "gpu" ranks = 3 : tensor<6x1024xf32>, tensor<2x1024xf32>
    hydra.return y = %y : tensor<2x1024xf32>
  }
  // What has as many dimensions as there can be has fewer while it has one more, of ranks.
  // CHECK-LABEL: hydra.entry @eight
  // CHECK: hydra.reshape %x shape = [1, 1, 24]
  // CHECK: hydra.all_gather %{{.*}} over = "node" ranks = 2 : tensor<1x24xf32>
  // CHECK: hydra.reshape %{{.*}} shape = [1, 2, 1, 3, 1, 2, 1, 2]
  // CHECK: hydra.reshape %x shape = [2, 3, 4]
  // CHECK: hydra.all_gather %{{.*}} over = "node" ranks = 2 : tensor<1x2x3x4xf32>
  // CHECK: hydra.reshape %{{.*}} shape = [1, 2, 1, 6, 1, 2, 1, 2]
  // CHECK: hydra.all_to_all
  // CHECK: hydra.all_to_all
  // CHECK: hydra.return {{.*}} : tensor<1x2x1x3x1x2x1x2xf32>, tensor<1x2x1x6x1x2x1x2xf32>, tensor<1x2x1x3x1x2x1x2xf32>, tensor<1x2x1x1x1x2x1x2xf32>
  hydra.entry @eight(%x: tensor<1x2x1x3x1x2x1x2xf32>) rows <1 arguments [-1]> {
    %a = hydra.all_reduce %x over = "node" ranks = 2 : tensor<1x2x1x3x1x2x1x2xf32>
    %b = hydra.all_gather %x axis = 3 over = "node" ranks = 2 number = 0 : tensor<1x2x1x3x1x2x1x2xf32>
    %c = hydra.all_to_all %x axis = 3 over = "gpu" ranks = 3 number = 1 : tensor<1x2x1x3x1x2x1x2xf32>
    %d = hydra.reduce_scatter %x axis = 3 over = "gpu" ranks = 3 : tensor<1x2x1x3x1x2x1x2xf32>
    hydra.return a = %a, b = %b, c = %c, d = %d : tensor<1x2x1x3x1x2x1x2xf32>, tensor<1x2x1x6x1x2x1x2xf32>, tensor<1x2x1x3x1x2x1x2xf32>, tensor<1x2x1x1x1x2x1x2xf32>
  }
}
