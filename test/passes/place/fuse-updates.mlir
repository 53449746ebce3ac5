// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 2, block_shared = 232448, features = ["wgmma"]>}' --hydra-fuse-updates | FileCheck %s
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 2, block_shared = 232448, features = ["wgmma"]>}' --hydra-fuse-updates --hydra-expand-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 2, block_shared = 166912>}' --hydra-fuse-updates | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --hydra-fuse-updates | FileCheck %s --check-prefix=NONE

// Without matmuls of warpgroups, or on a CPU, nothing is marked.
// NONE-NOT: plan.updates

// A gradient whose rows are two parameters. The matmul waits for the last of the launches that read it; the fill, which touches
// nothing of theirs, is in front of all then.
// CHECK-LABEL: plan.program @train
// CHECK: plan.fill
// CHECK: plan.matmul({{.*}}) -> (%[[DW:[^ ]*]] : memref<256x64xf32>) {{.*}}plan.updates = 2 : i64
// CHECK-NEXT: plan.launch @sgd(
// CHECK-NEXT: plan.launch @sgd(

// One kernel, which has what the groups read and write as arguments, in the order of the gradient's rows, and behind them memory for its
// maps; learning rate and guard once.
// KERNELS: plan.kernel @[[UPDATE:update_matmul_[0-9]+]] rows 0 grain 0 launch [2, 1, 1, 384, {{[0-9]+}}] source "{{.*}}(const bf16 * a0, const bf16 * a1, const float * a2, const unsigned char * a3, const float * a4, const float * a5, float * a6, float * a7, bf16 * a8, bf16 * a9, unsigned char * a10) { waitForEarlier(); const hopper_update::Tensors<2, 1, 1, 1, 0, 0, 1, bf16, e4m3, float> tensors = {{[{][{]}}128, 256}, {{[{][{]}}a4}, {a5}}, {{[{][{]}}a6}, {a7}}, {{[{][{]}}a8}, {a9}}, {{[{][{]}}}, {}}, {{[{][{]}}}, {}}, nullptr, nullptr};
// KERNELS-SAME: updateHopper<256, 64, 512, 128,
// KERNELS: plan.kernel @update_matmul_{{[0-9]+}} rows 0 grain 0 launch [2, 1, 1, 384, {{[0-9]+}}] source "{{.*}}hopper_update::Tensors<1, 0, 0, 2, 0, 0, 1, bf16, e4m3, float, 1, 0, true> tensors = {{[{][{]}}512}, {{.*}}, {128, 128, 128}};
// KERNELS-SAME: updateHopper<512, 64, 96, 128, {{[0-9]+}}, {{[0-9]+}}, true, false>
// KERNELS-SAME: rounded<bf16>(float(sum))
// KERNELS: plan.kernel @[[COLUMNS:update_matmul_[0-9]+]] rows 0 grain 0 launch [2, 1, 1, 384, {{[0-9]+}}] source "{{.*}}updateHopper<192, 128, 512, 128, {{[0-9]+}}, {{[0-9]+}}, false, true>
// KERNELS-LABEL: plan.program @train
// KERNELS-NOT: plan.matmul
// KERNELS-NOT: plan.launch @sgd
// KERNELS: plan.launch @[[UPDATE]](read %{{.*}} : memref<512x256xbf16>, read %{{.*}} : memref<512x64xbf16>, {{.*}}op_class = #hydra.op_class<gemm>
// KERNELS-NOT: plan.launch @sgd
// KERNELS-LABEL: plan.program @watched

// Not where something else reads the gradient: a norm, or who asked for it.
// CHECK-LABEL: plan.program @watched
// CHECK-NOT: plan.updates

// Nor where what the matmul reads is written over before the update.
// CHECK-LABEL: plan.program @overwritten
// CHECK-NOT: plan.updates

// Nor where an update writes over numbers that are read elsewhere in the gradient's rows.
// CHECK-LABEL: plan.program @shifted
// CHECK-NOT: plan.updates

// Nor where sums are added to what is there.
// CHECK-LABEL: plan.program @accumulated
// CHECK-NOT: plan.updates

