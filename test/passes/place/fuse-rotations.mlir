// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, multiprocessor_shared = 232448, features = ["wgmma"]>}' --hydra-fuse-rotations | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, multiprocessor_shared = 232448, features = ["wgmma"]>}' --hydra-fuse-rotations --hydra-expand-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, multiprocessor_shared = 166912>}' --hydra-fuse-rotations | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --hydra-fuse-rotations | FileCheck %s --check-prefix=NONE

// Without kernels of warpgroups, or on a CPU, nothing is marked.
// NONE-NOT: plan.rotations

// Queries and keys side by side, which fewer heads share, in one launch. It runs right behind attention's step; what stands between
// touches nothing of its place.
// CHECK-LABEL: plan.program @both
// CHECK: plan.attention_grad({{.*}}plan.rotations = 1 : i64
// CHECK-NEXT: plan.launch @halves(
// CHECK: plan.fill

// Both kernels have the table of frequencies of half a head, and store where the launch would have: what lay between is no longer
// there. cuDNN, which does not rotate, cannot replace them.
// KERNELS: plan.kernel @[[DQ:attention_query_gradients_[0-9]+]] {{.*}} source "{{.*}}(const bf16 * a0, const bf16 * a1, const bf16 * a2, const bf16 * a3, const bf16 * a4, const float * a5, bf16 * a6, bf16 * a7, bf16 * a8, float * a9) {{.*}}static constexpr double frequencies[] = {1.00000000000000000e+00, {{.*}}hopperQueryGradients<{{.*}}, Layout<32768, 512, 64>, {{[0-9]+}}>(a0, a1, a2, a3, a4, a5, a9, a6, Mask{{[{]}}true, 0, 0}, Scaled{{[{]}}1.25{{0*}}e-01f}, rotation<true, true>(frequencies, [=](int sequence, int row) {{[{]}} return uint32(row); })); }
// KERNELS: plan.kernel @[[DK:attention_key_gradients_[0-9]+]] {{.*}} source "{{.*}}static constexpr double frequencies[] = {{.*}}hopperKeyGradients<{{.*}}, Layout<32768, 512, 64>, Layout<32768, 512, 64>, {{[0-9]+}}>(a0, a1, a2, a3, a4, a5, a6, a7, Mask{{[{]}}true, 0, 0}, Scaled{{[{]}}1.25{{0*}}e-01f}, rotation<true, true>(frequencies, [=](int sequence, int row) {{[{]}} return uint32(row); })); }
// Positions are an argument behind the others, and made of them what the group makes.
// KERNELS: plan.kernel @attention_key_gradients_{{[0-9]+}} {{.*}} source "{{.*}}, bf16 * a7, const float * a8) {{.*}}Capped{{.*}}, rotation<false, true>(frequencies, [=](int sequence, int row) {{[{]}} const float n0 = widen(a8[int64(sequence) * 64 + int64(row) * 1]); const float n1 = __int_as_float(0); {{.*}} return uint32(n{{[0-9]+}}) % 24u; })); }
// KERNELS-LABEL: plan.program @both
// KERNELS-NOT: memref<3x64x6x64xbf16>
// KERNELS: plan.buffer transient act.grad : memref<3x64x512xbf16>
// KERNELS: plan.launch @[[DQ]]({{.*}}write %{{[^ ]*}} : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>, {{.*}}bytes = 1000 : i64, flops = 385 : i64
// KERNELS-NOT: substitute
// KERNELS-NEXT: plan.launch @[[DK]]({{.*}}bytes = 1000 : i64, flops = 515 : i64
// KERNELS-NOT: substitute
// KERNELS-NOT: plan.launch @halves(
// KERNELS-LABEL: plan.program @apart

// A launch for each, one of them by given positions; of queries and keys in a window, whose scores are under a cap.
// CHECK-LABEL: plan.program @apart
// CHECK: plan.attention_grad({{.*}}plan.rotations = 2 : i64
// CHECK-NEXT: plan.launch @placed(
// CHECK-NEXT: plan.launch @pairs(
// KERNELS-NOT: plan.launch @placed(
// KERNELS-NOT: plan.launch @pairs(
// KERNELS-LABEL: plan.program @queries

// Of queries alone: keys were not rotated.
// CHECK-LABEL: plan.program @queries
// CHECK: plan.attention_grad({{.*}}plan.rotations = 1 : i64
// CHECK-NEXT: plan.launch @pairs(
// KERNELS: plan.launch @attention_query_gradients
// KERNELS-NEXT: plan.launch @attention_key_gradients
// KERNELS-NOT: plan.launch @pairs(
// KERNELS-LABEL: plan.program @watched
// KERNELS: plan.launch @attention_query_gradients{{.*}} substitute = #plan.substitute<attention_grad
// KERNELS: plan.launch @pairs(

