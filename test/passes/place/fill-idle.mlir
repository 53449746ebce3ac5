// RUN: hydra-opt %s --split-input-file --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 8, rates = {memory_bandwidth = 1.0e12, cache_bandwidth = 1.0e12, vector_flops = 1.0e12, launch_seconds = 1.0e-6, matmul_flops = {f32 = 1.0e12}, attention_flops = {f32 = 1.0e12}, block_flops = 1.0e11, block_bandwidth = 1.0e12}>}' --hydra-fill-idle --hydra-assign-streams | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-fill-idle | FileCheck %s --check-prefix=UNTIMED

// A kernel with two blocks takes 60 us on a machine with eight multiprocessors: enough for 45 us of the whole device. A
// step takes 1 us. The gradient of %w and its update move behind the steps that the loop
// waits for, and begin with it; what is read behind the loop goes before them. A step that is too long for what is
// left, and one that the loop waits for, stay.
// CHECK-LABEL: plan.module @beside
// CHECK: label = "long"
// CHECK-NOT: stream
// CHECK: label = "chain"{{.*}}signals = [[BEGIN:[0-9]+]] : i64}
// CHECK: label = "read later"{{.*}}signals = [[READ:[0-9]+]] : i64, stream = 1 : i64, waits = array<i64: [[BEGIN]]>
// CHECK: label = "gradient"{{.*}}stream = 1
// CHECK: label = "adamw"{{.*}}stream = 1
// CHECK: label = "loop"
// CHECK: label = "reads"{{.*}}waits = array<i64: [[READ]]>
// UNTIMED-LABEL: plan.module @beside
// UNTIMED: label = "long"
// UNTIMED: label = "gradient"
// UNTIMED: label = "adamw"
// UNTIMED: label = "read later"
// UNTIMED: label = "chain"
plan.module @beside {
  %w = plan.buffer persistent param : memref<8x8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8x8xf32>
  plan.kernel @adamw rows 8 grain 8 [memref<8x8xf32>, memref<8x8xf32>] {}
  plan.kernel @loop rows 0 grain 0 launch [2, 1, 1, 32, 0] source "" [memref<8x8xf32>, memref<8x8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8x8xf32>
    %y = plan.buffer transient other : memref<8x8xf32>
    %dw = plan.buffer transient other : memref<8x8xf32>
    %late = plan.buffer transient other : memref<8x8xf32>
    %long = plan.buffer transient other : memref<8x8xf32>
    %sum = plan.buffer transient other : memref<8x8xf32>
    %end = plan.buffer transient other : memref<8x8xf32>
    plan.input "x" = %x values 0 : memref<8x8xf32>
    plan.copy(%x : memref<8x8xf32>) -> (%long : memref<8x8xf32>) {label = "long", flops = 42500000 : i64}
    plan.matmul(%x : memref<8x8xf32>, %x : memref<8x8xf32>) -> (%dw : memref<8x8xf32>) {label = "gradient"}
    plan.launch @adamw(read %dw : memref<8x8xf32>, update %w : memref<8x8xf32>) {label = "adamw"}
    plan.copy(%x : memref<8x8xf32>) -> (%late : memref<8x8xf32>) {label = "read later"}
    plan.copy(%x : memref<8x8xf32>) -> (%y : memref<8x8xf32>) {label = "chain"}
    plan.launch @loop(read %y : memref<8x8xf32>, write %sum : memref<8x8xf32>) {label = "loop", flops = 12000000 : i64}
    plan.copy(%late : memref<8x8xf32>) -> (%end : memref<8x8xf32>) {label = "reads"}
    plan.output "end" = %end : memref<8x8xf32>
    plan.output "long" = %long : memref<8x8xf32>
    plan.output "sum" = %sum : memref<8x8xf32>
  }
}

// -----

// A kernel that occupies all multiprocessors leaves no time.
// CHECK-LABEL: plan.module @whole
// CHECK: label = "first"
// CHECK: label = "chain"
// CHECK: label = "loop"
// CHECK-NOT: stream
plan.module @whole {
  plan.kernel @loop rows 0 grain 0 launch [8, 1, 1, 32, 0] source "" [memref<8xf32>, memref<8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    %y = plan.buffer transient other : memref<8xf32>
    %z = plan.buffer transient other : memref<8xf32>
    %sum = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    plan.copy(%x : memref<8xf32>) -> (%z : memref<8xf32>) {label = "first"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "chain"}
    plan.launch @loop(read %y : memref<8xf32>, write %sum : memref<8xf32>) {label = "loop", flops = 48000000 : i64}
    plan.output "z" = %z : memref<8xf32>
    plan.output "sum" = %sum : memref<8xf32>
  }
}
