// Attention in chunks of 512, of values that are wider than keys: warpgroups of the forward pass take turns, as a query
// sees that many keys, and the gradients of 48 items for 33 multiprocessors are by two blocks of a warpgroup on each. Of
// chunks of 256 they do not take turns, and 80 items are blocks of two warpgroups.
//
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 33, block_shared = 232448, multiprocessor_shared = 233472, features = ["wgmma"]>}' --hydra-expand-kernels | FileCheck %s

// CHECK-DAG: launch [33, 1, 1, 384, 163936] source "{{.*}} hopperForwardInTurns<2, 2, 1, 64, 128, 2048, 2048, 3, 3, {{.*}}, Mask{true, 512, 0},
// CHECK-DAG: launch [66, 1, 1, 256, 114752] source "{{.*}} hopperQueryGradients<1, 3, 1, 64, 128, 2048, 2048, 3, 3, {{.*}}, Mask{true, 512, 0},
// CHECK-DAG: launch [66, 1, 1, 256, 99904] source "{{.*}} hopperKeyGradients<1, 3, 1, 64, 128, 2048, 2048, 3, 3, {{.*}}, Mask{true, 512, 0},
// CHECK-DAG: launch [33, 1, 1, 384, 139360] source "{{.*}} hopperForward<2, 5, 1, 64, 128, 2048, 2048, 5, 5, {{.*}}, Mask{true, 256, 0},
// CHECK-DAG: launch [33, 1, 1, 384, 155712] source "{{.*}} hopperQueryGradients<2, 3, 1, 64, 128, 2048, 2048, 5, 5, {{.*}}, Mask{true, 256, 0},
// CHECK-DAG: launch [33, 1, 1, 384, 149584] source "{{.*}} hopperKeyGradients<2, 4, 1, 64, 128, 2048, 2048, 5, 5, {{.*}}, Mask{true, 256, 0},
plan.module @m {
  plan.program @p {
    %q = plan.buffer transient other : memref<1x2048x3x64xbf16>
    %v = plan.buffer transient other : memref<1x2048x3x128xbf16>
    %o = plan.buffer transient other : memref<1x2048x3x128xbf16>
    %l = plan.buffer transient other : memref<1x3x2048xf32>
    plan.input "q" = %q values 0 : memref<1x2048x3x64xbf16>
    plan.input "v" = %v values 1 : memref<1x2048x3x128xbf16>
    plan.attention(%q : memref<1x2048x3x64xbf16>, %q : memref<1x2048x3x64xbf16>, %v : memref<1x2048x3x128xbf16>) -> (%o : memref<1x2048x3x128xbf16>, lse %l : memref<1x3x2048xf32>) {scale = 0.125 : f64, causal, chunk = 512 : i64, label = "attention", op_class = #hydra.op_class<attention>}
    %dq = plan.buffer transient other : memref<1x2048x3x64xbf16>
    %dk = plan.buffer transient other : memref<1x2048x3x64xbf16>
    %dv = plan.buffer transient other : memref<1x2048x3x128xbf16>
    plan.attention_grad(%v : memref<1x2048x3x128xbf16>, %q : memref<1x2048x3x64xbf16>, %q : memref<1x2048x3x64xbf16>, %v : memref<1x2048x3x128xbf16>, %o : memref<1x2048x3x128xbf16>, %l : memref<1x3x2048xf32>) -> (%dq : memref<1x2048x3x64xbf16>, %dk : memref<1x2048x3x64xbf16>, %dv : memref<1x2048x3x128xbf16>) {scale = 0.125 : f64, causal, chunk = 512 : i64, label = "attention_grad", op_class = #hydra.op_class<attention>}
    plan.output "dv" = %dv : memref<1x2048x3x128xbf16>
  }
  plan.program @short {
    %q = plan.buffer transient other : memref<1x2048x5x64xbf16>
    %v = plan.buffer transient other : memref<1x2048x5x128xbf16>
    %o = plan.buffer transient other : memref<1x2048x5x128xbf16>
    %l = plan.buffer transient other : memref<1x5x2048xf32>
    plan.input "q" = %q values 0 : memref<1x2048x5x64xbf16>
    plan.input "v" = %v values 1 : memref<1x2048x5x128xbf16>
    plan.attention(%q : memref<1x2048x5x64xbf16>, %q : memref<1x2048x5x64xbf16>, %v : memref<1x2048x5x128xbf16>) -> (%o : memref<1x2048x5x128xbf16>, lse %l : memref<1x5x2048xf32>) {scale = 0.125 : f64, causal, chunk = 256 : i64, label = "attention", op_class = #hydra.op_class<attention>}
    %dq = plan.buffer transient other : memref<1x2048x5x64xbf16>
    %dk = plan.buffer transient other : memref<1x2048x5x64xbf16>
    %dv = plan.buffer transient other : memref<1x2048x5x128xbf16>
    plan.attention_grad(%v : memref<1x2048x5x128xbf16>, %q : memref<1x2048x5x64xbf16>, %q : memref<1x2048x5x64xbf16>, %v : memref<1x2048x5x128xbf16>, %o : memref<1x2048x5x128xbf16>, %l : memref<1x5x2048xf32>) -> (%dq : memref<1x2048x5x64xbf16>, %dk : memref<1x2048x5x64xbf16>, %dv : memref<1x2048x5x128xbf16>) {scale = 0.125 : f64, causal, chunk = 256 : i64, label = "attention_grad", op_class = #hydra.op_class<attention>}
    plan.output "dv" = %dv : memref<1x2048x5x128xbf16>
  }
}
