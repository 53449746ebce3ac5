// RUN: hydra-opt %s --split-input-file --hydra-batch-launches | FileCheck %s

// Two updates by one kernel share a launch although another kernel runs between them; a third one reads what the first
// writes and starts the next batch, and so does one that would bring two MiB to life early.
// CHECK-LABEL: plan.module @updates
// CHECK: plan.kernel @update {{.*}}instances 2 [
// CHECK: plan.kernel @wide rows 8 grain 8 [
// CHECK: plan.program @train
// CHECK: plan.launch @update(read %[[G1:[a-z0-9]+]] : memref<8xf32>, update %[[A:[a-z0-9]+]] : memref<8xf32>, read %[[G2:[a-z0-9]+]] : memref<8xf32>, update %{{[a-z0-9]+}} : memref<8xf32>) {bytes = 30 : i64, flops = 3 : i64, label = "update", op_class = #hydra.op_class<optimizer>}
// CHECK-NEXT: plan.launch @other(read %[[G2]]
// CHECK-NEXT: plan.launch @update(read %[[A]]
// CHECK-NEXT: plan.launch @wide
// CHECK-NEXT: plan.launch @wide
plan.module @updates {
  %a = plan.buffer persistent param : memref<8xf32>
  %b = plan.buffer persistent param : memref<8xf32>
  plan.kernel @update rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @other rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @wide rows 8 grain 8 [memref<8xf32>, memref<524288xf32>] {}
  plan.program @train {
    %g1 = plan.buffer transient grad : memref<8xf32>
    %g2 = plan.buffer transient grad : memref<8xf32>
    %x = plan.buffer transient other : memref<8xf32>
    %wide1 = plan.buffer transient other : memref<524288xf32>
    %wide2 = plan.buffer transient other : memref<524288xf32>
    plan.input "g1" = %g1 values 0 : memref<8xf32>
    plan.input "g2" = %g2 values 0 : memref<8xf32>
    plan.launch @update(read %g1 : memref<8xf32>, update %a : memref<8xf32>) {label = "update", op_class = #hydra.op_class<optimizer>, flops = 1 : i64, bytes = 10 : i64}
    plan.launch @other(read %g2 : memref<8xf32>, write %x : memref<8xf32>) {label = "other"}
    plan.launch @update(read %g2 : memref<8xf32>, update %b : memref<8xf32>) {label = "update", op_class = #hydra.op_class<optimizer>, flops = 2 : i64, bytes = 20 : i64}
    plan.launch @update(read %a : memref<8xf32>, update %x : memref<8xf32>) {label = "update", op_class = #hydra.op_class<optimizer>}
    plan.launch @wide(read %g1 : memref<8xf32>, write %wide1 : memref<524288xf32>) {label = "wide"}
    plan.launch @wide(read %g1 : memref<8xf32>, write %wide2 : memref<524288xf32>) {label = "wide"}
  }
}

// -----

// Two instances never touch the same bytes when one of them writes; views of one buffer are apart.
// CHECK-LABEL: plan.module @views
// CHECK: plan.launch @square(read %{{.*}} : memref<4xf32>, write %{{.*}} : memref<4xf32, strided<[1]>>, read %{{.*}} : memref<4xf32>, write %{{.*}} : memref<4xf32, strided<[1]>>)
// CHECK-NEXT: plan.launch @square
// CHECK-NOT: plan.launch
plan.module @views {
  plan.kernel @square rows 4 grain 4 [memref<4xf32>, memref<4xf32, strided<[1]>>] {}
  plan.program @forward {
    %in = plan.buffer transient other : memref<4xf32>
    %out = plan.buffer transient other : memref<8xf32>
    %low = plan.view %out plus 0 : memref<8xf32> to memref<4xf32, strided<[1]>>
    %high = plan.view %out plus 4 : memref<8xf32> to memref<4xf32, strided<[1]>>
    plan.input "in" = %in values 0 : memref<4xf32>
    plan.launch @square(read %in : memref<4xf32>, write %low : memref<4xf32, strided<[1]>>) {label = "square"}
    plan.launch @square(read %in : memref<4xf32>, write %high : memref<4xf32, strided<[1]>>) {label = "square"}
    plan.launch @square(read %in : memref<4xf32>, write %low : memref<4xf32, strided<[1]>>) {label = "square"}
    plan.output "out" = %out : memref<8xf32>
  }
}

// -----

// What only an update reads runs beside the main stream: it does not share a launch with what that reads.
// CHECK-LABEL: plan.module @sides
// CHECK-NOT: instances
// CHECK: plan.launch @square
// CHECK-NEXT: plan.launch @square
plan.module @sides {
  %w = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8xf32>
  plan.kernel @square rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @adamw rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.program @train {
    %a = plan.buffer transient other : memref<8xf32>
    %g = plan.buffer transient grad : memref<8xf32>
    %b = plan.buffer transient other : memref<8xf32>
    plan.input "a" = %a values 0 : memref<8xf32>
    plan.launch @square(read %a : memref<8xf32>, write %g : memref<8xf32>) {label = "square"}
    plan.launch @square(read %a : memref<8xf32>, write %b : memref<8xf32>) {label = "square"}
    plan.launch @adamw(read %g : memref<8xf32>, update %w : memref<8xf32>) {label = "adamw"}
    plan.output "b" = %b : memref<8xf32>
  }
}
