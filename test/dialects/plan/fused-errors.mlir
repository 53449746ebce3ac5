// RUN: hydra-opt %s --split-input-file --verify-diagnostics

// What is part of the step behind it, where none is.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    // expected-error @+1 {{is part of the step behind it; expected a matmul or cached_attention}}
    plan.fill 1.0 -> (%x : memref<4x16xbf16>) {plan.computed = false}
  }
}

// -----

// A step stands between, which makes the operand as well.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    // expected-error @+1 {{is part of the step behind it; expected a matmul or cached_attention}}
    plan.fill 1.0 -> (%x : memref<4x16xbf16>) {plan.computed = false}
    plan.fill 2.0 -> (%x : memref<4x16xbf16>)
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>)
  }
}

// -----

// A matmul of something else.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %z = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    // expected-error @+1 {{is part of the matmul behind it, but does not make its operand}}
    plan.fill 1.0 -> (%z : memref<4x16xbf16>) {plan.computed = true}
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>)
  }
}

// -----

// A matmul computes one step.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    // expected-error @+1 {{is part of a matmul, but does not stand right in front of it}}
    plan.fill 1.0 -> (%x : memref<4x16xbf16>) {plan.computed = false}
    plan.fill 2.0 -> (%x : memref<4x16xbf16>) {plan.computed = false}
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>)
  }
}

// -----

// What attention does not read.
plan.module @m {
  plan.program @p {
    %q = plan.buffer transient other : memref<1x1x2x16xbf16>
    %k = plan.buffer transient other : memref<1x1x2x16xbf16>
    %v = plan.buffer transient other : memref<1x1x2x16xbf16>
    %z = plan.buffer transient other : memref<1x1x2x16xbf16>
    %o = plan.buffer transient other : memref<1x1x2x16xbf16>
    %at = plan.buffer transient other : memref<1xi32>
    %keys = plan.buffer transient other : memref<1x8x2x16xbf16>
    %values = plan.buffer transient other : memref<1x8x2x16xbf16>
    plan.fill 1.0 -> (%q : memref<1x1x2x16xbf16>) {plan.computed = false}
    // expected-error @+1 {{is part of the attention behind it, but makes nothing that it reads}}
    plan.fill 1.0 -> (%z : memref<1x1x2x16xbf16>) {plan.computed = false}
    plan.fill 1.0 -> (%k : memref<1x1x2x16xbf16>) {plan.computed = false}
    plan.cached_attention(%q : memref<1x1x2x16xbf16>, %k : memref<1x1x2x16xbf16>, %v : memref<1x1x2x16xbf16>, %at : memref<1xi32>) -> (%o : memref<1x1x2x16xbf16>, %keys : memref<1x8x2x16xbf16>, %values : memref<1x8x2x16xbf16>) {scale = 1.0}
  }
}

// -----

// A matmul in two groups.
plan.module @m {
  plan.kernel @twice rows 4 grain 1 [memref<4x16xbf16>, memref<4x16xbf16>] {
  }
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    %z = plan.buffer transient other : memref<4x16xbf16>
    plan.fill 1.0 -> (%x : memref<4x16xbf16>) {plan.computed = false}
    // expected-error @+1 {{computes its operand, and launches use its sums; expected one}}
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>) {plan.updates = 1}
    plan.launch @twice(read %y : memref<4x16xbf16>, write %z : memref<4x16xbf16>)
  }
}

// -----

// Fewer launches than it says.
plan.module @m {
  plan.kernel @twice rows 4 grain 1 [memref<4x16xbf16>, memref<4x16xbf16>] {
  }
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    %z = plan.buffer transient other : memref<4x16xbf16>
    // expected-error @+1 {{has 2 launches as parts, but 1 stand right behind it}}
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>) {plan.updates = 2}
    plan.launch @twice(read %y : memref<4x16xbf16>, write %z : memref<4x16xbf16>)
    plan.fill 1.0 -> (%y : memref<4x16xbf16>)
    plan.launch @twice(read %y : memref<4x16xbf16>, write %z : memref<4x16xbf16>)
  }
}

// -----

