// Which template computes attention, and how it makes scores.
//
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912>}' --hydra-expand-kernels | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_120", multiprocessors = 8, block_shared = 101376>}' --hydra-expand-kernels | FileCheck %s --check-prefix=SMALL
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=HOPPER

// A cap is a type of the template, of numbers that are known when it is compiled.
// CHECK-DAG: attentionForward<1, 64, 64, {{.*}}>(a0, a1, a2, a3, nullptr, Mask{true, 0, 0}, Scaled{1.25{{0*}}e-01f}); }
// CHECK-DAG: attentionForward<1, 64, 64, {{.*}}>(a0, a1, a2, a3, nullptr, Mask{true, 0, 0}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }
// CHECK-DAG: attentionKeyGradients<1, 64, true, true, 64, {{.*}}, Mask{true, 0, 9}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }
// CHECK-DAG: attentionQueryGradients<1, 64, 64, {{.*}}, Mask{true, 0, 9}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }
// In powers of 2: times log2 e.
// CHECK-DAG: cachedAttention{{.*}}, {0, 0}, Capped{1.803{{[0-9]*}}e-01f, 7.213{{[0-9]*}}e+01f}); }
// CHECK-DAG: plainForward<float, 64, 64, {{.*}}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }

// Heads of 256 read 32 rows at a time, and have dk and dv from a kernel each.
// CHECK-DAG: launch [1, 2, 1, 128, 101376] source "{{.*}}attentionForward<1, 32, 256,
// CHECK-DAG: launch [1, 2, 1, 128, 135680] source "{{.*}}attentionKeyGradients<1, 32, true, false, 256,
// CHECK-DAG: launch [1, 2, 1, 128, 135680] source "{{.*}}attentionKeyGradients<1, 32, false, true, 256,
// CHECK-DAG: launch [1, 2, 1, 128, 135168] source "{{.*}}attentionQueryGradients<1, 32, 256,
// CHECK-DAG: attentionDeltaTiled<256,

// Blocks of less shared memory read fewer rows, or are none of tensor cores.
// SMALL-DAG: launch [1, 2, 1, 128, 101376] source "{{.*}}attentionForward<1, 32, 256,
// SMALL-DAG: attentionKeyGradients<1, 32, true, true, 128,
// SMALL-DAG: attentionQueryGradients<1, 32, 128,
// SMALL-DAG: plainKeyGradients<bf16, 256, 256,
// SMALL-DAG: plainQueryGradients<bf16, 256, 256,

