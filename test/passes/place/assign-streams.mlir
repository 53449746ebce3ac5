// RUN: hydra-opt %s --split-input-file --hydra-assign-streams | FileCheck %s

// The cast of a parameter goes to stream 2 and is awaited where it is read. The gradient that only the update reads,
// and the update, go to stream 1; the gradient waits for what it reads, the update for the cast, which reads the old
// value. What makes it an update is that it writes a parameter and nothing else, not its class: a state that the
// forward pass carries stays on the main stream.
// CHECK-LABEL: plan.module @step
// CHECK: plan.program @train streams 3
// CHECK: plan.launch @cast(read %[[W:.*]] : {{.*}}signals = 0 : i64, stream = 2
// CHECK: plan.matmul{{.*}}waits = array<i64: 0>
// CHECK: plan.matmul(%[[DY:[a-z0-9]+]] : {{.*}}label = "gradient"{{.*}}stream = 1
// CHECK: plan.launch @adamw{{.*}}stream = 1
// CHECK: plan.matmul{{.*}}label = "input gradient"
// CHECK: plan.copy{{.*}}label = "average"
// CHECK-NOT: stream = 1
plan.module @step {
  %w = plan.buffer persistent param : memref<8x8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8x8xf32>
  %average = plan.buffer persistent act.state : memref<8x8xbf16>
  plan.variable state "average" = %average init <zeros> : memref<8x8xbf16>
  plan.kernel @cast rows 8 grain 8 [memref<8x8xf32>, memref<8x8xbf16>] {}
  plan.kernel @adamw rows 8 grain 8 [memref<8x8xf32>, memref<8x8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8x8xbf16>
    %low = plan.buffer transient other : memref<8x8xbf16>
    %y = plan.buffer transient other : memref<8x8xbf16>
    %dw = plan.buffer transient other : memref<8x8xf32>
    %dx = plan.buffer transient other : memref<8x8xbf16>
    plan.input "x" = %x values 0 : memref<8x8xbf16>
    plan.launch @cast(read %w : memref<8x8xf32>, write %low : memref<8x8xbf16>) {label = "cast"}
    plan.matmul(%x : memref<8x8xbf16>, %low : memref<8x8xbf16>) -> (%y : memref<8x8xbf16>) {label = "forward"}
    plan.matmul(%y : memref<8x8xbf16>, %x : memref<8x8xbf16>) -> (%dw : memref<8x8xf32>) {label = "gradient"}
    plan.launch @adamw(read %dw : memref<8x8xf32>, update %w : memref<8x8xf32>) {label = "adamw"}
    plan.matmul(%y : memref<8x8xbf16>, %low : memref<8x8xbf16>) -> (%dx : memref<8x8xbf16>) {label = "input gradient"}
    plan.copy(%y : memref<8x8xbf16>) -> (%average : memref<8x8xbf16>) {label = "average", op_class = #hydra.op_class<optimizer>}
    plan.output "dx" = %dx : memref<8x8xbf16>
  }
}

// -----

// Without updates everything keeps one stream.
// CHECK-LABEL: plan.module @forward
// CHECK: plan.program @logits {
// CHECK-NOT: stream
plan.module @forward {
  %w = plan.buffer persistent param : memref<8x8xf32>
  plan.kernel @cast rows 8 grain 8 [memref<8x8xf32>, memref<8x8xbf16>] {}
  plan.program @logits {
    %low = plan.buffer transient other : memref<8x8xbf16>
    %y = plan.buffer transient other : memref<8x8xbf16>
    plan.launch @cast(read %w : memref<8x8xf32>, write %low : memref<8x8xbf16>) {label = "cast"}
    plan.copy(%low : memref<8x8xbf16>) -> (%y : memref<8x8xbf16>) {label = "copy"}
    plan.output "y" = %y : memref<8x8xbf16>
  }
}
