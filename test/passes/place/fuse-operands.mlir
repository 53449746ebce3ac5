// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 100000, features = ["bulk_copies"]>}' --hydra-fuse-operands | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 100000, features = ["bulk_copies"]>}' --hydra-fuse-operands --hydra-expand-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 100000>}' --hydra-fuse-operands | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --hydra-fuse-operands | FileCheck %s --check-prefix=NONE

// Without copies by multiprocessors, or on a CPU, nothing is marked.
// NONE-NOT: plan.computed

// The sum of a layer lies where the sum before it was, and the rows where the product was: the rows are in no memory, and the
// sum has bytes of its own, since other blocks still read the old one. So has the sum of the layer behind.
// CHECK-LABEL: plan.program @layers
// CHECK: plan.input "start" = %[[START:[^ ]*]]
// CHECK: %[[FIRST:.*]] = plan.buffer {{.*}} : memref<1x1x64xf32>
// CHECK: plan.launch @norm(read %{{.*}}, read %[[START]] : memref<1x1x64xf32>, read %{{.*}}, write %[[FIRST]] : memref<1x1x64xf32>, write %[[ROWS:[^ ]*]] : memref<1x1x64xbf16>) {plan.computed = false}
// CHECK: plan.matmul(%[[ROWS]]
// CHECK: %[[SECOND:.*]] = plan.buffer {{.*}} : memref<1x1x64xf32>
// CHECK: plan.launch @norm({{.*}}read %[[FIRST]] : memref<1x1x64xf32>, {{.*}}write %[[SECOND]] : memref<1x1x64xf32>, {{.*}}) {plan.computed = false}
// CHECK: plan.output "sum" = %[[SECOND]]

// The kernel has what the group reads and what else it writes as further arguments.
// KERNELS: plan.kernel @[[JOINED:few_rows_matmul_[0-9]+]] rows 0 grain 0 launch [8, 1, 1, 384, {{[0-9]+}}] source "{{.*}}(const bf16 * a0, bf16 * a1, const bf16 * a2, const float * a3, const float * a4, float * a5) { letLaterBegin(); fewRowsBulk<bf16, bf16, 1, 64, 64, 0, 64, 0, 256, {{[0-9]+}}, false, 96>(nullptr, a0, nullptr, a1, [&](bf16 *x) {{.*}}overTeam<false, 256, {{.*}}if (blockIdx.x == 0) {
// KERNELS-LABEL: plan.program @layers
// KERNELS-NOT: plan.launch @norm
// KERNELS: plan.launch @[[JOINED]](
// KERNELS-NOT: plan.launch @norm
// KERNELS: plan.launch @[[JOINED]](
// KERNELS-LABEL: plan.program @kept

// Rows that something else reads too are stored as well.
// CHECK-LABEL: plan.program @kept
// CHECK: plan.launch @norm({{.*}}) {plan.computed = true}

// Not where the matmul reads what the launch makes as its other operand too: the rows themselves, or what else is made.
// CHECK-LABEL: plan.program @gram
// CHECK-NOT: plan.computed

// Not where another step stands between, or where more rows are multiplied than a sweep has.
// CHECK-LABEL: plan.program @apart
// CHECK-NOT: plan.computed

// Attention over slots makes queries and keys, which nothing else reads: a norm and a rotation for queries, and two halves side by
// side for keys. A block computes those of its heads, one half of its threads the queries and the other the keys, once it has
// asked for what lies in slots.
// CHECK-LABEL: plan.program @text
// CHECK: plan.launch @headNorm({{.*}}) {plan.computed = false}
// CHECK: plan.launch @turn({{.*}}) {plan.computed = false}
// CHECK: plan.launch @halves({{.*}}) {plan.computed = false}
// KERNELS: plan.program @text
// KERNELS-NOT: plan.launch @{{headNorm|turn|halves}}
// KERNELS: plan.launch @cached_attention

// Not where something else reads one of them; what stands behind that can still be.
// CHECK-LABEL: plan.program @read
// CHECK: plan.launch @headNorm
// CHECK-NOT: plan.computed
// CHECK: plan.launch @turn
// CHECK-NOT: plan.computed
// CHECK: plan.launch @halves({{.*}}) {plan.computed = false}

