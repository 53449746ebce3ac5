// RUN: hydra-opt %s --split-input-file --verify-diagnostics --hydra-expand-kernels

// Sums of wide heads leave registers for two warpgroups.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"], tiles = ["attention_forward:rows=192"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x128xbf16>
      %o = plan.buffer transient other : memref<1x640x2x128xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x128xbf16>
      // expected-error @+1 {{--kernel-tiles=attention_forward:rows=192: with heads of 128 and tiles of 128 a block has at most 128 rows}}
      plan.attention(%q : memref<1x640x2x128xbf16>, %q : memref<1x640x2x128xbf16>, %q : memref<1x640x2x128xbf16>) -> (%o : memref<1x640x2x128xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x128xbf16>
    }
  }
}

// -----

// Tiles for warpgroups have 64 rows.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"], tiles = ["attention_forward:tile=32"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %o = plan.buffer transient other : memref<1x640x2x64xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      // expected-error @+1 {{--kernel-tiles=attention_forward:tile=32: the kernels for warpgroups have tiles of 64 or 128 rows}}
      plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>) -> (%o : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xbf16>
    }
  }
}

// -----

// A block has so much memory and no more.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"], tiles = ["attention_forward:stages=16"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %o = plan.buffer transient other : memref<1x640x2x64xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      // expected-error @+1 {{--kernel-tiles=attention_forward:stages=16: takes 557600 bytes of shared memory; a block of gpu has 232448}}
      plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>) -> (%o : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xbf16>
    }
  }
}

// -----

// Other kernels have two stages,
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, tiles = ["attention_forward:stages=3"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %o = plan.buffer transient other : memref<1x640x2x64xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      // expected-error @+1 {{--kernel-tiles=attention_forward:stages=3: the kernel for this target has 2 stages}}
      plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>) -> (%o : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xbf16>
    }
  }
}

// -----

// tiles of 32 rows for wide heads,
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, tiles = ["attention_forward:tile=64"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x256xbf16>
      %o = plan.buffer transient other : memref<1x640x2x256xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x256xbf16>
      // expected-error @+1 {{--kernel-tiles=attention_forward:tile=64: heads of 256 have tiles of 32 rows}}
      plan.attention(%q : memref<1x640x2x256xbf16>, %q : memref<1x640x2x256xbf16>, %q : memref<1x640x2x256xbf16>) -> (%o : memref<1x640x2x256xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x256xbf16>
    }
  }
}

// -----

// and few registers for gradients.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, required_tiles = ["attention_key_gradients:rows=128"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %o = plan.buffer transient other : memref<1x640x2x64xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      %l = plan.buffer transient other : memref<1x2x640xf32>
      %dq = plan.buffer transient other : memref<1x640x2x64xbf16>
      %dk = plan.buffer transient other : memref<1x640x2x64xbf16>
      %dv = plan.buffer transient other : memref<1x640x2x64xbf16>
      // expected-error @+1 {{--kernel-tiles=attention_key_gradients:rows=128: with heads of 64 and tiles of 64 a block has at most 64 rows}}
      plan.attention_grad(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %o : memref<1x640x2x64xbf16>, %l : memref<1x2x640xf32>) -> (%dq : memref<1x640x2x64xbf16>, %dk : memref<1x640x2x64xbf16>, %dv : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention_grad", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xbf16>
    }
  }
}

// -----

// Numbers of 32 bits have no tiles.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, tiles = ["attention_forward:rows=64"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xf32>
      %o = plan.buffer transient other : memref<1x640x2x64xf32>
      plan.input "q" = %q values 0 : memref<1x640x2x64xf32>
      // expected-error @+1 {{--kernel-tiles=attention_forward:rows=64: attention of float with heads of 64 and 64 has no tiles here}}
      plan.attention(%q : memref<1x640x2x64xf32>, %q : memref<1x640x2x64xf32>, %q : memref<1x640x2x64xf32>) -> (%o : memref<1x640x2x64xf32>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xf32>
    }
  }
}

// -----

// What is asked for is there.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, required_tiles = ["few_rows_matmul:warps=2"]>} {
  // expected-error @+1 {{--kernel-tiles=few_rows_matmul:warps=2: the plan has no such kernel}}
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %o = plan.buffer transient other : memref<1x640x2x64xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>) -> (%o : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xbf16>
    }
  }
}

// -----

// A target may say more than a plan needs, but nothing unknown.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_80", multiprocessors = 8, block_shared = 166912, tiles = ["few_rows_matmul:warps=2", "attention_forward:rows=100"]>} {
  // expected-error @+1 {{tiles of target gpu: "attention_forward:rows=100": rows is '100', not a multiple of 64 from 64 to 192}}
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %o = plan.buffer transient other : memref<1x640x2x64xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>) -> (%o : memref<1x640x2x64xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x64xbf16>
    }
  }
}

// -----

// Values may be wider than keys: what a block has counts for both.
module attributes {hydra.target = #hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, block_shared = 232448, features = ["wgmma", "bulk_copies"], tiles = ["attention_forward:rows=128,tile=128,stages=4"]>} {
  plan.module @m {
    plan.program @p {
      %q = plan.buffer transient other : memref<1x640x2x64xbf16>
      %v = plan.buffer transient other : memref<1x640x2x128xbf16>
      %o = plan.buffer transient other : memref<1x640x2x128xbf16>
      plan.input "q" = %q values 0 : memref<1x640x2x64xbf16>
      plan.input "v" = %v values 1 : memref<1x640x2x128xbf16>
      // expected-error @+1 {{takes 262304 bytes of shared memory; a block of gpu has 232448}}
      plan.attention(%q : memref<1x640x2x64xbf16>, %q : memref<1x640x2x64xbf16>, %v : memref<1x640x2x128xbf16>) -> (%o : memref<1x640x2x128xbf16>) {scale = 0.125 : f64, causal, label = "attention", op_class = #hydra.op_class<attention>}
      plan.output "o" = %o : memref<1x640x2x128xbf16>
    }
  }
}
