// RUN: hydra-opt %s --hydra-round-gradients | FileCheck %s
// RUN: hydra-opt %s --hydra-round-gradients --hydra-bucket-collectives --hydra-lower-collectives="latency-bytes=0" | FileCheck %s --check-prefix=LOWERED

// Of the sums over ranks, that of a gradient is of rounded operands: they are rounded before they are laid side by
// side, and the matmul that writes nothing else writes them rounded. The sum is f32, as is what it begins with. The
// loss, and the rows' mean that the model itself sums up, are sent as they are.
// CHECK-LABEL: hydra.entry @train
// CHECK: %[[NORM:.*]] = hydra.cast %g to = bf16
// CHECK: %[[MATMUL:.*]] = hydra.matmul {{.*}} transpose_a : tensor<2x4xbf16>
// CHECK: %[[FLAT:.*]] = hydra.reshape %[[MATMUL]] shape = [16] : tensor<4x4xbf16>
// CHECK: %[[ALL:.*]] = hydra.concat %[[FLAT]], %[[NORM]] axis = 0
// CHECK: hydra.reduce_scatter %[[ALL]], %flat.grad axis = 0 over = "gpu" ranks = 2 sum = f32 : tensor<20xbf16>, tensor<10xf32>
// CHECK: hydra.all_reduce %{{.*}} over = "gpu" ranks = 2 : tensor<4xf32>
// CHECK: hydra.all_reduce %loss over = "gpu" ranks = 2 : tensor<f32>

// On the wire are bf16; the adds are f32, from what the sum begins with.
// LOWERED-LABEL: hydra.entry @train
// LOWERED: %[[SENT:.*]] = hydra.all_to_all %{{.*}} : tensor<20xbf16>
// LOWERED: %[[ONE:.*]] = hydra.cast %{{.*}} to = f32 : tensor<10xbf16>
// LOWERED: %[[SUM:.*]] = hydra.add %flat.grad, %[[ONE]] : tensor<10xf32>
// LOWERED: %[[TWO:.*]] = hydra.cast %{{.*}} to = f32 : tensor<10xbf16>
// LOWERED: hydra.add %[[SUM]], %[[TWO]] : tensor<10xf32>

// Where all ranks have the sum, what it begins with is added behind it, for it would be rounded before. Sums that are
// sent rounded share no bucket with others.
// LOWERED-LABEL: hydra.entry @whole
// LOWERED: hydra.all_gather %{{.*}} : tensor<1x8xbf16>
// LOWERED: %[[ONE:.*]] = hydra.cast %{{.*}} to = f32 : tensor<4xbf16>
// LOWERED: %[[TWO:.*]] = hydra.cast %{{.*}} to = f32 : tensor<4xbf16>
// LOWERED: %[[SUM:.*]] = hydra.add %[[ONE]], %[[TWO]] : tensor<4xf32>
// LOWERED: hydra.add %a.grad, %[[SUM]] : tensor<4xf32>
hydra.model @m version 1 mesh <["node", "gpu"], [2, 2]> bound {} {
  hydra.param @flat [10] init = zeros
  hydra.state @flat.grad [10] init = zeros of @flat as gradient
  hydra.param @a [4] init = zeros
  hydra.state @a.grad [4] init = zeros of @a as gradient
  hydra.param @b [4] init = zeros
  hydra.state @b.grad [4] init = zeros of @b as gradient_part
  hydra.state @mean [4] init = zeros

  hydra.entry @train(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %loss: tensor<f32>) rows <2 arguments[0, -1, -1] results[-1]> {
    %xt = hydra.cast %x to = bf16 : tensor<2x4xf32>
    %w = hydra.matmul %xt, %xt dtype = f32 transpose_a : tensor<2x4xbf16>, tensor<2x4xbf16>
    %flat = hydra.reshape %w shape = [16] : tensor<4x4xf32>
    %all = hydra.concat %flat, %g axis = 0 : tensor<16xf32>, tensor<4xf32>
    %sum = hydra.use @flat.grad : tensor<10xf32>
    %grad = hydra.reduce_scatter %all, %sum axis = 0 over = "gpu" ranks = 2 : tensor<20xf32>, tensor<10xf32>
    %mean = hydra.sum %x axes = [0] : tensor<2x4xf32>
    %means = hydra.all_reduce %mean over = "gpu" ranks = 2 : tensor<4xf32>
    %losses = hydra.all_reduce %loss over = "gpu" ranks = 2 : tensor<f32>
    hydra.return loss = %losses updates(@flat.grad = %grad, @mean = %means) : tensor<f32>, tensor<10xf32>, tensor<4xf32>
  }

  hydra.entry @whole(%ga: tensor<4xf32>, %gb: tensor<4xf32>, %m: tensor<4xf32>) rows <2 arguments[-1, -1, -1] results[-1]> {
    %sum = hydra.use @a.grad : tensor<4xf32>
    %a = hydra.all_reduce %ga, %sum over = "gpu" ranks = 2 : tensor<4xf32>, tensor<4xf32>
    %means = hydra.all_reduce %m over = "gpu" ranks = 2 : tensor<4xf32>
    %b = hydra.all_reduce %gb over = "gpu" ranks = 2 : tensor<4xf32>
    hydra.return y = %m updates(@a.grad = %a, @b = %b, @mean = %means) : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }

  // Over the second axis go pieces of sums, as they are.
  // CHECK-LABEL: hydra.entry @levels
  // CHECK: %[[ROUNDED:.*]] = hydra.cast %g to = bf16
  // CHECK: %[[SUM:.*]] = hydra.all_reduce %[[ROUNDED]] over = "gpu" ranks = 2 sum = f32 : tensor<4xbf16>
  // CHECK: hydra.all_reduce %[[SUM]] over = "node" ranks = 2 : tensor<4xf32>
  hydra.entry @levels(%g: tensor<4xf32>) rows <2 arguments[-1] results[-1]> {
    %inner = hydra.all_reduce %g over = "gpu" ranks = 2 : tensor<4xf32>
    %outer = hydra.all_reduce %inner over = "node" ranks = 2 : tensor<4xf32>
    hydra.return y = %g updates(@b = %outer) : tensor<4xf32>, tensor<4xf32>
  }

  // What a rank has added up over micro-batches is a gradient, whatever becomes of the sum.
  // CHECK-LABEL: hydra.entry @apply
  // CHECK: %[[PART:.*]] = hydra.use @b.grad
  // CHECK: %[[SENT:.*]] = hydra.cast %[[PART]] to = bf16
  // CHECK: hydra.all_reduce %[[SENT]] over = "gpu" ranks = 2 sum = f32 : tensor<4xbf16>
  hydra.entry @apply() {
    %part = hydra.use @b.grad : tensor<4xf32>
    %sum = hydra.all_reduce %part over = "gpu" ranks = 2 : tensor<4xf32>
    %row = hydra.reshape %sum shape = [1, 4] : tensor<4xf32>
    %squares = hydra.matmul %row, %row transpose_a : tensor<1x4xf32>, tensor<1x4xf32>
    %b = hydra.sum %squares axes = [0] : tensor<4x4xf32>
    hydra.return updates(@b = %b) : tensor<4xf32>
  }
}
