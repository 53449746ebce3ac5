// RUN: hydra-opt %s --split-input-file --hydra-plan-memory | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-plan-memory=reuse=false | FileCheck %s --check-prefix=OWN

// A buffer that is dead takes the bytes of one that is not born yet; an input and an output keep
// theirs from the beginning and to the end.
// CHECK-LABEL: plan.module @chain persistent 0 transient 1024
// OWN-LABEL: plan.module @chain persistent 0 transient 2048
plan.module @chain {
  // CHECK: plan.program @p live 1024 transient 1024
  plan.program @p {
    %a = plan.buffer transient other : memref<128xf32>
    %b = plan.buffer transient other : memref<128xf32>
    %c = plan.buffer transient other : memref<128xf32>
    %d = plan.buffer transient other : memref<128xf32>
    plan.input "a" = %a values 0 : memref<128xf32>
    plan.copy(%a : memref<128xf32>) -> (%b : memref<128xf32>) {label = "copy"}
    plan.copy(%b : memref<128xf32>) -> (%c : memref<128xf32>) {label = "copy"}
    plan.copy(%c : memref<128xf32>) -> (%d : memref<128xf32>) {label = "copy"}
    plan.output "d" = %d : memref<128xf32>
  }
}

// -----

// Two streams without order between them: nothing is shared. With an event, the second stream takes
// over the bytes of the first.
// CHECK-LABEL: plan.module @streams persistent 0 transient 1024
plan.module @streams {
  plan.program @p streams 2 {
    %a = plan.buffer transient other : memref<128xf32>
    %b = plan.buffer transient other : memref<128xf32>
    plan.fill 0.0 -> (%a : memref<128xf32>) {label = "fill"}
    plan.fill 0.0 -> (%b : memref<128xf32>) {label = "fill", stream = 1 : i64}
  }
}

// -----

// CHECK-LABEL: plan.module @events persistent 0 transient 512
plan.module @events {
  plan.program @p streams 2 {
    %a = plan.buffer transient other : memref<128xf32>
    %b = plan.buffer transient other : memref<128xf32>
    plan.fill 0.0 -> (%a : memref<128xf32>) {label = "fill", signals = 0 : i64}
    plan.fill 0.0 -> (%b : memref<128xf32>) {label = "fill", stream = 1 : i64, waits = array<i64: 0>}
  }
}

// -----

// A buffer that a loop reads lives through all iterations, although its read is the first block of
// the body: %t, written after it there, may not take its bytes. %u, used only after the loop, may.
// CHECK-LABEL: plan.module @loop persistent 0 transient 1024
plan.module @loop {
  plan.program @p {
    %a = plan.buffer transient other : memref<128xf32>
    plan.fill 0.0 -> (%a : memref<128xf32>) {label = "fill"}
    plan.loop 4 () {
      %t = plan.buffer transient other : memref<128xf32>
      plan.copy(%a : memref<128xf32>) -> (%t : memref<128xf32>) {label = "copy"}
      plan.fill 1.0 -> (%t : memref<128xf32>) {label = "fill"}
    }
    %u = plan.buffer transient other : memref<128xf32>
    plan.fill 0.0 -> (%u : memref<128xf32>) {label = "fill"}
  }
}

// -----

// Of the cases of a switch only one runs: their buffers share bytes, inside a loop too.
// CHECK-LABEL: plan.module @cases persistent 0 transient 768
plan.module @cases {
  plan.program @p {
    %which = plan.buffer transient other : memref<i32>
    plan.input "which" = %which values 0 : memref<i32>
    plan.loop 2 () {
      plan.switch %which : memref<i32> {
        %x = plan.buffer transient other : memref<128xf32>
        plan.fill 0.0 -> (%x : memref<128xf32>) {label = "fill"}
      }, {
        %y = plan.buffer transient other : memref<128xf32>
        plan.fill 0.0 -> (%y : memref<128xf32>) {label = "fill"}
      }
    }
  }
}

// -----

// The persistent segment holds everything side by side; the transient one is the largest program.
// CHECK-LABEL: plan.module @programs persistent 512 transient 512
plan.module @programs {
  // CHECK: plan.buffer persistent param at 0
  %w = plan.buffer persistent param : memref<8xf32>
  // CHECK: plan.buffer persistent param at 256
  %v = plan.buffer persistent param : memref<8xf32>
  plan.program @p {
    %a = plan.buffer transient other : memref<128xf32>
    plan.fill 0.0 -> (%a : memref<128xf32>) {label = "fill"}
  }
  plan.program @q {
    %a = plan.buffer transient other : memref<64xf32>
    plan.fill 0.0 -> (%a : memref<64xf32>) {label = "fill"}
  }
}