// HOPPER-DAG: hopperForward<{{.*}}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }
// HOPPER-DAG: hopperQueryGradients<{{.*}}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }
// HOPPER-DAG: hopperKeyGradients<{{.*}}, Capped{1.25{{0*}}e-01f, 5.{{0*}}e+01f}); }
// HOPPER-DAG: attentionForward<1, 32, 256,
// cuDNN has no caps: what it can replace is without.
// HOPPER-LABEL: plan.program @p
// HOPPER: plan.launch @attention_forward{{.*}} substitute = #plan.substitute<attention, scale = 1.250000e-01 : f64, causal = true>
// HOPPER-NOT: substitute
// HOPPER: plan.launch @attention_query_gradients
// HOPPER-NOT: substitute
// HOPPER: plan.launch @attention_query_gradients{{.*}} substitute = #plan.substitute<attention_grad
plan.module @m {
  %slots = plan.buffer persistent act.state at 0 : memref<1x2x64x64xbf16>
  plan.program @p {
    %q = plan.buffer transient other : memref<1x64x2x64xbf16>
    %o = plan.buffer transient other : memref<1x64x2x64xbf16>
    %p = plan.buffer transient other : memref<1x64x2x64xbf16>
    %l = plan.buffer transient other : memref<1x2x64xf32>
    plan.input "q" = %q values 0 : memref<1x64x2x64xbf16>
    plan.attention(%q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>) -> (%o : memref<1x64x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
    plan.attention(%q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>) -> (%p : memref<1x64x2x64xbf16>) {scale = 0.125 : f64, cap = 50.0 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
    %dq = plan.buffer transient other : memref<1x64x2x64xbf16>
    %dk = plan.buffer transient other : memref<1x64x2x64xbf16>
    %dv = plan.buffer transient other : memref<1x64x2x64xbf16>
    plan.attention_grad(%q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>, %q : memref<1x64x2x64xbf16>, %l : memref<1x2x64xf32>) -> (%dq : memref<1x64x2x64xbf16>, %dk : memref<1x64x2x64xbf16>, %dv : memref<1x64x2x64xbf16>) {scale = 0.125 : f64, cap = 50.0 : f64, causal, window = 9 : i64, label = "attention_grad", op_class = #hydra.op_class<attention>}
    %f = plan.buffer transient other : memref<1x64x2x64xf32>
    %g = plan.buffer transient other : memref<1x64x2x64xf32>
    plan.attention(%f : memref<1x64x2x64xf32>, %f : memref<1x64x2x64xf32>, %f : memref<1x64x2x64xf32>) -> (%g : memref<1x64x2x64xf32>) {scale = 0.125 : f64, cap = 50.0 : f64, label = "attention", op_class = #hydra.op_class<attention>}
    %m = plan.buffer transient other : memref<1x64x2x128xbf16>
    %eq = plan.buffer transient other : memref<1x64x2x128xbf16>
    %ek = plan.buffer transient other : memref<1x64x2x128xbf16>
    %ev = plan.buffer transient other : memref<1x64x2x128xbf16>
    plan.attention_grad(%m : memref<1x64x2x128xbf16>, %m : memref<1x64x2x128xbf16>, %m : memref<1x64x2x128xbf16>, %m : memref<1x64x2x128xbf16>, %m : memref<1x64x2x128xbf16>, %l : memref<1x2x64xf32>) -> (%eq : memref<1x64x2x128xbf16>, %ek : memref<1x64x2x128xbf16>, %ev : memref<1x64x2x128xbf16>) {scale = 0.125 : f64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>}
    %w = plan.buffer transient other : memref<1x64x2x256xbf16>
    %x = plan.buffer transient other : memref<1x64x2x256xbf16>
    plan.attention(%w : memref<1x64x2x256xbf16>, %w : memref<1x64x2x256xbf16>, %w : memref<1x64x2x256xbf16>) -> (%x : memref<1x64x2x256xbf16>) {scale = 0.0625 : f64, cap = 50.0 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
    %hq = plan.buffer transient other : memref<1x64x2x256xbf16>
    %hk = plan.buffer transient other : memref<1x64x2x256xbf16>
    %hv = plan.buffer transient other : memref<1x64x2x256xbf16>
    plan.attention_grad(%w : memref<1x64x2x256xbf16>, %w : memref<1x64x2x256xbf16>, %w : memref<1x64x2x256xbf16>, %w : memref<1x64x2x256xbf16>, %w : memref<1x64x2x256xbf16>, %l : memref<1x2x64xf32>) -> (%hq : memref<1x64x2x256xbf16>, %hk : memref<1x64x2x256xbf16>, %hv : memref<1x64x2x256xbf16>) {scale = 0.0625 : f64, cap = 50.0 : f64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>}
    %one = plan.buffer transient other : memref<1x1x2x64xbf16>
    %made = plan.buffer transient other : memref<1x1x2x64xbf16>
    %position = plan.buffer transient other : memref<1xf32>
    plan.cached_attention(%one : memref<1x1x2x64xbf16>, %one : memref<1x1x2x64xbf16>, %one : memref<1x1x2x64xbf16>, %position : memref<1xf32>) -> (%made : memref<1x1x2x64xbf16>, %slots : memref<1x2x64x64xbf16>, %slots : memref<1x2x64x64xbf16>) {scale = 0.125 : f64, cap = 50.0 : f64, label = "cached_attention", op_class = #hydra.op_class<attention>}
    plan.output "o" = %o : memref<1x64x2x64xbf16>
  }
}