// A launch of something else.
plan.module @m {
  plan.kernel @twice rows 4 grain 1 [memref<4x16xbf16>, memref<4x16xbf16>] {
  }
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    %z = plan.buffer transient other : memref<4x16xbf16>
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>) {plan.updates = 1}
    // expected-error @+1 {{is part of the step in front of it, but reads nothing that it makes}}
    plan.launch @twice(read %x : memref<4x16xbf16>, write %z : memref<4x16xbf16>)
  }
}

// -----

// Sums that are in no memory, which another step reads.
plan.module @m {
  plan.kernel @twice rows 4 grain 1 [memref<4x16xbf16>, memref<4x16xbf16>] {
  }
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    %w = plan.buffer transient other : memref<16x16xbf16>
    %y = plan.buffer transient other : memref<4x16xbf16>
    %z = plan.buffer transient other : memref<4x16xbf16>
    %o = plan.buffer transient other : memref<4x16xbf16>
    plan.matmul(%x : memref<4x16xbf16>, %w : memref<16x16xbf16>) -> (%y : memref<4x16xbf16>) {plan.updates = 1}
    plan.launch @twice(read %y : memref<4x16xbf16>, write %z : memref<4x16xbf16>)
    // expected-error @+1 {{uses what is made for the parts of another step alone}}
    plan.copy(%y : memref<4x16xbf16>) -> (%o : memref<4x16xbf16>)
  }
}

// -----

// Gradients that another step reads; those of values it may.
plan.module @m {
  plan.kernel @turn rows 64 grain 1 [memref<1x64x1x64xbf16>, memref<1x64x1x64xbf16>] {
  }
  plan.program @p {
    %g = plan.buffer transient other : memref<1x64x1x64xbf16>
    %q = plan.buffer transient other : memref<1x64x1x64xbf16>
    %lse = plan.buffer transient other : memref<1x1x64xf32>
    %dq = plan.buffer transient other : memref<1x64x1x64xbf16>
    %dk = plan.buffer transient other : memref<1x64x1x64xbf16>
    %dv = plan.buffer transient other : memref<1x64x1x64xbf16>
    %turned = plan.buffer transient other : memref<1x64x1x64xbf16>
    plan.attention_grad(%g : memref<1x64x1x64xbf16>, %q : memref<1x64x1x64xbf16>, %q : memref<1x64x1x64xbf16>, %q : memref<1x64x1x64xbf16>, %g : memref<1x64x1x64xbf16>, %lse : memref<1x1x64xf32>) -> (%dq : memref<1x64x1x64xbf16>, %dk : memref<1x64x1x64xbf16>, %dv : memref<1x64x1x64xbf16>) {scale = 1.0, plan.rotations = 1}
    plan.launch @turn(read %dq : memref<1x64x1x64xbf16>, write %turned : memref<1x64x1x64xbf16>)
    plan.copy(%dk : memref<1x64x1x64xbf16>) -> (%g : memref<1x64x1x64xbf16>)
    plan.copy(%dv : memref<1x64x1x64xbf16>) -> (%g : memref<1x64x1x64xbf16>)
    // expected-error @+1 {{uses what is made for the parts of another step alone}}
    plan.copy(%dq : memref<1x64x1x64xbf16>) -> (%g : memref<1x64x1x64xbf16>)
  }
}

// -----

// A number of launches, of a step that has none.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xbf16>
    // expected-error @+1 {{has 'plan.updates', but makes nothing for launches}}
    plan.fill 1.0 -> (%x : memref<4x16xbf16>) {plan.updates = 1}
  }
}

// -----

// A batch of copies of which one reads what another writes; columns side by side it may.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xf32>
    %left = plan.view %x plus 0 : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1]>>
    %right = plan.view %x plus 8 : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1]>>
    %y = plan.buffer transient other : memref<4x8xf32>
    %z = plan.buffer transient other : memref<4x8xf32>
    plan.fill 1.0 -> (%x : memref<4x16xf32>) {plan.together = 0}
    plan.copy(%y : memref<4x8xf32>) -> (%left : memref<4x8xf32, strided<[16, 1]>>) {plan.together = 1}
    plan.copy(%right : memref<4x8xf32, strided<[16, 1]>>) -> (%z : memref<4x8xf32>) {plan.together = 1}
    // expected-error @+1 {{is in one batch with a step that it must wait for}}
    plan.copy(%left : memref<4x8xf32, strided<[16, 1]>>) -> (%y : memref<4x8xf32>) {plan.together = 1}
  }
}