// Not what makes values too, which attention reads from memory; what stands behind that can still be.
// CHECK-LABEL: plan.program @values
// CHECK: plan.launch @pair
// CHECK-NOT: plan.computed
// CHECK: plan.launch @headNorm({{.*}}) {plan.computed = false}
// CHECK: plan.launch @turn({{.*}}) {plan.computed = false}

// Not where rows of many tokens are multiplied.
// CHECK-LABEL: plan.program @prompt
// CHECK-NOT: plan.computed
plan.module @m {
  plan.kernel @headNorm rows 4 grain 1 [memref<1x1x4x16xbf16>, memref<16xf32>, memref<1x1x4x16xf32>] {
    %0 = plan.outer : tensor<1x1x4x16xbf16>
    %1 = plan.outer : tensor<16xf32>
    %2 = hydra.fused rows = [1, 1, 4] inner = [16] (%arg0 = %0, %arg1 = %1) : tensor<1x1x4x16xbf16>, tensor<16xf32> {
      %3 = hydra.cast %arg0 to = f32 : tensor<1x1x4x16xbf16>
      %y = hydra.rms_norm %3, %arg1 eps = 1.0e-05 : tensor<1x1x4x16xf32>, tensor<16xf32>
      hydra.yield %y : tensor<1x1x4x16xf32>
    }
  }
  plan.kernel @turn rows 1 grain 1 [memref<1x1x4x16xf32>, memref<1x1xf32>, memref<1x1x4x16xbf16>] {
    %0 = plan.outer : tensor<1x1x4x16xf32>
    %1 = plan.outer : tensor<1x1xf32>
    %2 = hydra.fused rows = [1, 1] inner = [4, 16] (%arg0 = %0, %arg1 = %1) : tensor<1x1x4x16xf32>, tensor<1x1xf32> {
      %3 = hydra.rope %arg0, %arg1 base = 10000.0 half_split : tensor<1x1x4x16xf32>, tensor<1x1xf32>
      %4 = hydra.cast %3 to = bf16 : tensor<1x1x4x16xf32>
      hydra.yield %4 : tensor<1x1x4x16xbf16>
    }
  }
  plan.kernel @halves rows 1 grain 1 [memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>] {
    %0 = plan.outer : tensor<1x1x2x8xbf16>
    %1 = plan.outer : tensor<1x1x2x8xbf16>
    %2:2 = hydra.fused rows = [1, 1] inner = [2, 8] (%arg0 = %0, %arg1 = %1) : tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16> {
      %3 = hydra.sub %arg0, %arg1 : tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>
      %4 = hydra.add %arg0, %arg1 : tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>
      hydra.yield %3, %4 : tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>
    }
  }
  plan.kernel @pair rows 1 grain 1 [memref<1x1x2x16xbf16>, memref<1x1x2x16xbf16>, memref<1x1x2x16xbf16>] {
    %0 = plan.outer : tensor<1x1x2x16xbf16>
    %1:2 = hydra.fused rows = [1, 1] inner = [2, 16] (%arg0 = %0) : tensor<1x1x2x16xbf16> {
      %2 = hydra.add %arg0, %arg0 : tensor<1x1x2x16xbf16>, tensor<1x1x2x16xbf16>
      %3 = hydra.neg %arg0 : tensor<1x1x2x16xbf16>
      hydra.yield %2, %3 : tensor<1x1x2x16xbf16>, tensor<1x1x2x16xbf16>
    }
  }
  plan.kernel @rowsOfPrompt rows 20 grain 20 [memref<1x20x2x16xbf16>, memref<1x20x2x16xbf16>] {
    %0 = plan.outer : tensor<1x20x2x16xbf16>
    %1 = hydra.fused rows = [1, 20] inner = [2, 16] (%arg0 = %0) : tensor<1x20x2x16xbf16> {
      %2 = hydra.add %arg0, %arg0 : tensor<1x20x2x16xbf16>, tensor<1x20x2x16xbf16>
      hydra.yield %2 : tensor<1x20x2x16xbf16>
    }
  }
  %keys = plan.buffer persistent param : memref<1x2x64x16xbf16>
  %values = plan.buffer persistent param : memref<1x2x64x16xbf16>
  %headScale = plan.buffer persistent param : memref<16xf32>
  plan.kernel @norm rows 1 grain 1 [memref<1x1x64xbf16>, memref<1x1x64xf32>, memref<64xf32>, memref<1x1x64xf32>, memref<1x1x64xbf16>] {
    %0 = plan.outer : tensor<1x1x64xbf16>
    %1 = plan.outer : tensor<1x1x64xf32>
    %2 = plan.outer : tensor<64xf32>
    %3:2 = hydra.fused rows = [1, 1] inner = [64] (%arg0 = %0, %arg1 = %1, %arg2 = %2) : tensor<1x1x64xbf16>, tensor<1x1x64xf32>, tensor<64xf32> {
      %4 = hydra.cast %arg0 to = f32 : tensor<1x1x64xbf16>
      %5 = hydra.add %arg1, %4 : tensor<1x1x64xf32>, tensor<1x1x64xf32>
      %y = hydra.rms_norm %5, %arg2 eps = 1.0e-05 : tensor<1x1x64xf32>, tensor<64xf32>
      %6 = hydra.cast %y to = bf16 : tensor<1x1x64xf32>
      hydra.yield %5, %6 : tensor<1x1x64xf32>, tensor<1x1x64xbf16>
    }
  }
  plan.kernel @both rows 8 grain 8 [memref<8x64xbf16>, memref<8x64xbf16>, memref<8x64xbf16>] {
    %0 = plan.outer : tensor<8x64xbf16>
    %1:2 = hydra.fused rows = [8] inner = [64] (%arg0 = %0) : tensor<8x64xbf16> {
      %2 = hydra.add %arg0, %arg0 : tensor<8x64xbf16>, tensor<8x64xbf16>
      %3 = hydra.neg %arg0 : tensor<8x64xbf16>
      hydra.yield %2, %3 : tensor<8x64xbf16>, tensor<8x64xbf16>
    }
  }
  plan.kernel @many rows 17 grain 17 [memref<17x64xf32>, memref<17x64xbf16>] {
    %0 = plan.outer : tensor<17x64xf32>
    %1 = hydra.fused rows = [17] inner = [64] (%arg0 = %0) : tensor<17x64xf32> {
      %2 = hydra.cast %arg0 to = bf16 : tensor<17x64xf32>
      hydra.yield %2 : tensor<17x64xbf16>
    }
  }
  %w = plan.buffer persistent param : memref<64x64xbf16>
  %scale = plan.buffer persistent param : memref<64xf32>
  plan.program @layers {
    %o = plan.buffer transient other : memref<1x1x64xbf16>
    plan.input "o" = %o values 0 : memref<1x1x64xbf16>
    %start = plan.buffer transient other : memref<1x1x64xf32>
    plan.input "start" = %start values 0 : memref<1x1x64xf32>
    %sum = plan.view %start plus 0 as other : memref<1x1x64xf32> to memref<1x1x64xf32>
    %rows = plan.view %o plus 0 as other : memref<1x1x64xbf16> to memref<1x1x64xbf16>
    plan.launch @norm(read %o : memref<1x1x64xbf16>, read %start : memref<1x1x64xf32>, read %scale : memref<64xf32>, write %sum : memref<1x1x64xf32>, write %rows : memref<1x1x64xbf16>)
    %p = plan.buffer transient other : memref<1x1x64xbf16>
    plan.matmul(%rows : memref<1x1x64xbf16>, %w : memref<64x64xbf16>) -> (%p : memref<1x1x64xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    %sum2 = plan.view %start plus 0 as other : memref<1x1x64xf32> to memref<1x1x64xf32>
    %rows2 = plan.view %p plus 0 as other : memref<1x1x64xbf16> to memref<1x1x64xbf16>
    plan.launch @norm(read %p : memref<1x1x64xbf16>, read %sum : memref<1x1x64xf32>, read %scale : memref<64xf32>, write %sum2 : memref<1x1x64xf32>, write %rows2 : memref<1x1x64xbf16>)
    %q = plan.buffer transient other : memref<1x1x64xbf16>
    plan.matmul(%rows2 : memref<1x1x64xbf16>, %w : memref<64x64xbf16>) -> (%q : memref<1x1x64xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "sum" = %sum2 : memref<1x1x64xf32>
    plan.output "q" = %q : memref<1x1x64xbf16>
  }
  plan.program @kept {
    %o = plan.buffer transient other : memref<1x1x64xbf16>
    plan.input "o" = %o values 0 : memref<1x1x64xbf16>
    %start = plan.buffer transient other : memref<1x1x64xf32>
    plan.input "start" = %start values 0 : memref<1x1x64xf32>
    %sum = plan.buffer transient other : memref<1x1x64xf32>
    %rows = plan.buffer transient other : memref<1x1x64xbf16>
    plan.launch @norm(read %o : memref<1x1x64xbf16>, read %start : memref<1x1x64xf32>, read %scale : memref<64xf32>, write %sum : memref<1x1x64xf32>, write %rows : memref<1x1x64xbf16>)
    %p = plan.buffer transient other : memref<1x1x64xbf16>
    plan.matmul(%rows : memref<1x1x64xbf16>, %w : memref<64x64xbf16>) -> (%p : memref<1x1x64xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "rows" = %rows : memref<1x1x64xbf16>
    plan.output "p" = %p : memref<1x1x64xbf16>
  }
  plan.program @gram {
    %x = plan.buffer transient other : memref<8x64xbf16>
    plan.input "x" = %x values 0 : memref<8x64xbf16>
    %y = plan.buffer transient other : memref<8x64xbf16>
    plan.input "y" = %y values 0 : memref<8x64xbf16>
    %z = plan.buffer transient other : memref<8x64xbf16>
    %rows = plan.view %x plus 0 as other : memref<8x64xbf16> to memref<8x64xbf16>
    plan.launch @both(read %x : memref<8x64xbf16>, write %rows : memref<8x64xbf16>, write %z : memref<8x64xbf16>)
    %p = plan.buffer transient other : memref<8x8xbf16>
    plan.matmul(%rows : memref<8x64xbf16>, %rows : memref<8x64xbf16>) -> (%p : memref<8x8xbf16>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %negated = plan.view %y plus 0 as other : memref<8x64xbf16> to memref<8x64xbf16>
    plan.launch @both(read %y : memref<8x64xbf16>, write %z : memref<8x64xbf16>, write %negated : memref<8x64xbf16>)
    %q = plan.buffer transient other : memref<8x8xbf16>
    plan.matmul(%z : memref<8x64xbf16>, %negated : memref<8x64xbf16>) -> (%q : memref<8x8xbf16>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.output "p" = %p : memref<8x8xbf16>
    plan.output "q" = %q : memref<8x8xbf16>
  }
  plan.program @apart {
    %o = plan.buffer transient other : memref<1x1x64xbf16>
    plan.input "o" = %o values 0 : memref<1x1x64xbf16>
    %start = plan.buffer transient other : memref<1x1x64xf32>
    plan.input "start" = %start values 0 : memref<1x1x64xf32>
    %sum = plan.buffer transient other : memref<1x1x64xf32>
    %rows = plan.buffer transient other : memref<1x1x64xbf16>
    plan.launch @norm(read %o : memref<1x1x64xbf16>, read %start : memref<1x1x64xf32>, read %scale : memref<64xf32>, write %sum : memref<1x1x64xf32>, write %rows : memref<1x1x64xbf16>)
    %x = plan.buffer transient other : memref<17x64xf32>
    plan.fill 1.0 -> (%x : memref<17x64xf32>) {label = "fill"}
    %p = plan.buffer transient other : memref<1x1x64xbf16>
    plan.matmul(%rows : memref<1x1x64xbf16>, %w : memref<64x64xbf16>) -> (%p : memref<1x1x64xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    %narrow = plan.buffer transient other : memref<17x64xbf16>
    plan.launch @many(read %x : memref<17x64xf32>, write %narrow : memref<17x64xbf16>)
    %z = plan.buffer transient other : memref<17x64xbf16>
    plan.matmul(%narrow : memref<17x64xbf16>, %w : memref<64x64xbf16>) -> (%z : memref<17x64xbf16>) {transpose_b, label = "linear", op_class = #hydra.op_class<gemm>}
    plan.output "p" = %p : memref<1x1x64xbf16>
    plan.output "z" = %z : memref<17x64xbf16>
  }
  plan.program @text {
    %x = plan.buffer transient other : memref<1x1x128xbf16>
    plan.input "x" = %x values 0 : memref<1x1x128xbf16>
    %position = plan.buffer transient other : memref<1xf32>
    plan.input "position" = %position values 0 : memref<1xf32>
    %turns = plan.buffer transient other : memref<1x1xf32>
    plan.input "turns" = %turns values 0 : memref<1x1xf32>
    %q0 = plan.view %x plus 0 : memref<1x1x128xbf16> to memref<1x1x4x16xbf16>
    %normed = plan.buffer transient other : memref<1x1x4x16xf32>
    plan.launch @headNorm(read %q0 : memref<1x1x4x16xbf16>, read %headScale : memref<16xf32>, write %normed : memref<1x1x4x16xf32>)
    %q = plan.buffer transient other : memref<1x1x4x16xbf16>
    plan.launch @turn(read %normed : memref<1x1x4x16xf32>, read %turns : memref<1x1xf32>, write %q : memref<1x1x4x16xbf16>)
    %k0 = plan.view %x plus 64 : memref<1x1x128xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    %k1 = plan.view %x plus 72 : memref<1x1x128xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    %k = plan.buffer transient other : memref<1x1x2x16xbf16>
    %k2 = plan.view %k plus 0 as other : memref<1x1x2x16xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    %k3 = plan.view %k plus 8 as other : memref<1x1x2x16xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    plan.launch @halves(read %k0 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, read %k1 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, write %k2 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, write %k3 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>)
    %v = plan.view %x plus 96 : memref<1x1x128xbf16> to memref<1x1x2x16xbf16>
    %o = plan.buffer transient other : memref<1x1x4x16xbf16>
    plan.cached_attention(%q : memref<1x1x4x16xbf16>, %k : memref<1x1x2x16xbf16>, %v : memref<1x1x2x16xbf16>, %position : memref<1xf32>) -> (%o : memref<1x1x4x16xbf16>, %keys : memref<1x2x64x16xbf16>, %values : memref<1x2x64x16xbf16>) {label = "cached_attention", op_class = #hydra.op_class<attention>, scale = 0.25 : f64}
    plan.output "o" = %o : memref<1x1x4x16xbf16>
  }
  plan.program @read {
    %x = plan.buffer transient other : memref<1x1x128xbf16>
    plan.input "x" = %x values 0 : memref<1x1x128xbf16>
    %position = plan.buffer transient other : memref<1xf32>
    plan.input "position" = %position values 0 : memref<1xf32>
    %turns = plan.buffer transient other : memref<1x1xf32>
    plan.input "turns" = %turns values 0 : memref<1x1xf32>
    %q0 = plan.view %x plus 0 : memref<1x1x128xbf16> to memref<1x1x4x16xbf16>
    %normed = plan.buffer transient other : memref<1x1x4x16xf32>
    plan.launch @headNorm(read %q0 : memref<1x1x4x16xbf16>, read %headScale : memref<16xf32>, write %normed : memref<1x1x4x16xf32>)
    %q = plan.buffer transient other : memref<1x1x4x16xbf16>
    plan.launch @turn(read %normed : memref<1x1x4x16xf32>, read %turns : memref<1x1xf32>, write %q : memref<1x1x4x16xbf16>)
    %k0 = plan.view %x plus 64 : memref<1x1x128xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    %k1 = plan.view %x plus 72 : memref<1x1x128xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    %k = plan.buffer transient other : memref<1x1x2x16xbf16>
    %k2 = plan.view %k plus 0 as other : memref<1x1x2x16xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    %k3 = plan.view %k plus 8 as other : memref<1x1x2x16xbf16> to memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>
    plan.launch @halves(read %k0 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, read %k1 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, write %k2 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>, write %k3 : memref<1x1x2x8xbf16, strided<[32, 32, 16, 1]>>)
    %v = plan.view %x plus 96 : memref<1x1x128xbf16> to memref<1x1x2x16xbf16>
    %o = plan.buffer transient other : memref<1x1x4x16xbf16>
    plan.cached_attention(%q : memref<1x1x4x16xbf16>, %k : memref<1x1x2x16xbf16>, %v : memref<1x1x2x16xbf16>, %position : memref<1xf32>) -> (%o : memref<1x1x4x16xbf16>, %keys : memref<1x2x64x16xbf16>, %values : memref<1x2x64x16xbf16>) {label = "cached_attention", op_class = #hydra.op_class<attention>, scale = 0.25 : f64}
    plan.output "o" = %o : memref<1x1x4x16xbf16>
    plan.output "q" = %q : memref<1x1x4x16xbf16>
  }
  plan.program @values {
    %x = plan.buffer transient other : memref<1x1x128xbf16>
    plan.input "x" = %x values 0 : memref<1x1x128xbf16>
    %position = plan.buffer transient other : memref<1xf32>
    plan.input "position" = %position values 0 : memref<1xf32>
    %turns = plan.buffer transient other : memref<1x1xf32>
    plan.input "turns" = %turns values 0 : memref<1x1xf32>
    %kv = plan.view %x plus 64 : memref<1x1x128xbf16> to memref<1x1x2x16xbf16>
    %k = plan.buffer transient other : memref<1x1x2x16xbf16>
    %v = plan.buffer transient other : memref<1x1x2x16xbf16>
    plan.launch @pair(read %kv : memref<1x1x2x16xbf16>, write %k : memref<1x1x2x16xbf16>, write %v : memref<1x1x2x16xbf16>)
    %q0 = plan.view %x plus 0 : memref<1x1x128xbf16> to memref<1x1x4x16xbf16>
    %normed = plan.buffer transient other : memref<1x1x4x16xf32>
    plan.launch @headNorm(read %q0 : memref<1x1x4x16xbf16>, read %headScale : memref<16xf32>, write %normed : memref<1x1x4x16xf32>)
    %q = plan.buffer transient other : memref<1x1x4x16xbf16>
    plan.launch @turn(read %normed : memref<1x1x4x16xf32>, read %turns : memref<1x1xf32>, write %q : memref<1x1x4x16xbf16>)
    %o = plan.buffer transient other : memref<1x1x4x16xbf16>
    plan.cached_attention(%q : memref<1x1x4x16xbf16>, %k : memref<1x1x2x16xbf16>, %v : memref<1x1x2x16xbf16>, %position : memref<1xf32>) -> (%o : memref<1x1x4x16xbf16>, %keys : memref<1x2x64x16xbf16>, %values : memref<1x2x64x16xbf16>) {label = "cached_attention", op_class = #hydra.op_class<attention>, scale = 0.25 : f64}
    plan.output "o" = %o : memref<1x1x4x16xbf16>
  }
  plan.program @prompt {
    %x = plan.buffer transient other : memref<1x20x2x16xbf16>
    plan.input "x" = %x values 0 : memref<1x20x2x16xbf16>
    %position = plan.buffer transient other : memref<1xf32>
    plan.input "position" = %position values 0 : memref<1xf32>
    %q = plan.buffer transient other : memref<1x20x2x16xbf16>
    plan.launch @rowsOfPrompt(read %x : memref<1x20x2x16xbf16>, write %q : memref<1x20x2x16xbf16>)
    %o = plan.buffer transient other : memref<1x20x2x16xbf16>
    plan.cached_attention(%q : memref<1x20x2x16xbf16>, %x : memref<1x20x2x16xbf16>, %x : memref<1x20x2x16xbf16>, %position : memref<1xf32>) -> (%o : memref<1x20x2x16xbf16>, %keys : memref<1x2x64x16xbf16>, %values : memref<1x2x64x16xbf16>) {label = "cached_attention", op_class = #hydra.op_class<attention>, scale = 0.25 : f64}
    plan.output "o" = %o : memref<1x20x2x16xbf16>
  }
}
