// RUN: hydra-opt %s --split-input-file --hydra-add-products | FileCheck %s

// The second matmul adds to what the first has made, where the sum lies as well; the kernel that nothing launches is gone.
// CHECK-LABEL: plan.module @sum
// CHECK-NOT: plan.kernel @add
// CHECK: plan.matmul(%{{.*}}) -> (%[[OWN:[a-z0-9]+]] : memref<32x8xf32>) {label = "own"}
// CHECK: plan.matmul(%{{.*}}) -> (%[[OWN]] : memref<32x8xf32>) {accumulate, bytes = 3048 : i64, label = "from"}
// CHECK-NOT: plan.launch @add
// CHECK: %[[SUM:.*]] = plan.view %[[OWN]]
// CHECK: plan.launch @next(read %[[SUM]]
plan.module @sum {
  plan.kernel @add rows 32 grain 32 [memref<32x8xf32>, memref<32x8xf32>, memref<32x8xf32>] {
    %0 = plan.outer : tensor<32x8xf32>
    %1 = plan.outer : tensor<32x8xf32>
    %2 = hydra.fused rows = [32] inner = [8] (%arg0 = %0, %arg1 = %1) : tensor<32x8xf32>, tensor<32x8xf32> {
      %3 = hydra.add %arg0, %arg1 : tensor<32x8xf32>, tensor<32x8xf32>
      hydra.yield %3 : tensor<32x8xf32>
    }
  }
  plan.kernel @next rows 32 grain 32 [memref<32x8xf32>, memref<32x8xf32>] {}
  plan.program @p {
    %a = plan.buffer transient other : memref<32x4xf32>
    plan.input "a" = %a values 0 : memref<32x4xf32>
    %b = plan.buffer transient other : memref<4x8xf32>
    plan.input "b" = %b values 0 : memref<4x8xf32>
    %own = plan.buffer transient other : memref<32x8xf32>
    plan.matmul(%a : memref<32x4xf32>, %b : memref<4x8xf32>) -> (%own : memref<32x8xf32>) {label = "own"}
    %from = plan.buffer transient other : memref<32x8xf32>
    plan.matmul(%a : memref<32x4xf32>, %b : memref<4x8xf32>) -> (%from : memref<32x8xf32>) {label = "from", bytes = 2024 : i64}
    %sum = plan.view %own plus 0 as other : memref<32x8xf32> to memref<32x8xf32>
    plan.launch @add(read %own : memref<32x8xf32>, read %from : memref<32x8xf32>, write %sum : memref<32x8xf32>) {label = "add"}
    %y = plan.buffer transient other : memref<32x8xf32>
    plan.launch @next(read %sum : memref<32x8xf32>, write %y : memref<32x8xf32>)
    plan.output "y" = %y : memref<32x8xf32>
  }
}

// -----

// Not so where something reads the term between the two, where the product has another reader, or where the sum is a tensor of
// its own.
// CHECK-LABEL: plan.module @apart
// CHECK-NOT: accumulate
// CHECK-COUNT-3: plan.launch @add
plan.module @apart {
  plan.kernel @add rows 32 grain 32 [memref<32x8xf32>, memref<32x8xf32>, memref<32x8xf32>] {
    %0 = plan.outer : tensor<32x8xf32>
    %1 = plan.outer : tensor<32x8xf32>
    %2 = hydra.fused rows = [32] inner = [8] (%arg0 = %0, %arg1 = %1) : tensor<32x8xf32>, tensor<32x8xf32> {
      %3 = hydra.add %arg0, %arg1 : tensor<32x8xf32>, tensor<32x8xf32>
      hydra.yield %3 : tensor<32x8xf32>
    }
  }
  plan.kernel @next rows 32 grain 32 [memref<32x8xf32>, memref<32x8xf32>] {}
  plan.program @p {
    %a = plan.buffer transient other : memref<32x4xf32>
    plan.input "a" = %a values 0 : memref<32x4xf32>
    %b = plan.buffer transient other : memref<4x8xf32>
    plan.input "b" = %b values 0 : memref<4x8xf32>
    %read = plan.buffer transient other : memref<32x8xf32>
    plan.input "read" = %read values 0 : memref<32x8xf32>
    %x = plan.buffer transient other : memref<32x8xf32>
    plan.matmul(%a : memref<32x4xf32>, %b : memref<4x8xf32>) -> (%x : memref<32x8xf32>)
    %y = plan.buffer transient other : memref<32x8xf32>
    plan.launch @next(read %read : memref<32x8xf32>, write %y : memref<32x8xf32>)
    plan.launch @add(read %read : memref<32x8xf32>, read %x : memref<32x8xf32>, write %read : memref<32x8xf32>)
    plan.output "y" = %y : memref<32x8xf32>
    plan.output "sum" = %read : memref<32x8xf32>
  }
  plan.program @q {
    %a = plan.buffer transient other : memref<32x4xf32>
    plan.input "a" = %a values 0 : memref<32x4xf32>
    %b = plan.buffer transient other : memref<4x8xf32>
    plan.input "b" = %b values 0 : memref<4x8xf32>
    %term = plan.buffer transient other : memref<32x8xf32>
    plan.input "term" = %term values 0 : memref<32x8xf32>
    %x = plan.buffer transient other : memref<32x8xf32>
    plan.matmul(%a : memref<32x4xf32>, %b : memref<4x8xf32>) -> (%x : memref<32x8xf32>)
    plan.launch @add(read %term : memref<32x8xf32>, read %x : memref<32x8xf32>, write %term : memref<32x8xf32>)
    plan.output "product" = %x : memref<32x8xf32>
    plan.output "sum" = %term : memref<32x8xf32>
  }
  plan.program @r {
    %a = plan.buffer transient other : memref<32x4xf32>
    plan.input "a" = %a values 0 : memref<32x4xf32>
    %b = plan.buffer transient other : memref<4x8xf32>
    plan.input "b" = %b values 0 : memref<4x8xf32>
    %term = plan.buffer transient other : memref<32x8xf32>
    plan.input "term" = %term values 0 : memref<32x8xf32>
    %x = plan.buffer transient other : memref<32x8xf32>
    plan.matmul(%a : memref<32x4xf32>, %b : memref<4x8xf32>) -> (%x : memref<32x8xf32>)
    %sum = plan.buffer transient other : memref<32x8xf32>
    plan.launch @add(read %term : memref<32x8xf32>, read %x : memref<32x8xf32>, write %sum : memref<32x8xf32>)
    plan.output "sum" = %sum : memref<32x8xf32>
  }
}
