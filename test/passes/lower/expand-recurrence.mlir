// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 2>}' --hydra-expand-kernels | FileCheck %s

// A recurrence is launches over segments of rows. Of four tiles of 32 tokens, where that leaves four blocks for each
// multiprocessor; those of one that is a segment have no states in front of others.
// CHECK-DAG: plan.kernel @[[SEGMENTS:recurrence_segments_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 128, 0] source "{{.*}} recurrenceSegments<2, 500, 8, 3, 4, true>(blockIdx.x, a0, {a1, a2, a3, a4}, a5, (Complex *)a6, a7); }
// CHECK-DAG: plan.kernel @[[FOLD:recurrence_fold_[0-9]+]] rows 0 grain 0 launch [2, 1, 1, 32, 0] source "{{.*}} recurrenceFold<2, 500, 8, 3, 4, true, false>(a0, a1, a2, (Complex *)a3, int64(blockIdx.x - 0) * 32 + threadIdx.x); }
// CHECK-DAG: plan.kernel @[[FORWARD:recurrence_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 128, 0] source "{{.*}} recurrenceForward<2, 500, 8, 3, 4, true>(a0, {a1, a2, a3, a4}, a5, (const Complex *)a6, a7); }
// CHECK-DAG: plan.kernel @[[ONE:recurrence_gradients_[0-9]+]] rows 0 grain 0 launch [2, 1, 1, 256, 0] source "{{.*}} __launch_bounds__(256, 1) {{.*}} recurrenceBackward<2, 9, 8, 40, 1, false>(a0, a1, {a2, a3, a4, a5}, nullptr, nullptr, nullptr, a6, a7); }
// CHECK-DAG: plan.kernel @[[SUMS:recurrence_sums_[0-9]+]] rows 0 grain 0 launch [40, 1, 1, 256, 0] source "{{.*}} recurrenceSums<2, 320>(a0, a1, a2, a3, a4); }
// Backward the segments of both directions are one launch.
// CHECK-DAG: plan.kernel @[[BOTH:recurrence_segments_[0-9]+]] rows 0 grain 0 launch [16, 1, 1, 128, 0] source "{{.*}} if (blockIdx.x < 8) return recurrenceSegmentsBack<2, 500, 8, 3, 4, false>(blockIdx.x, a0, {a1, a2, a3, a4}, nullptr, (Complex *)a5); recurrenceSegments<2, 500, 8, 3, 4, false>(blockIdx.x - 8, a6, {a7, a8, a9, a10}, nullptr, (Complex *)a11, nullptr); }
// CHECK-DAG: plan.kernel @{{recurrence_fold_[0-9]+}} rows 0 grain 0 launch [4, 1, 1, 32, 0] source "{{.*}} if (blockIdx.x < 2) return recurrenceFold<2, 500, 8, 3, 4, false, true>(a0, a1, nullptr, (Complex *)a2, int64(blockIdx.x - 0) * 32 + threadIdx.x); recurrenceFold<2, 500, 8, 3, 4, false, false>(a3, a4, nullptr, (Complex *)a5, int64(blockIdx.x - 2) * 32 + threadIdx.x); }
// CHECK-LABEL: plan.program @long
// CHECK: plan.launch @[[SEGMENTS]](read %[[X:.*]] : memref<2x500x8xf32>, {{.*}} read %[[BEGINS:.*]] : memref<2x500x1xf32>, write %[[STATES:.*]] : memref<2x4x8x3x2xf32>, write %[[THROUGH:.*]] : memref<2x4xf32>)
// CHECK: plan.launch @[[FOLD]]({{.*}} read %[[THROUGH]] : memref<2x4xf32>, update %[[STATES]] : memref<2x4x8x3x2xf32>)
// CHECK: plan.launch @[[FORWARD]](read %[[X]] : memref<2x500x8xf32>, {{.*}} read %[[BEGINS]] : memref<2x500x1xf32>, read %[[STATES]] : memref<2x4x8x3x2xf32>, write %{{.*}} : memref<2x500x8xf32>) {{.*}}flops = 1000 : i64
// CHECK: plan.launch @[[BOTH]](
// CHECK: plan.launch @recurrence_fold
// CHECK: plan.launch @recurrence_gradients{{.*}}flops = 3000 : i64
// CHECK: plan.launch @recurrence_sums
// CHECK-LABEL: plan.program @short
// CHECK-NOT: recurrence_segments
// CHECK: plan.launch @[[ONE]]({{.*}} write %[[PARTS:.*]] : memref<2x4x320xf32>)
// CHECK: plan.launch @[[SUMS]](read %[[PARTS]] : memref<2x4x320xf32>, write %{{.*}} : memref<8x40xf32>, {{.*}})
plan.module @m {
  plan.program @long {
    %x = plan.buffer transient other : memref<2x500x8xf32>
    %q = plan.buffer transient other : memref<8x3xf32>
    %begins = plan.buffer transient other : memref<2x500x1xf32>
    %y = plan.buffer transient other : memref<2x500x8xf32>
    plan.linear_recurrence(%x, %q, %q, %q, %q, %begins : memref<2x500x8xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<2x500x1xf32>) -> (%y : memref<2x500x8xf32>) {flops = 1000 : i64, label = "linear_recurrence", op_class = #hydra.op_class<scan>}
    %dq = plan.buffer transient other : memref<8x3xf32>
    %di = plan.buffer transient other : memref<8x3xf32>
    %dc = plan.buffer transient other : memref<8x3xf32>
    %dj = plan.buffer transient other : memref<8x3xf32>
    plan.linear_recurrence(%y, %x, %q, %q, %q, %q : memref<2x500x8xf32>, memref<2x500x8xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<8x3xf32>) -> (%y, %dq, %di, %dc, %dj : memref<2x500x8xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<8x3xf32>, memref<8x3xf32>) {backward, flops = 3000 : i64, label = "linear_recurrence", op_class = #hydra.op_class<scan>}
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
}
