// How much of a block's shared memory the ring of weights has in a matmul of few rows that computes its rows.
//
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["bulk_copies"]>}' --hydra-fuse-operands --hydra-expand-kernels | FileCheck %s

// Weights of bf16 have a ring of all that a block may have, beside the row that it computes: six stages of 16 pieces of 2 KiB.
// CHECK-DAG: launch [8, 1, 1, 384, 211008] source "{{.*}} fewRowsBulk<bf16, bf16, 1, 1024, 4096, 0, 4096, 0, 1024, 6, false, 4128>(

// Of integers one of half that: three stages.
// CHECK-DAG: launch [8, 1, 1, 640, 109584] source "{{.*}} fewRowsBulk<bf16, bf16, 1, 1024, 4096, 0, 4096, 0, 2048, 3, false, 4104>(

// But not where half has no three stages beside what blocks compute.
// CHECK-DAG: launch [8, 1, 1, 640, 189696] source "{{.*}} fewRowsBulk<bf16, bf16, 16, 1024, 1024, 1024, 1024, 1024, 1024, 9, false, 1032>(
plan.module @m {
  plan.kernel @one rows 1 grain 1 [memref<1x4096xf32>, memref<1x4096xbf16>] {
    %0 = plan.outer : tensor<1x4096xf32>
    %1 = hydra.fused rows = [1] inner = [4096] (%arg0 = %0) : tensor<1x4096xf32> {
      %2 = hydra.cast %arg0 to = bf16 : tensor<1x4096xf32>
      hydra.yield %2 : tensor<1x4096xbf16>
    }
  }
  plan.kernel @sixteen rows 16 grain 16 [memref<16x1024xf32>, memref<16x1024xbf16>] {
    %0 = plan.outer : tensor<16x1024xf32>
    %1 = hydra.fused rows = [16] inner = [1024] (%arg0 = %0) : tensor<16x1024xf32> {
      %2 = hydra.cast %arg0 to = bf16 : tensor<16x1024xf32>
      hydra.yield %2 : tensor<16x1024xbf16>
    }
  }
  %w = plan.buffer persistent param : memref<1024x4096xbf16>
  %integers = plan.buffer persistent param : memref<1024x4096xi8>
  %short = plan.buffer persistent param : memref<1024x1024xi8>
  %scales = plan.buffer persistent param : memref<1024xf32>
  plan.program @rounded {
    %x = plan.buffer transient other : memref<1x4096xf32>
    plan.input "x" = %x values 0 : memref<1x4096xf32>
    %rows = plan.buffer transient other : memref<1x4096xbf16>
    plan.launch @one(read %x : memref<1x4096xf32>, write %rows : memref<1x4096xbf16>)
    %y = plan.buffer transient other : memref<1x1024xbf16>
    plan.matmul(%rows : memref<1x4096xbf16>, %w : memref<1024x4096xbf16>) -> (%y : memref<1x1024xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "y" = %y : memref<1x1024xbf16>
  }
  plan.program @integers {
    %x = plan.buffer transient other : memref<1x4096xf32>
    plan.input "x" = %x values 0 : memref<1x4096xf32>
    %rows = plan.buffer transient other : memref<1x4096xbf16>
    plan.launch @one(read %x : memref<1x4096xf32>, write %rows : memref<1x4096xbf16>)
    %y = plan.buffer transient other : memref<1x1024xbf16>
    plan.matmul(%rows : memref<1x4096xbf16>, %integers : memref<1024x4096xi8> weight_scale %scales : memref<1024xf32>) -> (%y : memref<1x1024xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "y" = %y : memref<1x1024xbf16>
  }
  plan.program @sixteen_rows {
    %x = plan.buffer transient other : memref<16x1024xf32>
    plan.input "x" = %x values 0 : memref<16x1024xf32>
    %rows = plan.buffer transient other : memref<16x1024xbf16>
    plan.launch @sixteen(read %x : memref<16x1024xf32>, write %rows : memref<16x1024xbf16>)
    %y = plan.buffer transient other : memref<16x1024xbf16>
    plan.matmul(%rows : memref<16x1024xbf16>, %short : memref<1024x1024xi8> weight_scale %scales : memref<1024xf32>) -> (%y : memref<16x1024xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "y" = %y : memref<16x1024xbf16>
  }
}
