// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, rates = {memory_bandwidth = 4.2e12, vector_flops = 6.7e13}>}' --hydra-expand-kernels | FileCheck %s

// Batches of small matrices of f32, which memory bounds, are kernels of our own, with a block for each; of a few, fewer than
// multiprocessors, the library's.
// CHECK-DAG: plan.kernel @matmul_{{[0-9]+}} rows 0 grain 0 launch [384, 1, 1, 128, 0] source "{{.*}}multiplyFloats<32, 16, 32, false, FloatTiling<32, 16, 4, 4, {{[0-9, ]+}}>, FloatMatrices<32, 1, 1024>, FloatMatrices<16, 1, 512>, FloatMatrices<16, 1, 512>>(a0, a1, a2);
// CHECK-DAG: source "{{.*}}multiplyFloats<32, 16, 16, true, FloatTiling<{{[0-9, ]+}}>, FloatMatrices<16, 1, 512>
// CHECK: plan.program
// CHECK: plan.launch @matmul
// CHECK: plan.launch @matmul
// CHECK: plan.matmul
plan.module @m {
  plan.program @p {
    %a = plan.buffer transient other : memref<384x32x32xf32>
    %b = plan.buffer transient other : memref<384x32x16xf32>
    %c = plan.buffer transient other : memref<384x32x16xf32>
    plan.matmul(%a : memref<384x32x32xf32>, %b : memref<384x32x16xf32>) -> (%c : memref<384x32x16xf32>) {flops = 12582912 : i64, bytes = 3145728 : i64, label = "matmul", op_class = #hydra.op_class<gemm>}
    %d = plan.buffer transient other : memref<384x16x16xf32>
    plan.matmul(%b : memref<384x32x16xf32>, %d : memref<384x16x16xf32>) -> (%c : memref<384x32x16xf32>) {accumulate, flops = 6291456 : i64, bytes = 2752512 : i64, label = "matmul", op_class = #hydra.op_class<gemm>}
    %e = plan.buffer transient other : memref<20x32x32xf32>
    %f = plan.buffer transient other : memref<20x32x16xf32>
    plan.matmul(%e : memref<20x32x32xf32>, %f : memref<20x32x16xf32>) -> (%f : memref<20x32x16xf32>) {flops = 655360 : i64, bytes = 163840 : i64, label = "matmul", op_class = #hydra.op_class<gemm>}
  }
}