// What reads two gradients, as of a weight that is used twice, takes one from registers; the other is stored.
// CHECK-LABEL: plan.program @twice
// CHECK-NOT: plan.updates
// CHECK: plan.matmul({{.*}}) -> (%[[SECOND:[^ ]*]] : memref<256x64xf32>) {label = "matmul", op_class = #hydra.op_class<gemm>, transpose_a}
// CHECK-NEXT: plan.matmul({{.*}}) -> (%[[FIRST:[^ ]*]] : memref<256x64xf32>) {{.*}}plan.updates = 1 : i64
// CHECK-NEXT: plan.launch @sum({{.*}}read %[[FIRST]] : memref<256x64xf32>, read %[[SECOND]] : memref<256x64xf32>
// KERNELS-LABEL: plan.program @twice
// KERNELS: plan.matmul({{.*}}) -> (%[[SECOND:[^ ]*]] : memref<256x64xf32>)
// KERNELS: plan.launch @update_matmul_{{[0-9]+}}({{.*}}read %[[SECOND]] : memref<256x64xf32>
// KERNELS-NOT: plan.launch @sum

// Of 8 bits, whose sums lie along the rows of both operands, with a scale each. The group works on rows of 256 numbers, finds the largest of
// each and rounds to 8 bits; what is found lies in memory that the program begins with zeros: a number for each row of the group, and one
// for each 128 rows of the matrix.
// CHECK-LABEL: plan.program @bytes
// CHECK: plan.matmul({{.*}}scales{{.*}}) -> ({{.*}}memref<192x128xf32>) {{.*}}plan.updates = 1 : i64
// CHECK-NEXT: plan.launch @kept(
// KERNELS-LABEL: plan.program @bytes
// KERNELS: plan.launch @fill{{.*}} : memref<98xi32>
// KERNELS: plan.launch @update_matmul_{{[0-9]+}}(read %{{.*}} : memref<192x512xf8E5M2>, read %{{.*}} : memref<128x512xf8E4M3FN>, {{.*}}write %{{.*}} : memref<96x256xf8E4M3FN>, write %{{.*}} : memref<96xbf16>, {{.*}}update %{{.*}} : memref<98xi32>)
// KERNELS-NOT: plan.launch @kept(
// KERNELS-LABEL: plan.program @uneven

// Not where 64 rows of the matrix are no whole rows of the group, or something else is made of the largest number.
// CHECK-LABEL: plan.program @uneven
// CHECK-NOT: plan.updates
// CHECK-LABEL: plan.program @divided
// CHECK-NOT: plan.updates

// Nor is it a gradient alone: what a matmul makes of a gradient's derivative stays in registers too. Here the weight it reads is written
// over before the group, which comes early then, with the views that it names. What is read and written are halves of rows of 128; sums
// are rounded first, as they were stored.
// CHECK-LABEL: plan.program @derivative
// CHECK: plan.view %{{.*}} plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
// CHECK: plan.matmul(%{{[^ ]*}} : memref<512x96xbf16>, %[[WEIGHT:[^ ]*]] : memref<96x64xbf16>) -> ({{.*}}plan.updates = 1 : i64
// CHECK-NEXT: plan.launch @gated(
// CHECK: plan.fill 1.000000e+00 -> (%[[WEIGHT]]
// KERNELS-LABEL: plan.program @derivative
// KERNELS-NOT: plan.matmul
// KERNELS: plan.launch @update_matmul_{{[0-9]+}}(read %{{.*}} : memref<512x96xbf16>, read %{{.*}} : memref<96x64xbf16>, write %{{.*}} : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %{{.*}} : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, read %{{.*}} : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write

// Not where what the group reads is made behind the matmul, and the matmul cannot wait.
// CHECK-LABEL: plan.program @between
// CHECK-NOT: plan.updates

// The gradient was transposed for a library, which the kernel does without: it reads the columns that the copy read.
// CHECK-LABEL: plan.program @columns
// CHECK-NOT: plan.copy
// CHECK: %[[DY:[^ ]*]] = plan.view %{{.*}} plus 0 : memref<192x512xf8E5M2, strided<[1, 192]>> to memref<512x192xf8E5M2>
// CHECK-NOT: plan.copy
// CHECK: plan.matmul(%[[DY]] : memref<512x192xf8E5M2>, %{{.*}} : memref<128x512xf8E4M3FN>, scales {{.*}}plan.updates = 1 : i64, transpose_a, transpose_b}
// KERNELS-LABEL: plan.program @columns
// KERNELS: plan.launch @[[COLUMNS]](read %{{.*}} : memref<512x192xf8E5M2>, read %{{.*}} : memref<128x512xf8E4M3FN>,

// Something else reads the copy too.
// CHECK-LABEL: plan.program @columns_read
// CHECK: plan.copy
// CHECK: plan.matmul({{.*}} : memref<192x512xf8E5M2>, {{.*}}plan.updates = 1 : i64, transpose_b}