// Not where something else reads the gradients,
// CHECK-LABEL: plan.program @watched
// CHECK-NOT: plan.rotations
// the place is used before the launch writes there,
// CHECK-LABEL: plan.program @between
// CHECK-NOT: plan.rotations
// attention reads what would be written over,
// CHECK-LABEL: plan.program @over
// CHECK-NOT: plan.rotations
// the launch reads more than gradients,
// CHECK-LABEL: plan.program @others
// CHECK-NOT: plan.rotations
// rows begin anywhere,
// CHECK-LABEL: plan.program @unaligned
// CHECK-NOT: plan.rotations
// or the group does more.
// CHECK-LABEL: plan.program @more
// CHECK-NOT: plan.rotations
plan.module @m {
  plan.kernel @halves rows 192 grain 1 [memref<3x64x6x64xbf16>, memref<3x64x6x64xbf16, strided<[32768, 512, 64, 1]>>] {
    %0 = plan.outer : tensor<3x64x6x64xbf16>
    %2 = hydra.fused rows = [3, 64] inner = [6, 64] (%arg0 = %0) : tensor<3x64x6x64xbf16> {
      %3 = hydra.rope %arg0 base = 1.000000e+04 half_split inverse : tensor<3x64x6x64xbf16>
      hydra.yield %3 : tensor<3x64x6x64xbf16>
    }
  }
  plan.kernel @pairs rows 192 grain 1 [memref<3x64x4x64xbf16>, memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>] {
    %0 = plan.outer : tensor<3x64x4x64xbf16>
    %2 = hydra.fused rows = [3, 64] inner = [4, 64] (%arg0 = %0) : tensor<3x64x4x64xbf16> {
      %3 = hydra.rope %arg0 base = 1.000000e+04 inverse : tensor<3x64x4x64xbf16>
      hydra.yield %3 : tensor<3x64x4x64xbf16>
    }
  }
  plan.kernel @placed rows 192 grain 1 [memref<3x64x2x64xbf16>, memref<3x64xf32>, memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>] {
    %0 = plan.outer : tensor<3x64x2x64xbf16>
    %1 = plan.outer : tensor<3x64xf32>
    %2 = hydra.fused rows = [3, 64] inner = [2, 64] (%arg0 = %0, %arg1 = %1) : tensor<3x64x2x64xbf16>, tensor<3x64xf32> {
      %3 = hydra.rope %arg0, %arg1 base = 1.000000e+04 inverse period = 24 : tensor<3x64x2x64xbf16>, tensor<3x64xf32>
      hydra.yield %3 : tensor<3x64x2x64xbf16>
    }
  }
  plan.kernel @plain rows 192 grain 1 [memref<3x64x4x64xbf16>, memref<3x64x4x64xbf16>] {
    %0 = plan.outer : tensor<3x64x4x64xbf16>
    %2 = hydra.fused rows = [3, 64] inner = [4, 64] (%arg0 = %0) : tensor<3x64x4x64xbf16> {
      %3 = hydra.rope %arg0 base = 1.000000e+04 inverse : tensor<3x64x4x64xbf16>
      hydra.yield %3 : tensor<3x64x4x64xbf16>
    }
  }
  plan.kernel @odd rows 192 grain 1 [memref<3x64x4x64xbf16>, memref<3x64x4x64xbf16, strided<[16640, 260, 64, 1]>>] {
    %0 = plan.outer : tensor<3x64x4x64xbf16>
    %2 = hydra.fused rows = [3, 64] inner = [4, 64] (%arg0 = %0) : tensor<3x64x4x64xbf16> {
      %3 = hydra.rope %arg0 base = 1.000000e+04 inverse : tensor<3x64x4x64xbf16>
      hydra.yield %3 : tensor<3x64x4x64xbf16>
    }
  }
  plan.kernel @negated rows 192 grain 1 [memref<3x64x4x64xbf16>, memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>] {
    %0 = plan.outer : tensor<3x64x4x64xbf16>
    %2 = hydra.fused rows = [3, 64] inner = [4, 64] (%arg0 = %0) : tensor<3x64x4x64xbf16> {
      %3 = hydra.rope %arg0 base = 1.000000e+04 inverse : tensor<3x64x4x64xbf16>
      %4 = hydra.neg %3 : tensor<3x64x4x64xbf16>
      hydra.yield %4 : tensor<3x64x4x64xbf16>
    }
  }
  plan.program @both {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %both = plan.buffer transient act.grad : memref<3x64x6x64xbf16>
    %dq = plan.view %both plus 0 : memref<3x64x6x64xbf16> to memref<3x64x4x64xbf16, strided<[24576, 384, 64, 1]>>
    %dk = plan.view %both plus 256 : memref<3x64x6x64xbf16> to memref<3x64x2x64xbf16, strided<[24576, 384, 64, 1]>>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    %aside = plan.buffer transient other : memref<64xf32>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16, strided<[24576, 384, 64, 1]>>, %dk : memref<3x64x2x64xbf16, strided<[24576, 384, 64, 1]>>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    plan.fill 0.000000e+00 -> (%aside : memref<64xf32>) {label = "fill"}
    %to = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x6x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.launch @halves(read %both : memref<3x64x6x64xbf16>, write %to : memref<3x64x6x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 295912 : i64, flops = 200 : i64, label = "halves", op_class = #hydra.op_class<elementwise>}
    plan.output "all" = %all : memref<3x64x512xbf16>
    plan.output "aside" = %aside : memref<64xf32>
  }
  plan.program @apart {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64, cap = 50.0 : f64, window = 9 : i64}
    %tk = plan.view %all plus 256 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.launch @placed(read %dk : memref<3x64x2x64xbf16>, read %at : memref<3x64xf32>, write %tk : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "placed", op_class = #hydra.op_class<elementwise>}
    %tq = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.launch @pairs(read %dq : memref<3x64x4x64xbf16>, write %tq : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "pairs", op_class = #hydra.op_class<elementwise>}
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @queries {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    %tq = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.launch @pairs(read %dq : memref<3x64x4x64xbf16>, write %tq : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "pairs", op_class = #hydra.op_class<elementwise>}
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @watched {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    %tq = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.launch @pairs(read %dq : memref<3x64x4x64xbf16>, write %tq : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "pairs", op_class = #hydra.op_class<elementwise>}
    plan.output "dq" = %dq : memref<3x64x4x64xbf16>
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @between {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    %tq = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.copy(%q : memref<3x64x4x64xbf16>) -> (%tq : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>) {label = "copy"}
    plan.launch @pairs(read %dq : memref<3x64x4x64xbf16>, write %tq : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "pairs", op_class = #hydra.op_class<elementwise>}
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @over {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    plan.launch @plain(read %dq : memref<3x64x4x64xbf16>, write %q : memref<3x64x4x64xbf16>) {bytes = 1000000 : i64, flops = 200 : i64, label = "plain", op_class = #hydra.op_class<elementwise>}
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "rotated" = %q : memref<3x64x4x64xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @others {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %both = plan.buffer transient act.grad : memref<3x64x6x64xbf16>
    %dq = plan.view %both plus 0 : memref<3x64x6x64xbf16> to memref<3x64x4x64xbf16, strided<[24576, 384, 64, 1]>>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    %to = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x6x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16, strided<[24576, 384, 64, 1]>>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    plan.launch @halves(read %both : memref<3x64x6x64xbf16>, write %to : memref<3x64x6x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "halves", op_class = #hydra.op_class<elementwise>}
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @unaligned {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    %wide = plan.buffer transient act.grad : memref<3x64x260xbf16>
    %tq = plan.view %wide plus 0 : memref<3x64x260xbf16> to memref<3x64x4x64xbf16, strided<[16640, 260, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    plan.launch @odd(read %dq : memref<3x64x4x64xbf16>, write %tq : memref<3x64x4x64xbf16, strided<[16640, 260, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "odd", op_class = #hydra.op_class<elementwise>}
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "wide" = %wide : memref<3x64x260xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
  plan.program @more {
    %do = plan.buffer transient other : memref<3x64x4x64xbf16>
    %q = plan.buffer transient other : memref<3x64x4x64xbf16>
    %k = plan.buffer transient other : memref<3x64x2x64xbf16>
    %v = plan.buffer transient other : memref<3x64x2x64xbf16>
    %o = plan.buffer transient other : memref<3x64x4x64xbf16>
    %lse = plan.buffer transient other : memref<3x4x64xf32>
    %at = plan.buffer transient other : memref<3x64xf32>
    plan.input "do" = %do values 0 : memref<3x64x4x64xbf16>
    plan.input "q" = %q values 0 : memref<3x64x4x64xbf16>
    plan.input "at" = %at values 0 : memref<3x64xf32>
    %dq = plan.buffer transient act.grad : memref<3x64x4x64xbf16>
    %dk = plan.buffer transient act.grad : memref<3x64x2x64xbf16>
    %all = plan.buffer transient act.grad : memref<3x64x512xbf16>
    %dv = plan.view %all plus 384 : memref<3x64x512xbf16> to memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.attention_grad(%do : memref<3x64x4x64xbf16>, %q : memref<3x64x4x64xbf16>, %k : memref<3x64x2x64xbf16>, %v : memref<3x64x2x64xbf16>, %o : memref<3x64x4x64xbf16>, %lse : memref<3x4x64xf32>) -> (%dq : memref<3x64x4x64xbf16>, %dk : memref<3x64x2x64xbf16>, %dv : memref<3x64x2x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000 : i64, flops = 700 : i64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>, scale = 0.125 : f64}
    %tq = plan.view %all plus 0 : memref<3x64x512xbf16> to memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>
    plan.launch @negated(read %dq : memref<3x64x4x64xbf16>, write %tq : memref<3x64x4x64xbf16, strided<[32768, 512, 64, 1]>>) {bytes = 1000000 : i64, flops = 200 : i64, label = "negated", op_class = #hydra.op_class<elementwise>}
    plan.output "dk" = %dk : memref<3x64x2x64xbf16>
    plan.output "all" = %all : memref<3x64x512xbf16>
  }
}
