// RUN: hydra-opt %s --hydra-expand-kernels | FileCheck %s --check-prefix=CPU
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8>}' --hydra-expand-kernels | FileCheck %s
// RUN: not hydra-opt %s --hydra-set-target='target={#hydra.target<name = "x", backend = "abacus", architecture = "">}' --hydra-expand-kernels 2>&1 | FileCheck %s --check-prefix=NONE

// A copy and an attention gradient are kernels of the CUDA backend, with the working memory that these
// need; a matmul is its library's. Of a CPU all are.
// CPU-NOT: plan.kernel
// CPU: plan.copy
// CPU: plan.attention_grad{{.*}}, workspace %{{.*}} : memref<{{[0-9]+}}xf32>)
// NONE: error: is for the backend 'abacus', which does not exist
// CHECK-DAG: plan.kernel @copy_{{[0-9]+}} rows 0 grain 0 launch [1, 1, 1, 256, 0] source "extern
// CHECK-LABEL: plan.program @p
// CHECK: plan.launch @copy_{{[0-9]+}}(write {{.*}}, read {{.*}}) {bytes = 64 : i64, {{.*}}signals = 3 : i64
// CHECK: plan.matmul
// CHECK: plan.launch @attention_delta
// CHECK: plan.launch @attention_key_gradients
// CHECK: plan.launch @attention_query_gradients
plan.module @m {
  plan.program @p {
    %a = plan.buffer transient other : memref<2x4xf32>
    %b = plan.buffer transient other : memref<2x4xf32>
    plan.input "a" = %a values 0 : memref<2x4xf32>
    plan.copy(%a : memref<2x4xf32>) -> (%b : memref<2x4xf32>) {bytes = 64 : i64, label = "copy", op_class = #hydra.op_class<copy_cast>, signals = 3 : i64}
    %w = plan.buffer transient other : memref<4x4xf32>
    %c = plan.buffer transient other : memref<2x4xf32>
    plan.matmul(%b : memref<2x4xf32>, %w : memref<4x4xf32>) -> (%c : memref<2x4xf32>) {label = "matmul", op_class = #hydra.op_class<gemm>}
    %q = plan.buffer transient other : memref<1x8x2x4xf32>
    %l = plan.buffer transient other : memref<1x2x8xf32>
    %dq = plan.buffer transient other : memref<1x8x2x4xf32>
    %dk = plan.buffer transient other : memref<1x8x2x4xf32>
    %dv = plan.buffer transient other : memref<1x8x2x4xf32>
    plan.attention_grad(%q : memref<1x8x2x4xf32>, %q : memref<1x8x2x4xf32>, %q : memref<1x8x2x4xf32>, %q : memref<1x8x2x4xf32>, %q : memref<1x8x2x4xf32>, %l : memref<1x2x8xf32>) -> (%dq : memref<1x8x2x4xf32>, %dk : memref<1x8x2x4xf32>, %dv : memref<1x8x2x4xf32>) {scale = 0.5 : f64, label = "attention_grad", op_class = #hydra.op_class<attention>}
    plan.output "c" = %c : memref<2x4xf32>
  }
}