// The second operand is the copy too.
// CHECK-LABEL: plan.program @columns_twice
// CHECK: plan.copy
// CHECK: plan.matmul(%[[LINES:[^ ]*]] : memref<128x512xf8E5M2>, %[[LINES]] : memref<128x512xf8E5M2>, {{.*}}plan.updates = 1 : i64, transpose_b}

// What was copied is written over before the matmul.
// CHECK-LABEL: plan.program @columns_written
// CHECK: plan.copy
// CHECK: plan.matmul({{.*}} : memref<192x512xf8E5M2>, {{.*}}plan.updates = 1 : i64, transpose_b}
plan.module @m {
  plan.kernel @sgd rows 128 grain 1 [memref<128x64xf32>, memref<128x64xf32>, memref<f32>, memref<i1>, memref<128x64xf32>, memref<128x64xbf16>] {
    %0 = plan.outer : tensor<128x64xf32>
    %1 = plan.outer : tensor<128x64xf32>
    %2 = plan.outer : tensor<f32>
    %3 = plan.outer : tensor<i1>
    %4:2 = hydra.fused rows = [128] inner = [64] (%arg0 = %0, %arg1 = %1, %arg2 = %2, %arg3 = %3) : tensor<128x64xf32>, tensor<128x64xf32>, tensor<f32>, tensor<i1> {
      %9 = hydra.broadcast %arg2 shape = [128, 64] : tensor<f32>
      %5 = hydra.mul %arg1, %9 : tensor<128x64xf32>, tensor<128x64xf32>
      %6 = hydra.sub %arg0, %5 : tensor<128x64xf32>, tensor<128x64xf32>
      %7 = hydra.guard %arg3, %6, %arg0 : tensor<i1>, tensor<128x64xf32>, tensor<128x64xf32>
      %8 = hydra.cast %7 to = bf16 : tensor<128x64xf32>
      hydra.yield %7, %8 : tensor<128x64xf32>, tensor<128x64xbf16>
    }
  }
  plan.kernel @whole rows 256 grain 1 [memref<256x64xf32>, memref<256x64xf32>, memref<256x64xf32>] {
    %0 = plan.outer : tensor<256x64xf32>
    %1 = plan.outer : tensor<256x64xf32>
    %2 = hydra.fused rows = [256] inner = [64] (%arg0 = %0, %arg1 = %1) : tensor<256x64xf32>, tensor<256x64xf32> {
      %3 = hydra.sub %arg0, %arg1 : tensor<256x64xf32>, tensor<256x64xf32>
      hydra.yield %3 : tensor<256x64xf32>
    }
  }
  plan.kernel @sum rows 256 grain 1 [memref<256x64xf32>, memref<256x64xf32>, memref<256x64xf32>, memref<256x64xf32>] {
    %0 = plan.outer : tensor<256x64xf32>
    %1 = plan.outer : tensor<256x64xf32>
    %2 = plan.outer : tensor<256x64xf32>
    %3 = hydra.fused rows = [256] inner = [64] (%arg0 = %0, %arg1 = %1, %arg2 = %2) : tensor<256x64xf32>, tensor<256x64xf32>, tensor<256x64xf32> {
      %4 = hydra.add %arg1, %arg2 : tensor<256x64xf32>, tensor<256x64xf32>
      %5 = hydra.sub %arg0, %4 : tensor<256x64xf32>, tensor<256x64xf32>
      hydra.yield %5 : tensor<256x64xf32>
    }
  }
  plan.kernel @kept rows 96 grain 1 [memref<96x256xf32>, memref<96x256xf32>, memref<f32>, memref<96x256xf32>, memref<96xbf16>, memref<96x256xf8E4M3FN>] {
    %0 = plan.outer : tensor<96x256xf32>
    %1 = plan.outer : tensor<96x256xf32>
    %2 = plan.outer : tensor<f32>
    %3:3 = hydra.fused rows = [96] inner = [256] (%arg0 = %0, %arg1 = %1, %arg2 = %2) : tensor<96x256xf32>, tensor<96x256xf32>, tensor<f32> {
      %4 = hydra.sub %arg0, %arg1 : tensor<96x256xf32>, tensor<96x256xf32>
      %5 = hydra.cast %4 to = bf16 : tensor<96x256xf32>
      %6 = hydra.neg %5 : tensor<96x256xbf16>
      %7 = hydra.max %5, %6 : tensor<96x256xbf16>, tensor<96x256xbf16>
      %8 = hydra.reduce_max %7 axes = [1] : tensor<96x256xbf16>
      %9 = hydra.quantize %5, %arg2 format = f8E4M3FN : tensor<96x256xbf16>, tensor<f32>
      hydra.yield %4, %8, %9 : tensor<96x256xf32>, tensor<96xbf16>, tensor<96x256xf8E4M3FN>
    }
  }
  plan.kernel @kept_of_384 rows 64 grain 1 [memref<64x384xf32>, memref<64x384xf32>, memref<f32>, memref<64x384xf32>, memref<64xbf16>, memref<64x384xf8E4M3FN>] {
    %0 = plan.outer : tensor<64x384xf32>
    %1 = plan.outer : tensor<64x384xf32>
    %2 = plan.outer : tensor<f32>
    %3:3 = hydra.fused rows = [64] inner = [384] (%arg0 = %0, %arg1 = %1, %arg2 = %2) : tensor<64x384xf32>, tensor<64x384xf32>, tensor<f32> {
      %4 = hydra.sub %arg0, %arg1 : tensor<64x384xf32>, tensor<64x384xf32>
      %5 = hydra.cast %4 to = bf16 : tensor<64x384xf32>
      %6 = hydra.neg %5 : tensor<64x384xbf16>
      %7 = hydra.max %5, %6 : tensor<64x384xbf16>, tensor<64x384xbf16>
      %8 = hydra.reduce_max %7 axes = [1] : tensor<64x384xbf16>
      %9 = hydra.quantize %5, %arg2 format = f8E4M3FN : tensor<64x384xbf16>, tensor<f32>
      hydra.yield %4, %8, %9 : tensor<64x384xf32>, tensor<64xbf16>, tensor<64x384xf8E4M3FN>
    }
  }
  plan.kernel @negated rows 96 grain 1 [memref<96x256xf32>, memref<96x256xf32>, memref<f32>, memref<96x256xf32>, memref<96xbf16>, memref<96x256xf8E4M3FN>] {
    %0 = plan.outer : tensor<96x256xf32>
    %1 = plan.outer : tensor<96x256xf32>
    %2 = plan.outer : tensor<f32>
    %3:3 = hydra.fused rows = [96] inner = [256] (%arg0 = %0, %arg1 = %1, %arg2 = %2) : tensor<96x256xf32>, tensor<96x256xf32>, tensor<f32> {
      %4 = hydra.sub %arg0, %arg1 : tensor<96x256xf32>, tensor<96x256xf32>
      %5 = hydra.cast %4 to = bf16 : tensor<96x256xf32>
      %6 = hydra.neg %5 : tensor<96x256xbf16>
      %7 = hydra.max %5, %6 : tensor<96x256xbf16>, tensor<96x256xbf16>
      %8 = hydra.reduce_max %7 axes = [1] : tensor<96x256xbf16>
      %10 = hydra.neg %8 : tensor<96xbf16>
      %9 = hydra.quantize %5, %arg2 format = f8E4M3FN : tensor<96x256xbf16>, tensor<f32>
      hydra.yield %4, %10, %9 : tensor<96x256xf32>, tensor<96xbf16>, tensor<96x256xf8E4M3FN>
    }
  }
  plan.kernel @gated rows 512 grain 1 [memref<4x128x64xbf16>, memref<4x128x64xbf16, strided<[16384, 128, 1]>>, memref<4x128x64xbf16, strided<[16384, 128, 1]>>, memref<4x128x64xbf16, strided<[16384, 128, 1]>>] {
    %0 = plan.outer : tensor<4x128x64xbf16>
    %1 = plan.outer : tensor<4x128x64xbf16>
    %2:2 = hydra.fused rows = [4, 128] inner = [64] (%arg0 = %0, %arg1 = %1) : tensor<4x128x64xbf16>, tensor<4x128x64xbf16> {
      %3 = hydra.cast %arg0 to = f32 : tensor<4x128x64xbf16>
      %4 = hydra.cast %arg1 to = f32 : tensor<4x128x64xbf16>
      %5 = hydra.mul %3, %4 : tensor<4x128x64xf32>, tensor<4x128x64xf32>
      %6 = hydra.cast %5 to = bf16 : tensor<4x128x64xf32>
      %7 = hydra.silu %4 : tensor<4x128x64xf32>
      %8 = hydra.mul %3, %7 : tensor<4x128x64xf32>, tensor<4x128x64xf32>
      %9 = hydra.cast %8 to = bf16 : tensor<4x128x64xf32>
      hydra.yield %6, %9 : tensor<4x128x64xbf16>, tensor<4x128x64xbf16>
    }
  }
  %gate = plan.buffer persistent param : memref<128x64xf32>
  %up = plan.buffer persistent param : memref<128x64xf32>
  %both = plan.buffer persistent param : memref<256x64xbf16>
  %w = plan.buffer persistent param : memref<257x64xf32>
  %gate16 = plan.view %both plus 0 : memref<256x64xbf16> to memref<128x64xbf16>
  %up16 = plan.view %both plus 8192 : memref<256x64xbf16> to memref<128x64xbf16>
  %w8 = plan.buffer persistent param : memref<192x128xf32>
  %lr = plan.buffer persistent other : memref<f32>
  %ok = plan.buffer persistent other : memref<i1>
  plan.program @train {
    %dy = plan.buffer transient other : memref<512x256xbf16>
    plan.input "dy" = %dy values 0 : memref<512x256xbf16>
    %x = plan.buffer transient other : memref<512x64xbf16>
    plan.input "x" = %x values 0 : memref<512x64xbf16>
    %dw = plan.buffer transient grad : memref<256x64xf32>
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%dw : memref<256x64xf32>) {transpose_a, label = "matmul", op_class = #hydra.op_class<gemm>}
    %high = plan.view %dw plus 8192 : memref<256x64xf32> to memref<128x64xf32>
    plan.launch @sgd(read %up : memref<128x64xf32>, read %high : memref<128x64xf32>, read %lr : memref<f32>, read %ok : memref<i1>, write %up : memref<128x64xf32>, write %up16 : memref<128x64xbf16>)
    %other = plan.buffer transient other : memref<16xf32>
    plan.fill 1.0 -> (%other : memref<16xf32>) {label = "fill"}
    plan.output "other" = %other : memref<16xf32>
    %low = plan.view %dw plus 0 : memref<256x64xf32> to memref<128x64xf32>
    plan.launch @sgd(read %gate : memref<128x64xf32>, read %low : memref<128x64xf32>, read %lr : memref<f32>, read %ok : memref<i1>, write %gate : memref<128x64xf32>, write %gate16 : memref<128x64xbf16>)
  }
  plan.program @watched {
    %dy = plan.buffer transient other : memref<512x256xbf16>
    plan.input "dy" = %dy values 0 : memref<512x256xbf16>
    %x = plan.buffer transient other : memref<512x64xbf16>
    plan.input "x" = %x values 0 : memref<512x64xbf16>
    %dw = plan.buffer transient grad : memref<256x64xf32>
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%dw : memref<256x64xf32>) {transpose_a, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w plus 0 : memref<257x64xf32> to memref<256x64xf32>
    plan.launch @whole(read %p : memref<256x64xf32>, read %dw : memref<256x64xf32>, write %p : memref<256x64xf32>)
    plan.output "dw" = %dw : memref<256x64xf32>
  }
  plan.program @overwritten {
    %dy = plan.buffer transient other : memref<512x256xbf16>
    plan.input "dy" = %dy values 0 : memref<512x256xbf16>
    %x = plan.buffer transient other : memref<512x64xbf16>
    plan.input "x" = %x values 0 : memref<512x64xbf16>
    %dw = plan.buffer transient grad : memref<256x64xf32>
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%dw : memref<256x64xf32>) {transpose_a, label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.fill 1.0 -> (%x : memref<512x64xbf16>) {label = "fill"}
    %p = plan.view %w plus 0 : memref<257x64xf32> to memref<256x64xf32>
    plan.launch @whole(read %p : memref<256x64xf32>, read %dw : memref<256x64xf32>, write %p : memref<256x64xf32>)
    plan.output "x" = %x : memref<512x64xbf16>
  }
  plan.program @shifted {
    %dy = plan.buffer transient other : memref<512x256xbf16>
    plan.input "dy" = %dy values 0 : memref<512x256xbf16>
    %x = plan.buffer transient other : memref<512x64xbf16>
    plan.input "x" = %x values 0 : memref<512x64xbf16>
    %dw = plan.buffer transient grad : memref<256x64xf32>
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%dw : memref<256x64xf32>) {transpose_a, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w plus 0 : memref<257x64xf32> to memref<256x64xf32>
    %q = plan.view %w plus 64 : memref<257x64xf32> to memref<256x64xf32>
    plan.launch @whole(read %p : memref<256x64xf32>, read %dw : memref<256x64xf32>, write %q : memref<256x64xf32>)
  }
  plan.program @accumulated {
    %dy = plan.buffer transient other : memref<512x256xbf16>
    plan.input "dy" = %dy values 0 : memref<512x256xbf16>
    %x = plan.buffer transient other : memref<512x64xbf16>
    plan.input "x" = %x values 0 : memref<512x64xbf16>
    %dw = plan.buffer transient grad : memref<256x64xf32>
    plan.fill 0.0 -> (%dw : memref<256x64xf32>) {label = "fill"}
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%dw : memref<256x64xf32>) {transpose_a, accumulate, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w plus 0 : memref<257x64xf32> to memref<256x64xf32>
    plan.launch @whole(read %p : memref<256x64xf32>, read %dw : memref<256x64xf32>, write %p : memref<256x64xf32>)
  }
  plan.program @twice {
    %p = plan.view %w plus 0 : memref<257x64xf32> to memref<256x64xf32>
    %dy = plan.buffer transient other : memref<512x256xbf16>
    plan.input "dy" = %dy values 0 : memref<512x256xbf16>
    %x = plan.buffer transient other : memref<512x64xbf16>
    plan.input "x" = %x values 0 : memref<512x64xbf16>
    %first = plan.buffer transient grad : memref<256x64xf32>
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%first : memref<256x64xf32>) {transpose_a, label = "matmul", op_class = #hydra.op_class<gemm>}
    %second = plan.buffer transient grad : memref<256x64xf32>
    plan.matmul(%dy : memref<512x256xbf16>, %x : memref<512x64xbf16>) -> (%second : memref<256x64xf32>) {transpose_a, label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.launch @sum(read %p : memref<256x64xf32>, read %first : memref<256x64xf32>, read %second : memref<256x64xf32>, write %p : memref<256x64xf32>)
  }
  plan.program @bytes {
    %dy = plan.buffer transient other : memref<192x512xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<192x512xf8E5M2>
    %x = plan.buffer transient other : memref<128x512xf8E4M3FN>
    plan.input "x" = %x values 0 : memref<128x512xf8E4M3FN>
    %dw = plan.buffer transient grad : memref<192x128xf32>
    plan.matmul(%dy : memref<192x512xf8E5M2>, %x : memref<128x512xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<192x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w8 plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %g = plan.view %dw plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %most = plan.buffer transient other : memref<96xbf16>
    %q = plan.buffer transient other : memref<96x256xf8E4M3FN>
    plan.launch @kept(read %p : memref<96x256xf32>, read %g : memref<96x256xf32>, read %lr : memref<f32>, write %p : memref<96x256xf32>, write %most : memref<96xbf16>, write %q : memref<96x256xf8E4M3FN>)
    plan.output "most" = %most : memref<96xbf16>
    plan.output "q" = %q : memref<96x256xf8E4M3FN>
  }
  plan.program @uneven {
    %dy = plan.buffer transient other : memref<192x512xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<192x512xf8E5M2>
    %x = plan.buffer transient other : memref<128x512xf8E4M3FN>
    plan.input "x" = %x values 0 : memref<128x512xf8E4M3FN>
    %dw = plan.buffer transient grad : memref<192x128xf32>
    plan.matmul(%dy : memref<192x512xf8E5M2>, %x : memref<128x512xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<192x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w8 plus 0 : memref<192x128xf32> to memref<64x384xf32>
    %g = plan.view %dw plus 0 : memref<192x128xf32> to memref<64x384xf32>
    %most = plan.buffer transient other : memref<64xbf16>
    %q = plan.buffer transient other : memref<64x384xf8E4M3FN>
    plan.launch @kept_of_384(read %p : memref<64x384xf32>, read %g : memref<64x384xf32>, read %lr : memref<f32>, write %p : memref<64x384xf32>, write %most : memref<64xbf16>, write %q : memref<64x384xf8E4M3FN>)
    plan.output "most" = %most : memref<64xbf16>
    plan.output "q" = %q : memref<64x384xf8E4M3FN>
  }
  plan.program @divided {
    %dy = plan.buffer transient other : memref<192x512xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<192x512xf8E5M2>
    %x = plan.buffer transient other : memref<128x512xf8E4M3FN>
    plan.input "x" = %x values 0 : memref<128x512xf8E4M3FN>
    %dw = plan.buffer transient grad : memref<192x128xf32>
    plan.matmul(%dy : memref<192x512xf8E5M2>, %x : memref<128x512xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<192x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w8 plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %g = plan.view %dw plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %most = plan.buffer transient other : memref<96xbf16>
    %q = plan.buffer transient other : memref<96x256xf8E4M3FN>
    plan.launch @negated(read %p : memref<96x256xf32>, read %g : memref<96x256xf32>, read %lr : memref<f32>, write %p : memref<96x256xf32>, write %most : memref<96xbf16>, write %q : memref<96x256xf8E4M3FN>)
    plan.output "most" = %most : memref<96xbf16>
    plan.output "q" = %q : memref<96x256xf8E4M3FN>
  }
  plan.program @derivative {
    %dy = plan.buffer transient other : memref<512x96xbf16>
    plan.input "dy" = %dy values 0 : memref<512x96xbf16>
    %w2 = plan.buffer transient other : memref<96x64xbf16>
    plan.input "w2" = %w2 values 0 : memref<96x64xbf16>
    %pair = plan.buffer transient other : memref<4x128x128xbf16>
    plan.input "both" = %pair values 0 : memref<4x128x128xbf16>
    %dh = plan.buffer transient act.grad : memref<512x64xbf16>
    plan.matmul(%dy : memref<512x96xbf16>, %w2 : memref<96x64xbf16>) -> (%dh : memref<512x64xbf16>) {label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.fill 1.0 -> (%w2 : memref<96x64xbf16>) {label = "fill"}
    %dh3 = plan.view %dh plus 0 : memref<512x64xbf16> to memref<4x128x64xbf16>
    %half = plan.view %pair plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %made = plan.buffer transient act.grad : memref<4x128x128xbf16>
    %dgate = plan.view %made plus 0 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %dup = plan.view %made plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    plan.launch @gated(read %dh3 : memref<4x128x64xbf16>, read %half : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %dgate : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %dup : memref<4x128x64xbf16, strided<[16384, 128, 1]>>)
    plan.output "made" = %made : memref<4x128x128xbf16>
    plan.output "w2" = %w2 : memref<96x64xbf16>
  }
  plan.program @between {
    %dy = plan.buffer transient other : memref<512x96xbf16>
    plan.input "dy" = %dy values 0 : memref<512x96xbf16>
    %w2 = plan.buffer transient other : memref<96x64xbf16>
    plan.input "w2" = %w2 values 0 : memref<96x64xbf16>
    %pair = plan.buffer transient other : memref<4x128x128xbf16>
    %dh = plan.buffer transient act.grad : memref<512x64xbf16>
    plan.matmul(%dy : memref<512x96xbf16>, %w2 : memref<96x64xbf16>) -> (%dh : memref<512x64xbf16>) {label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.fill 1.0 -> (%w2 : memref<96x64xbf16>) {label = "fill"}
    plan.fill 1.0 -> (%pair : memref<4x128x128xbf16>) {label = "fill"}
    %dh3 = plan.view %dh plus 0 : memref<512x64xbf16> to memref<4x128x64xbf16>
    %half = plan.view %pair plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %made = plan.buffer transient act.grad : memref<4x128x128xbf16>
    %dgate = plan.view %made plus 0 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %dup = plan.view %made plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    plan.launch @gated(read %dh3 : memref<4x128x64xbf16>, read %half : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %dgate : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %dup : memref<4x128x64xbf16, strided<[16384, 128, 1]>>)
    plan.output "made" = %made : memref<4x128x128xbf16>
    plan.output "w2" = %w2 : memref<96x64xbf16>
  }
  plan.program @columns {
    %dy = plan.buffer transient other : memref<512x192xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<512x192xf8E5M2>
    %x = plan.buffer transient other : memref<128x512xf8E4M3FN>
    plan.input "x" = %x values 0 : memref<128x512xf8E4M3FN>
    %columns = plan.view %dy plus 0 : memref<512x192xf8E5M2> to memref<192x512xf8E5M2, strided<[1, 192]>>
    %lines = plan.buffer transient grad : memref<192x512xf8E5M2>
    plan.copy(%columns : memref<192x512xf8E5M2, strided<[1, 192]>>) -> (%lines : memref<192x512xf8E5M2>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    %dw = plan.buffer transient grad : memref<192x128xf32>
    plan.matmul(%lines : memref<192x512xf8E5M2>, %x : memref<128x512xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<192x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w8 plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %g = plan.view %dw plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %most = plan.buffer transient other : memref<96xbf16>
    %q = plan.buffer transient other : memref<96x256xf8E4M3FN>
    plan.launch @kept(read %p : memref<96x256xf32>, read %g : memref<96x256xf32>, read %lr : memref<f32>, write %p : memref<96x256xf32>, write %most : memref<96xbf16>, write %q : memref<96x256xf8E4M3FN>)
    plan.output "most" = %most : memref<96xbf16>
    plan.output "q" = %q : memref<96x256xf8E4M3FN>
  }
  plan.program @columns_read {
    %dy = plan.buffer transient other : memref<512x192xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<512x192xf8E5M2>
    %x = plan.buffer transient other : memref<128x512xf8E4M3FN>
    plan.input "x" = %x values 0 : memref<128x512xf8E4M3FN>
    %columns = plan.view %dy plus 0 : memref<512x192xf8E5M2> to memref<192x512xf8E5M2, strided<[1, 192]>>
    %lines = plan.buffer transient grad : memref<192x512xf8E5M2>
    plan.copy(%columns : memref<192x512xf8E5M2, strided<[1, 192]>>) -> (%lines : memref<192x512xf8E5M2>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    %dw = plan.buffer transient grad : memref<192x128xf32>
    plan.matmul(%lines : memref<192x512xf8E5M2>, %x : memref<128x512xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<192x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w8 plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %g = plan.view %dw plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %most = plan.buffer transient other : memref<96xbf16>
    %q = plan.buffer transient other : memref<96x256xf8E4M3FN>
    plan.launch @kept(read %p : memref<96x256xf32>, read %g : memref<96x256xf32>, read %lr : memref<f32>, write %p : memref<96x256xf32>, write %most : memref<96xbf16>, write %q : memref<96x256xf8E4M3FN>)
    plan.output "most" = %most : memref<96xbf16>
    plan.output "q" = %q : memref<96x256xf8E4M3FN>
    plan.output "lines" = %lines : memref<192x512xf8E5M2>
  }
  plan.program @columns_twice {
    %dy = plan.buffer transient other : memref<512x128xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<512x128xf8E5M2>
    %columns = plan.view %dy plus 0 : memref<512x128xf8E5M2> to memref<128x512xf8E5M2, strided<[1, 128]>>
    %lines = plan.buffer transient grad : memref<128x512xf8E5M2>
    plan.copy(%columns : memref<128x512xf8E5M2, strided<[1, 128]>>) -> (%lines : memref<128x512xf8E5M2>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    %dw = plan.buffer transient grad : memref<128x128xf32>
    plan.matmul(%lines : memref<128x512xf8E5M2>, %lines : memref<128x512xf8E5M2>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<128x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %g = plan.view %dw plus 0 : memref<128x128xf32> to memref<256x64xf32>
    %p = plan.view %w plus 0 : memref<257x64xf32> to memref<256x64xf32>
    plan.launch @whole(read %p : memref<256x64xf32>, read %g : memref<256x64xf32>, write %p : memref<256x64xf32>)
  }
  plan.program @columns_written {
    %dy = plan.buffer transient other : memref<512x192xf8E5M2>
    plan.input "dy" = %dy values 0 : memref<512x192xf8E5M2>
    %x = plan.buffer transient other : memref<128x512xf8E4M3FN>
    plan.input "x" = %x values 0 : memref<128x512xf8E4M3FN>
    %columns = plan.view %dy plus 0 : memref<512x192xf8E5M2> to memref<192x512xf8E5M2, strided<[1, 192]>>
    %lines = plan.buffer transient grad : memref<192x512xf8E5M2>
    plan.copy(%columns : memref<192x512xf8E5M2, strided<[1, 192]>>) -> (%lines : memref<192x512xf8E5M2>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.fill 0.0 -> (%dy : memref<512x192xf8E5M2>) {label = "fill"}
    %dw = plan.buffer transient grad : memref<192x128xf32>
    plan.matmul(%lines : memref<192x512xf8E5M2>, %x : memref<128x512xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%dw : memref<192x128xf32>) {transpose_b, label = "matmul", op_class = #hydra.op_class<gemm>}
    %p = plan.view %w8 plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %g = plan.view %dw plus 0 : memref<192x128xf32> to memref<96x256xf32>
    %most = plan.buffer transient other : memref<96xbf16>
    %q = plan.buffer transient other : memref<96x256xf8E4M3FN>
    plan.launch @kept(read %p : memref<96x256xf32>, read %g : memref<96x256xf32>, read %lr : memref<f32>, write %p : memref<96x256xf32>, write %most : memref<96xbf16>, write %q : memref<96x256xf8E4M3FN>)
    plan.output "most" = %most : memref<96xbf16>
    plan.output "q" = %q : memref<96x256xf8E4M3FN>
  }
}
