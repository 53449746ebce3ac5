// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 2>}' --hydra-expand-kernels | FileCheck %s

// A recurrence is launches over segments of rows: of 128 tokens, where that leaves eight warps for each multiprocessor, of
// 32 where there are few. A thread has up to four states of a channel, as 16 threads for 40; those of one that is a segment
// have no states in front of others.
// CHECK-DAG: plan.kernel @[[SEGMENTS:recurrence_segments_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 64, 0] source "{{.*}} recurrenceSegments<Recurrence<2, 500, 64, 3, 1, 128, true, true>, false>(blockIdx.x, a0, {a1, a2, a3, a4}, a5, (Complex *)a6, a7); }
// CHECK-DAG: plan.kernel @[[FOLD:recurrence_fold_[0-9]+]] rows 0 grain 0 launch [12, 1, 1, 256, 0] source "{{.*}} recurrenceFold<Recurrence<2, 500, 64, 3, 1, 128, true, true>, false>(blockIdx.x, a0, a1, a2, (Complex *)a3); }
// CHECK-DAG: plan.kernel @[[FORWARD:recurrence_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 64, 0] source "{{.*}} recurrenceRows<Recurrence<2, 500, 64, 3, 1, 128, true, true>, false>(blockIdx.x, a0, {a1, a2, a3, a4}, a5, (const Complex *)a6, a7); }
// CHECK-DAG: plan.kernel @[[ONE:recurrence_gradients_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 64, 0] source "{{.*}} if (blockIdx.x < 4) return recurrenceParameters<Recurrence<2, 9, 8, 40, 16, 32, false, true>>(blockIdx.x, a0, a1, {a2, a3, a4, a5}, nullptr, nullptr, nullptr, a6); recurrenceRows<Recurrence<2, 9, 8, 40, 16, 32, false, true>, true>(blockIdx.x - 4, a7, {a8, a9, a10, a11}, nullptr, nullptr, a12); }
// CHECK-DAG: plan.kernel @[[SUMS:recurrence_sums_[0-9]+]] rows 0 grain 0 launch [12, 1, 1, 256, 0] source "{{.*}} recurrenceSums<Recurrence<2, 9, 8, 40, 16, 32, false, true>>(a0, {a1, a2, a3, a4}, a5, a6, a7, a8); }
// Backward both directions are one launch.
// CHECK-DAG: plan.kernel @[[BOTH:recurrence_segments_[0-9]+]] rows 0 grain 0 launch [16, 1, 1, 64, 0] source "{{.*}} if (blockIdx.x < 8) return recurrenceSegments<Recurrence<2, 500, 64, 3, 1, 128, false, true>, false>(blockIdx.x, a0, {a1, a2, a3, a4}, nullptr, (Complex *)a5, nullptr); recurrenceSegments<Recurrence<2, 500, 64, 3, 1, 128, false, true>, true>(blockIdx.x - 8, a6, {a7, a8, a9, a10}, nullptr, (Complex *)a11, nullptr); }
// CHECK-DAG: plan.kernel @{{recurrence_fold_[0-9]+}} rows 0 grain 0 launch [24, 1, 1, 256, 0] source "{{.*}} if (blockIdx.x < 12) return recurrenceFold<Recurrence<2, 500, 64, 3, 1, 128, false, true>, false>(blockIdx.x, a0, a1, nullptr, (Complex *)a2); recurrenceFold<Recurrence<2, 500, 64, 3, 1, 128, false, true>, true>(blockIdx.x - 12, a3, a4, nullptr, (Complex *)a5); }
// Four parameters are not read at once where q lies 8 bytes behind a multiple of 16.
// CHECK-DAG: recurrenceRows<Recurrence<1, 9, 4, 4, 1, 32, false, false>, false>(
// CHECK-LABEL: plan.program @long
// CHECK: plan.launch @[[SEGMENTS]](read %[[X:.*]] : memref<2x500x64xf32>, {{.*}} read %[[BEGINS:.*]] : memref<2x500x1xf32>, write %[[STATES:.*]] : memref<2x4x192x2xf32>, write %[[THROUGH:.*]] : memref<2x4xf32>)
// CHECK: plan.launch @[[FOLD]]({{.*}} read %[[THROUGH]] : memref<2x4xf32>, update %[[STATES]] : memref<2x4x192x2xf32>)
// CHECK: plan.launch @[[FORWARD]](read %[[X]] : memref<2x500x64xf32>, {{.*}} read %[[BEGINS]] : memref<2x500x1xf32>, read %[[STATES]] : memref<2x4x192x2xf32>, write %{{.*}} : memref<2x500x64xf32>) {{.*}}flops = 1000 : i64
// CHECK: plan.launch @[[BOTH]](
// CHECK: plan.launch @recurrence_fold
// CHECK: plan.launch @recurrence_gradients{{.*}}flops = 3000 : i64
// CHECK: plan.launch @recurrence_sums
// CHECK-LABEL: plan.program @short
// CHECK-NOT: recurrence_segments
// CHECK: plan.launch @[[ONE]]({{.*}} write %[[PARTS:.*]] : memref<2x4x384xf32>, {{.*}})
// CHECK: plan.launch @[[SUMS]](read %[[PARTS]] : memref<2x4x384xf32>, {{.*}} write %{{.*}} : memref<8x40xf32>, {{.*}})
plan.module @m {
  plan.program @long {
    %x = plan.buffer transient other : memref<2x500x64xf32>
    %q = plan.buffer transient other : memref<64x3xf32>
    %begins = plan.buffer transient other : memref<2x500x1xf32>
    %y = plan.buffer transient other : memref<2x500x64xf32>
    plan.linear_recurrence(%x, %q, %q, %q, %q, %begins : memref<2x500x64xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<2x500x1xf32>) -> (%y : memref<2x500x64xf32>) {flops = 1000 : i64, label = "linear_recurrence", op_class = #hydra.op_class<scan>}
    %dx = plan.buffer transient other : memref<2x500x64xf32>
    %dq = plan.buffer transient other : memref<64x3xf32>
    %di = plan.buffer transient other : memref<64x3xf32>
    %dc = plan.buffer transient other : memref<64x3xf32>
    %dj = plan.buffer transient other : memref<64x3xf32>
    plan.linear_recurrence(%y, %x, %q, %q, %q, %q : memref<2x500x64xf32>, memref<2x500x64xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<64x3xf32>) -> (%dx, %dq, %di, %dc, %dj : memref<2x500x64xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<64x3xf32>, memref<64x3xf32>) {backward, flops = 3000 : i64, label = "linear_recurrence", op_class = #hydra.op_class<scan>}
  }
  plan.program @short {
    %x = plan.buffer transient other : memref<2x9x8xf32>
    %q = plan.buffer transient other : memref<8x40xf32>
    %dx = plan.buffer transient other : memref<2x9x8xf32>
    %dq = plan.buffer transient other : memref<8x40xf32>
    %di = plan.buffer transient other : memref<8x40xf32>
    %dc = plan.buffer transient other : memref<8x40xf32>
    %dj = plan.buffer transient other : memref<8x40xf32>
    plan.linear_recurrence(%x, %x, %q, %q, %q, %q : memref<2x9x8xf32>, memref<2x9x8xf32>, memref<8x40xf32>, memref<8x40xf32>, memref<8x40xf32>, memref<8x40xf32>) -> (%dx, %dq, %di, %dc, %dj : memref<2x9x8xf32>, memref<8x40xf32>, memref<8x40xf32>, memref<8x40xf32>, memref<8x40xf32>) {backward, label = "linear_recurrence", op_class = #hydra.op_class<scan>}
  }
  plan.program @apart {
    %x = plan.buffer transient other : memref<1x9x4xf32>
    %all = plan.buffer transient other : memref<32xf32>
    %q = plan.view %all plus 2 : memref<32xf32> to memref<4x4xf32>
    %y = plan.buffer transient other : memref<1x9x4xf32>
    plan.linear_recurrence(%x, %q, %q, %q, %q : memref<1x9x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> (%y : memref<1x9x4xf32>) {label = "linear_recurrence", op_class = #hydra.op_class<scan>}
  }
}
