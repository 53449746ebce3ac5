// RUN: hydra-opt %s --split-input-file --verify-diagnostics --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 100000>}' --hydra-expand-kernels

// Slices that are neither parts of every step nor lanes.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x15xf32>
    plan.input "x" = %x values 0 : memref<4x15xf32>
    %y = plan.buffer transient other : memref<15xf32>
    %row = plan.view %x plus 0 : memref<4x15xf32> to memref<15xf32>
    // expected-error @+1 {{has 4 slices, into which its steps do not fall apart}}
    plan.loop 4 (%row by 60 : memref<15xf32>) slices 4 {
      plan.copy(%row : memref<15xf32>) -> (%y : memref<15xf32>) {label = "copy"}
    }
    plan.output "y" = %y : memref<15xf32>
  }
}
