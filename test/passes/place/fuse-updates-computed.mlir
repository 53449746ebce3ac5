// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 2, block_shared = 232448, features = ["wgmma"]>}' --hydra-fuse-updates | FileCheck %s

// A matmul that computes an operand for itself (hydra-fuse-operands) stays where it is: the step in front of it is a part of it.
// CHECK-LABEL: plan.program @computed
// CHECK: plan.fill {{.*}}plan.computed
// CHECK-NEXT: plan.matmul
// CHECK-NOT: plan.updates
plan.module @m {
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
  plan.program @computed {
    %dy = plan.buffer transient other : memref<512x64xbf16>
    %w2 = plan.buffer transient other : memref<64x64xbf16>
    plan.input "w2" = %w2 values 0 : memref<64x64xbf16>
    %pair = plan.buffer transient other : memref<4x128x128xbf16>
    plan.input "pair" = %pair values 0 : memref<4x128x128xbf16>
    %dy3 = plan.view %dy plus 0 : memref<512x64xbf16> to memref<4x128x64xbf16>
    %half = plan.view %pair plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %made = plan.buffer transient act.grad : memref<4x128x128xbf16>
    %dgate = plan.view %made plus 0 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %dup = plan.view %made plus 64 : memref<4x128x128xbf16> to memref<4x128x64xbf16, strided<[16384, 128, 1]>>
    %dh = plan.buffer transient act.grad : memref<512x64xbf16>
    %dh3 = plan.view %dh plus 0 : memref<512x64xbf16> to memref<4x128x64xbf16>
    plan.fill 1.0 -> (%dy : memref<512x64xbf16>) {label = "fill", plan.computed = true}
    plan.matmul(%dy : memref<512x64xbf16>, %w2 : memref<64x64xbf16>) -> (%dh : memref<512x64xbf16>) {label = "matmul", op_class = #hydra.op_class<gemm>}
    plan.launch @gated(read %dh3 : memref<4x128x64xbf16>, read %half : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %dgate : memref<4x128x64xbf16, strided<[16384, 128, 1]>>, write %dup : memref<4x128x64xbf16, strided<[16384, 128, 1]>>)
    plan.output "made" = %made : memref<4x128x128xbf16>
  }
}
