// Sizes that a target says of its kernels take the place of those that hydra-expand-kernels chooses; of two rules for one size
// the later wins, and a rule for heads of another width is for none here.
//
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"], tiles = ["attention_forward:rows=64,stages=2", "attention_forward:width=64,stages=6", "attention_forward:width=128,rows=128", "attention_query_gradients:rows=128,stages=3"], required_tiles = ["attention_key_gradients:rows=64,stages=2", "few_rows_matmul:depth=512,stages=3"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=HOPPER
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=CHOSEN
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"], tiles = ["attention_forward:tile=64,rows=64,stages=6"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=TILE64
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, tiles = ["attention_forward:rows=64,tile=32"], required_tiles = ["attention_query_gradients:rows=128,tile=32", "attention_key_gradients:tile=32", "few_rows_matmul:warps=4"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=TILES

// Many keys, heads of whole blocks: warpgroups take turns, on tiles of 128 keys.
// CHOSEN: launch [8, 1, 1, 384, 164000] source "{{.*}} attention_forward_{{.*}} hopperForwardInTurns<2, 4, 1, 64, 64, 640, 640,
// TILE64: launch [8, 1, 1, 256, 106608] source "{{.*}} attention_forward_{{.*}} hopperForward<1, 6, 1, 64, 64, 640, 640,

// HOPPER-DAG: launch [8, 1, 1, 256, 213216] source "{{.*}} attention_forward_{{.*}} hopperForwardInTurns<1, 6, 1, 64, 64, 640, 640,
// HOPPER-DAG: launch [8, 1, 1, 384, 98368] source "{{.*}} attention_query_gradients_{{.*}} hopperQueryGradients<2, 3, 1, 64, 64,
// HOPPER-DAG: launch [8, 1, 1, 256, 50224] source "{{.*}} attention_key_gradients_{{.*}} hopperKeyGradients<1, 2, 1, 64, 64,
// A row of 32 numbers is not as long as the depth.
// HOPPER-DAG: launch [8, 1, 1, 384, 32832] source "{{.*}} fewRowsBulk<bf16, float, 3, 70, 32, 32, 32, 70, 256, 3, false>

// TILES-DAG: launch [10, 2, 1, 128, 27648] source "{{.*}} attentionForward<1, 32, 64,
// TILES-DAG: launch [5, 2, 1, 128, 55296] source "{{.*}} attentionQueryGradients<2, 32, 64,
// TILES-DAG: launch [10, 2, 1, 128, 37376] source "{{.*}} attentionKeyGradients<1, 32, true, true, 64,
// TILES-DAG: launch [5, 1, 1, 128, 0] source "{{.*}} fewRowsMatmul<bf16, float, 3, 70, 32, 32, 32, 70, 1, 4, 4, false>
plan.module @m {
  %weights = plan.buffer persistent param at 0 : memref<70x32xbf16>
  plan.program @p {
    %q = plan.buffer transient other : memref<1x640x2x64xbf16>
    %o = plan.buffer transient other : memref<1x640x2x64xbf16>
    %l = plan.buffer transient other : memref<1x2x640xf32>
    plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
    plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>) -> (%o : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
    %dq = plan.buffer transient other : memref<1x640x2x64xbf16>
    %dk = plan.buffer transient other : memref<1x640x2x64xbf16>
    %dv = plan.buffer transient other : memref<1x640x2x64xbf16>
    plan.attention_grad(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %o : memref<1x640x2x64xbf16>, %l : memref<1x2x640xf32>) -> (%dq : memref<1x640x2x64xbf16>, %dk : memref<1x640x2x64xbf16>, %dv : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>}
    plan.output "o" = %o : memref<1x640x2x64xbf16>
  }
  plan.program @decode {
    %x = plan.buffer transient other : memref<3x1x32xbf16>
    plan.input "x" = %x values 0 : memref<3x1x32xbf16>
    %y = plan.buffer transient other : memref<3x1x70xf32>
    plan.matmul(%x : memref<3x1x32xbf16>, %weights : memref<70x32xbf16>) -> (%y : memref<3x1x70xf32>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "y" = %y : memref<3x1x70xf32>
  }
}
