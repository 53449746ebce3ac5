// RUN: hydra-opt %s --hydra-expand-kernels | FileCheck %s --check-prefix=CPU
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8>}' --hydra-expand-kernels | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 100000, features = ["bulk_copies"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=BULK
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, features = ["clusters"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=CLUSTERS
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=WARPGROUPS
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", block_shared = 232448, features = ["wgmma"]>}' --hydra-expand-kernels | FileCheck %s --check-prefix=UNCOUNTED
// RUN: not hydra-opt %s --hydra-set-target='target={#hydra.target<name = "x", backend = "abacus", architecture = "">}' --hydra-expand-kernels 2>&1 | FileCheck %s --check-prefix=NONE

// A copy and an attention gradient are kernels of the CUDA backend, with the working memory that these
// need; a matmul is its library's. Of a CPU all are.
// CPU-NOT: plan.kernel
// CPU: plan.copy
// CPU: plan.attention_grad{{.*}}, workspace %{{.*}} : memref<{{[0-9]+}}xf32>)
// NONE: error: is for the backend 'abacus', which does not exist
// CHECK-DAG: plan.kernel @copy_{{[0-9]+}} rows 0 grain 0 launch [1, 1, 1, 256, 0] source "extern
// CHECK-DAG: plan.kernel @[[EARLY:few_rows_matmul_[0-9]+]] rows 0 grain 0 launch [5, 1, 1, 32, 0] source "{{.*}}) { letLaterBegin(); fewRowsMatmul<bf16, float, 3, 70, 32, 32, 32, 70, 1, 1, 4, false>
// CHECK-DAG: plan.kernel @[[LATE:few_rows_matmul_[0-9]+]] rows 0 grain 0 launch [5, 1, 1, 32, 0] source "{{.*}}) { letLaterBegin(); waitForEarlier(); fewRowsMatmul<bf16, float, 3, 70, 32, 32, 32, 70, 1, 1, 4, false>
// An id of 100,000 is drawn by a block for each sequence, or by several that see each other's memory.
// CHECK-DAG: plan.kernel @sample_{{[0-9]+}} rows 0 grain 0 launch [2, 1, 1, 1024, 0] source "{{.*}} __launch_bounds__(1024, 1) sample_{{.*}} Sampler<100000, 3, 1, 98, false>(a0, a6).run(a1, a2, a3, a4, a5);
// CLUSTERS-DAG: plan.kernel @sample_{{[0-9]+}} rows 0 grain 0 launch [16, 1, 1, 1024, 0] source "{{.*}} __cluster_dims__(8, 1, 1) sample_{{.*}} Sampler<100000, 3, 8, 13, true>
// Copies and fills that hydra-batch-copies has marked are one, with blocks for each.
// CHECK-DAG: plan.kernel @[[COPIES:copies_[0-9]+]] rows 0 grain 0 launch [3, 1, 1, 256, 0] source "{{.*}}(uint4 * a0, const uint4 * a1, float * a2) { letLaterBegin(); waitForEarlier(); if (blockIdx.x < 1) return copyElements<uint4, 2, Dim<2, 1, 1>>(blockIdx.x - 0, a0, a1); fillElements<float, 300, Dim<300, 1, 1>>(blockIdx.x - 1, a2, float(1.{{0*}}e+00f)); }
// Whole numbers are filled in as such: f32 has not all of them.
// CHECK-DAG: plan.kernel @fill_{{[0-9]+}} {{.*}}fillElements<int, 64, Dim<64, 1, 1>>(blockIdx.x - 0, a0, (int)16777217); }
// Small matmuls of 16-bit numbers whose batch no one distance reaches are one launch, with a block for each; one that the
// library's call covers is the library's, as are those of f32.
// CHECK-DAG: plan.kernel @[[SMALL:small_matmuls_[0-9]+]] rows 0 grain 0 launch [6, 1, 1, 128, 2560] source "{{.*}}(const bf16 * a0, const bf16 * a1, float * a2) { letLaterBegin(); waitForEarlier(); const int64 matrix = blockIdx.x; multiplySmall<false, 128>(Matrix<float, 16, 16, 16, 1, {{[0-9]+}}, false>{a2 + ((matrix) * 256)}, SmallMatrix<bf16, 16, 32, 64, 1>{a0 + ((matrix % 3) * 1024 + (matrix / 3) * 32)}, SmallMatrix<bf16, 16, 32, 32, 1>{a1 + ((matrix) * 512)}, a0);
// Tensors of one format are counted in one launch, with blocks for each; those of another in another one.
// CHECK-DAG: plan.kernel @[[COUNT:count_exponents_[0-9]+]] rows 0 grain 0 launch [3, 1, 1, 256, 0] source "{{.*}}(const float * a0, const float * a1, const float * a2, int * a3) { letLaterBegin(); waitForEarlier(); Counted<float> of{a0, 70000, 0}; if (blockIdx.x >= 2) of = {a1, 8, 2}; countExponents<-40, 64, 65536, true>(of, *a2, a3); }
// CHECK-DAG: plan.kernel @[[ROUNDED:count_exponents_[0-9]+]] rows 0 grain 0 launch [1, 1, 1, 256, 0] source "{{.*}} Counted<bf16> of{a0, 96, 0}; countExponents<-40, 64, 65536, true>(of, *a1, a2); }
// Rows in groups are multiplied by warps; where the target has warpgroups, see the end, by those.
// CHECK-DAG: plan.kernel @grouped_linear_{{[0-9]+}} rows 0 grain 0 launch [10, 1, 1, 256, {{[0-9]+}}] source "{{.*}} groupedLinear<256, 3, 192, 64, false>(a0, a1, a2, a3);
// CHECK-DAG: plan.kernel @grouped_outer_{{[0-9]+}} rows 0 grain 0 launch [1, 2, 3, 256, {{[0-9]+}}] source "{{.*}} groupedOuter<256, 3, 192, 64>(a0, a1, a2, a3);
// CHECK-LABEL: plan.program @p
// CHECK: plan.launch @copy_{{[0-9]+}}(write {{.*}}, read {{.*}}) {bytes = 64 : i64, {{.*}}signals = 3 : i64
// CHECK: plan.matmul
// CHECK: plan.launch @attention_delta
// CHECK: plan.launch @attention_key_gradients
// CHECK: plan.launch @attention_query_gradients

// CHECK-LABEL: plan.program @together
// CHECK: plan.launch @[[COPIES]](write {{.*}}, read {{.*}}, write {{.*}}) {bytes = 1264 : i64
// CHECK: plan.launch @fill

// A few rows times a matrix that nothing writes are a sweep that begins to read early; times one that is written, it
// waits first, in a kernel of its own; more rows are the library's. Attention over many slots of few heads is cut into parts.
// CHECK-LABEL: plan.program @decode
// CHECK: plan.launch @fill{{.*}}(write %[[COUNTERS:[^ ]*]] : memref<1xi32>)
// CHECK: plan.launch @[[EARLY]](
// CHECK: plan.launch @[[LATE]](
// CHECK: plan.matmul
// CHECK: plan.launch @cached_attention_{{[0-9]+}}({{.*}}write {{[^ ]*}} : memref<1x1x1x{{[0-9]+}}x1x66xf32>, update %[[COUNTERS]] : memref<1xi32>)

// Where multiprocessors copy, they do it for few rows; where they have memory for stages, attention is on tensor cores.
// BULK-DAG: plan.kernel @few_rows_matmul_{{[0-9]+}} rows 0 grain 0 launch [8, 1, 1, 384, {{[0-9]+}}] source "{{.*}}) { letLaterBegin(); fewRowsBulk<bf16, float, 3, 70, 32, 32, 32, 70, 256, {{[0-9]+}}, false>
// BULK-DAG: plan.kernel @cached_attention_{{[0-9]+}} {{.*}} cachedAttentionTiles<bf16, 1, 1, 1, 64, 64, 2048, 8, 8, 2, true,

// The small matmuls are one launch; the others are the library's.
// CHECK-LABEL: plan.program @small
// CHECK: plan.launch @[[SMALL]](read {{.*}}, read {{.*}}, write {{.*}})
// CHECK: plan.matmul
// CHECK: plan.matmul

// CHECK-LABEL: plan.program @counts
// CHECK: plan.launch @[[COUNT]](read %{{.*}} : memref<70000xf32>, read %{{.*}} : memref<2x4xf32>, read %{{.*}} : memref<f32>, update %[[N:.*]] : memref<64xi32>) {bytes = 280032 : i64, flops = 70008 : i64
// CHECK: plan.launch @[[ROUNDED]](read %{{.*}} : memref<3x1x32xbf16>, read %{{.*}} : memref<f32>, update %[[N]] : memref<64xi32>) {bytes = 192 : i64, flops = 96 : i64
// Warpgroups have memory for maps and for parts of tiles, and counters of their own, which are cleared together; rows that are
// not of 16-byte pieces are no work for them.
// WARPGROUPS-DAG: plan.kernel @grouped_linear_{{[0-9]+}} rows 0 grain 0 launch [8, 1, 1, 384, {{[0-9]+}}] source "{{.*}}unsigned char * a4, int * a5) {{.*}} groupedLinearHopper<256, 3, 192, 64, false, 192, 4, 3>(a0, a1, a2, a3, a4, a5);
// WARPGROUPS-DAG: plan.kernel @grouped_outer_{{[0-9]+}} rows 0 grain 0 launch [8, 1, 1, 384, {{[0-9]+}}] source "{{.*}} groupedOuterHopper<256, 3, 192, 64, 64, 8, 2>(a0, a1, a2, a3, a4, a5);
// WARPGROUPS-DAG: plan.kernel @grouped_linear_{{[0-9]+}} {{.*}} groupedLinearPlain<256, 3, 6, 64, false, false>(a0, a1, a2, a3);
// A target that does not say how many multiprocessors it has has a block for each tile, of warps.
// UNCOUNTED-DAG: plan.kernel @grouped_linear_{{[0-9]+}} rows 0 grain 0 launch [10, 1, 1, 256, {{[0-9]+}}] source "{{.*}} groupedLinear<256, 3, 192, 64, false>(a0, a1, a2, a3);
// UNCOUNTED-DAG: plan.kernel @grouped_outer_{{[0-9]+}} rows 0 grain 0 launch [1, 2, 3, 256, {{[0-9]+}}] source "{{.*}} groupedOuter<256, 3, 192, 64>(a0, a1, a2, a3);
// WARPGROUPS-LABEL: plan.program @grouped
// WARPGROUPS: plan.launch @copies{{.*}}(write %[[SECOND:[^ ]*]] : memref<16xi32>, write %[[FIRST:[^ ]*]] : memref<16xi32>)
// WARPGROUPS: plan.launch @grouped_linear{{.*}}write %{{[^ ]*}} : memref<256x192xbf16>, write %{{[^ ]*}} : memref<{{[0-9]+}}xi32>, update %[[FIRST]] : memref<16xi32>)
// WARPGROUPS: plan.launch @grouped_outer{{.*}}write %{{[^ ]*}} : memref<3x192x64xf32>, write %{{[^ ]*}} : memref<{{[0-9]+}}xi32>, update %[[SECOND]] : memref<16xi32>)
plan.module @m {
  %weights = plan.buffer persistent param at 0 : memref<70x32xbf16>
  %slots = plan.buffer persistent act.state at 8192 : memref<1x1x2048x64xbf16>
  %seen = plan.buffer persistent act.state at 524288 : memref<2x3125xi32>
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
  plan.program @together {
    %a = plan.buffer transient other : memref<2x4xf32>
    %b = plan.buffer transient other : memref<2x4xf32>
    %c = plan.buffer transient other : memref<300xf32>
    plan.input "a" = %a values 0 : memref<2x4xf32>
    plan.copy(%a : memref<2x4xf32>) -> (%b : memref<2x4xf32>) {bytes = 64 : i64, plan.together = 0 : i64}
    plan.fill 1.0 -> (%c : memref<300xf32>) {bytes = 1200 : i64, plan.together = 0 : i64}
    plan.fill 2.0 -> (%c : memref<300xf32>) {bytes = 1200 : i64, plan.together = 1 : i64}
  }
  plan.program @decode {
    %x = plan.buffer transient other : memref<3x1x32xbf16>
    plan.input "x" = %x values 0 : memref<3x1x32xbf16>
    %y = plan.buffer transient other : memref<3x1x70xf32>
    plan.matmul(%x : memref<3x1x32xbf16>, %weights : memref<70x32xbf16>) -> (%y : memref<3x1x70xf32>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    %made = plan.buffer transient other : memref<70x32xbf16>
    %z = plan.buffer transient other : memref<3x1x70xf32>
    plan.fill 1.0 -> (%made : memref<70x32xbf16>) {label = "fill"}
    plan.matmul(%x : memref<3x1x32xbf16>, %made : memref<70x32xbf16>) -> (%z : memref<3x1x70xf32>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    %many = plan.buffer transient other : memref<17x32xbf16>
    %t = plan.buffer transient other : memref<17x70xf32>
    plan.matmul(%many : memref<17x32xbf16>, %weights : memref<70x32xbf16>) -> (%t : memref<17x70xf32>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    %q = plan.buffer transient other : memref<1x1x1x64xbf16>
    %o = plan.buffer transient other : memref<1x1x1x64xbf16>
    %position = plan.buffer transient other : memref<1xf32>
    plan.cached_attention(%q : memref<1x1x1x64xbf16>, %q : memref<1x1x1x64xbf16>, %q : memref<1x1x1x64xbf16>, %position : memref<1xf32>) -> (%o : memref<1x1x1x64xbf16>, %slots : memref<1x1x2048x64xbf16>, %slots : memref<1x1x2048x64xbf16>) {scale = 0.5 : f64, label = "cached_attention", op_class = #hydra.op_class<attention>}
    %scores = plan.buffer transient logits : memref<2x100000xf32>
    %tokens = plan.buffer transient other : memref<2x3xi32>
    %begins = plan.buffer transient other : memref<2xf32>
    %settings = plan.buffer transient other : memref<2x5xf32>
    %draw = plan.buffer transient other : memref<2x4xi32>
    %token = plan.buffer transient other : memref<2xi32>
    plan.sample(%scores : memref<2x100000xf32>, %tokens : memref<2x3xi32>, %begins : memref<2xf32>, %settings : memref<2x5xf32>, %draw : memref<2x4xi32>) -> (%token : memref<2xi32>, %seen : memref<2x3125xi32>) {label = "sample", op_class = #hydra.op_class<gather_scatter>}
    plan.output "y" = %y : memref<3x1x70xf32>
    plan.output "token" = %token : memref<2xi32>
  }
  plan.program @small {
    %wide = plan.buffer transient other : memref<48x64xbf16>
    plan.input "wide" = %wide values 0 : memref<48x64xbf16>
    %heads = plan.view %wide plus 0 : memref<48x64xbf16> to memref<2x3x16x32xbf16, strided<[32, 1024, 64, 1]>>
    %b = plan.buffer transient other : memref<2x3x16x32xbf16>
    plan.fill 1.0 -> (%b : memref<2x3x16x32xbf16>) {label = "fill"}
    %c = plan.buffer transient other : memref<2x3x16x16xf32>
    plan.matmul(%heads : memref<2x3x16x32xbf16, strided<[32, 1024, 64, 1]>>, %b : memref<2x3x16x32xbf16>) -> (%c : memref<2x3x16x16xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %d = plan.buffer transient other : memref<2x3x16x16xf32>
    plan.matmul(%b : memref<2x3x16x32xbf16>, %b : memref<2x3x16x32xbf16>) -> (%d : memref<2x3x16x16xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %exact = plan.buffer transient other : memref<48x64xf32>
    plan.fill 1.0 -> (%exact : memref<48x64xf32>) {label = "fill"}
    %parts = plan.view %exact plus 0 : memref<48x64xf32> to memref<2x3x16x32xf32, strided<[32, 1024, 64, 1]>>
    %e = plan.buffer transient other : memref<2x3x16x16xf32>
    plan.matmul(%parts : memref<2x3x16x32xf32, strided<[32, 1024, 64, 1]>>, %parts : memref<2x3x16x32xf32, strided<[32, 1024, 64, 1]>>) -> (%e : memref<2x3x16x16xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.output "c" = %c : memref<2x3x16x16xf32>
    plan.output "d" = %d : memref<2x3x16x16xf32>
    plan.output "e" = %e : memref<2x3x16x16xf32>
  }
  plan.program @counts {
    %a = plan.buffer transient other : memref<70000xf32>
    %b = plan.buffer transient other : memref<3x1x32xbf16>
    %c = plan.buffer transient other : memref<2x4xf32>
    %factor = plan.buffer transient other : memref<f32>
    %n = plan.buffer transient other : memref<64xi32>
    plan.input "a" = %a values 0 : memref<70000xf32>
    plan.input "b" = %b values 0 : memref<3x1x32xbf16>
    plan.input "c" = %c values 0 : memref<2x4xf32>
    plan.input "factor" = %factor values 0 : memref<f32>
    plan.fill 0.0 -> (%n : memref<64xi32>) {label = "fill"}
    plan.count_exponents(%factor, %a, %b, %c : memref<f32>, memref<70000xf32>, memref<3x1x32xbf16>, memref<2x4xf32>) -> (%n : memref<64xi32>) {first = -40 : i64, scaled, label = "count_exponents", op_class = #hydra.op_class<gather_scatter>}
    plan.output "n" = %n : memref<64xi32>
  }
  plan.program @grouped {
    %x = plan.buffer transient other : memref<256x64xbf16>
    plan.input "x" = %x values 0 : memref<256x64xbf16>
    %offsets = plan.buffer transient other : memref<4xi32>
    plan.input "offsets" = %offsets values 0 : memref<4xi32>
    %w = plan.buffer transient other : memref<3x192x64xbf16>
    plan.fill 1.0 -> (%w : memref<3x192x64xbf16>) {label = "fill"}
    %y = plan.buffer transient other : memref<256x192xbf16>
    plan.grouped_linear(%x : memref<256x64xbf16>, %w : memref<3x192x64xbf16>, %offsets : memref<4xi32>) -> (%y : memref<256x192xbf16>) {label = "grouped_linear", op_class = #hydra.op_class<gemm>}
    %c = plan.buffer transient other : memref<3x192x64xf32>
    plan.grouped_outer(%y : memref<256x192xbf16>, %x : memref<256x64xbf16>, %offsets : memref<4xi32>) -> (%c : memref<3x192x64xf32>) {label = "grouped_outer", op_class = #hydra.op_class<gemm>}
    %narrow = plan.buffer transient other : memref<3x6x64xbf16>
    plan.fill 1.0 -> (%narrow : memref<3x6x64xbf16>) {label = "fill"}
    %z = plan.buffer transient other : memref<256x6xbf16>
    plan.grouped_linear(%x : memref<256x64xbf16>, %narrow : memref<3x6x64xbf16>, %offsets : memref<4xi32>) -> (%z : memref<256x6xbf16>) {label = "grouped_linear", op_class = #hydra.op_class<gemm>}
    plan.output "c" = %c : memref<3x192x64xf32>
    plan.output "z" = %z : memref<256x6xbf16>
  }
  plan.program @whole_numbers {
    %n = plan.buffer transient other : memref<64xi32>
    plan.fill 16777217.0 -> (%n : memref<64xi32>) {label = "fill"}
  }
}
