// RUN: hydra-opt %s --split-input-file --hydra-assign-streams | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", rates = {memory_bandwidth = 1.0e12, cache_bandwidth = 1.0e12, vector_flops = 1.0e12, launch_seconds = 1.0e-6, matmul_flops = {f32 = 1.0e12}, attention_flops = {f32 = 1.0e12}}>}' --hydra-assign-streams | FileCheck %s --check-prefix=TIMED

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

// -----

// The main stream waits for the update, which no step needs, when 48 average steps have passed since: steps are all the
// same to a target without rates, and with them the first copy takes as long as 400 others.
// CHECK-LABEL: plan.module @lag
// CHECK: plan.launch @adamw{{.*}}signals = 0 : i64, stream = 1
// CHECK-NOT: waits = array<i64: 0>
// CHECK: label = "48"{{.*}}waits = array<i64: 0>
// TIMED-LABEL: plan.module @lag
// TIMED: plan.launch @adamw{{.*}}signals = 0 : i64, stream = 1
// TIMED-NOT: waits = array<i64: 0>
// TIMED: label = "8"{{.*}}waits = array<i64: 0>
plan.module @lag {
  %w = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8xf32>
  plan.kernel @adamw rows 8 grain 8 [memref<8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    %y = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    plan.launch @adamw(update %w : memref<8xf32>) {label = "adamw"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "1", flops = 400000000 : i64}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "2"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "3"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "4"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "5"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "6"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "7"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "8"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "9"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "10"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "11"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "12"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "13"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "14"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "15"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "16"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "17"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "18"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "19"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "20"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "21"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "22"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "23"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "24"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "25"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "26"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "27"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "28"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "29"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "30"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "31"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "32"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "33"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "34"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "35"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "36"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "37"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "38"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "39"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "40"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "41"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "42"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "43"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "44"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "45"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "46"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "47"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "48"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "49"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "50"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "51"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "52"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "53"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "54"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "55"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "56"}
    plan.output "x" = %x : memref<8xf32>
  }
}
