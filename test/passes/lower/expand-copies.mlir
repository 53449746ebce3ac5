// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 2, block_shared = 232448>}' --hydra-expand-kernels | FileCheck %s

// What is read transposed goes through shared memory: in vectors of 16 bytes where both sides have them, else in words, else
// number by number. A block for each square of 128 bytes on either side, of 32 numbers of four bytes.
// CHECK: plan.kernel @[[VECTORS:transpose_[0-9]+]] {{.*}} launch [6, 1, 1, 256, 0] source "{{.*}}copyTransposedVectors<unsigned char, Dim<272, 1, 144>, Dim<144, 272, 1>>(blockIdx.x - 0, a0, a1)
// CHECK: plan.kernel @[[WORDS:transpose_[0-9]+]] {{.*}} launch [6, 1, 1, 256, 0] source "{{.*}}copyTransposedWords<unsigned char, Dim<260, 1, 144>, Dim<144, 260, 1>>(
// CHECK: plan.kernel @[[NUMBERS:transpose_[0-9]+]] {{.*}} source "{{.*}}copyTransposed<unsigned char, Dim<261, 1, 144>, Dim<144, 261, 1>>(
// CHECK: plan.kernel @[[HALVES:transpose_[0-9]+]] {{.*}} launch [3, 1, 1, 256, 0] source "{{.*}}copyTransposedVectors<unsigned short, Dim<136, 1, 64>, Dim<64, 136, 1>>(
// CHECK: plan.kernel @[[FLOATS:transpose_[0-9]+]] {{.*}} source "{{.*}}copyTransposed<uint32, Dim<64, 1, 32>, Dim<32, 64, 1>>(

// Rows that begin between such vectors are met in words.
// CHECK: plan.kernel @[[APART:transpose_[0-9]+]] {{.*}} source "{{.*}}copyTransposedWords<unsigned char, Dim<256, 1, 132>, Dim<128, 256, 1>>(

plan.module @m {
  plan.program @copies {
    %a = plan.buffer transient other : memref<272x144xf8E4M3FN>
    plan.input "a" = %a values 0 : memref<272x144xf8E4M3FN>
    %at = plan.view %a plus 0 : memref<272x144xf8E4M3FN> to memref<144x272xf8E4M3FN, strided<[1, 144]>>
    %ac = plan.buffer transient other : memref<144x272xf8E4M3FN>
    plan.copy(%at : memref<144x272xf8E4M3FN, strided<[1, 144]>>) -> (%ac : memref<144x272xf8E4M3FN>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.output "a" = %ac : memref<144x272xf8E4M3FN>
    %b = plan.buffer transient other : memref<260x144xf8E4M3FN>
    plan.input "b" = %b values 0 : memref<260x144xf8E4M3FN>
    %bt = plan.view %b plus 0 : memref<260x144xf8E4M3FN> to memref<144x260xf8E4M3FN, strided<[1, 144]>>
    %bc = plan.buffer transient other : memref<144x260xf8E4M3FN>
    plan.copy(%bt : memref<144x260xf8E4M3FN, strided<[1, 144]>>) -> (%bc : memref<144x260xf8E4M3FN>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.output "b" = %bc : memref<144x260xf8E4M3FN>
    %c = plan.buffer transient other : memref<261x144xf8E4M3FN>
    plan.input "c" = %c values 0 : memref<261x144xf8E4M3FN>
    %ct = plan.view %c plus 0 : memref<261x144xf8E4M3FN> to memref<144x261xf8E4M3FN, strided<[1, 144]>>
    %cc = plan.buffer transient other : memref<144x261xf8E4M3FN>
    plan.copy(%ct : memref<144x261xf8E4M3FN, strided<[1, 144]>>) -> (%cc : memref<144x261xf8E4M3FN>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.output "c" = %cc : memref<144x261xf8E4M3FN>
    %d = plan.buffer transient other : memref<136x64xbf16>
    plan.input "d" = %d values 0 : memref<136x64xbf16>
    %dt = plan.view %d plus 0 : memref<136x64xbf16> to memref<64x136xbf16, strided<[1, 64]>>
    %dc = plan.buffer transient other : memref<64x136xbf16>
    plan.copy(%dt : memref<64x136xbf16, strided<[1, 64]>>) -> (%dc : memref<64x136xbf16>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.output "d" = %dc : memref<64x136xbf16>
    %e = plan.buffer transient other : memref<64x32xf32>
    plan.input "e" = %e values 0 : memref<64x32xf32>
    %et = plan.view %e plus 0 : memref<64x32xf32> to memref<32x64xf32, strided<[1, 32]>>
    %ec = plan.buffer transient other : memref<32x64xf32>
    plan.copy(%et : memref<32x64xf32, strided<[1, 32]>>) -> (%ec : memref<32x64xf32>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.output "e" = %ec : memref<32x64xf32>
    %f = plan.buffer transient other : memref<256x132xf8E4M3FN>
    plan.input "f" = %f values 0 : memref<256x132xf8E4M3FN>
    %ft = plan.view %f plus 0 : memref<256x132xf8E4M3FN> to memref<128x256xf8E4M3FN, strided<[1, 132]>>
    %fc = plan.buffer transient other : memref<128x256xf8E4M3FN>
    plan.copy(%ft : memref<128x256xf8E4M3FN, strided<[1, 132]>>) -> (%fc : memref<128x256xf8E4M3FN>) {label = "copy", op_class = #hydra.op_class<copy_cast>}
    plan.output "f" = %fc : memref<128x256xf8E4M3FN>
  }
}
