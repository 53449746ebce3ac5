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

// What leads to an update by steps that only lead there goes with it while the main stream has as much to do behind it:
// three copies are as much as the update and two steps before it, and less than three.
// CHECK-LABEL: plan.module @chains
// CHECK: label = "first"{{.*}}signals = [[FIRST:[0-9]+]] : i64
// CHECK-NOT: stream = 1
// CHECK: label = "second"{{.*}}stream = 1 : i64, waits = array<i64: [[FIRST]]>
// CHECK: label = "third"{{.*}}stream = 1
// CHECK: label = "adamw"{{.*}}stream = 1
// CHECK-NOT: stream = 1
// CHECK: plan.output
plan.module @chains {
  %w = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8xf32>
  plan.kernel @turn rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @adamw rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    %y = plan.buffer transient other : memref<8xf32>
    %g0 = plan.buffer transient grad : memref<8xf32>
    %g1 = plan.buffer transient grad : memref<8xf32>
    %g2 = plan.buffer transient grad : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    plan.launch @turn(read %x : memref<8xf32>, write %g0 : memref<8xf32>) {label = "first"}
    plan.launch @turn(read %g0 : memref<8xf32>, write %g1 : memref<8xf32>) {label = "second"}
    plan.launch @turn(read %g1 : memref<8xf32>, write %g2 : memref<8xf32>) {label = "third"}
    plan.launch @adamw(read %g2 : memref<8xf32>, update %w : memref<8xf32>) {label = "adamw"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "1"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "2"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "3"}
    plan.output "y" = %y : memref<8xf32>
  }
}

// -----

// What is made of parameters and constants goes to stream 2, by as many steps as that takes. What reads the batch too, and
// what reads constants alone, stays.
// CHECK-LABEL: plan.module @variables
// CHECK: plan.fill{{.*}}label = "ones"{{.*}}signals = [[ONES:[0-9]+]] : i64
// CHECK: label = "power"{{.*}}stream = 2
// CHECK: label = "table"{{.*}}signals = [[TABLE:[0-9]+]] : i64, stream = 2 : i64, waits = array<i64: [[ONES]]>
// CHECK: label = "apply"
// CHECK-NOT: stream
// CHECK-SAME: waits = array<i64: [[TABLE]]>
// CHECK: label = "of constants"
// CHECK-NOT: stream
// CHECK: label = "gradient"{{.*}}stream = 1
plan.module @variables {
  %w = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8xf32>
  plan.kernel @turn rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @both rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  plan.kernel @adamw rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    %ones = plan.buffer transient other : memref<8xf32>
    %a = plan.buffer transient other : memref<8xf32>
    %b = plan.buffer transient other : memref<8xf32>
    %c = plan.buffer transient other : memref<8xf32>
    %d = plan.buffer transient other : memref<8xf32>
    %g = plan.buffer transient grad : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    plan.fill 1.0 -> (%ones : memref<8xf32>) {label = "ones"}
    plan.launch @turn(read %w : memref<8xf32>, write %a : memref<8xf32>) {label = "power"}
    plan.launch @both(read %a : memref<8xf32>, read %ones : memref<8xf32>, write %b : memref<8xf32>) {label = "table"}
    plan.launch @both(read %b : memref<8xf32>, read %x : memref<8xf32>, write %c : memref<8xf32>) {label = "apply"}
    plan.launch @turn(read %ones : memref<8xf32>, write %d : memref<8xf32>) {label = "of constants"}
    plan.launch @both(read %c : memref<8xf32>, read %d : memref<8xf32>, write %g : memref<8xf32>) {label = "gradient"}
    plan.launch @adamw(read %g : memref<8xf32>, update %w : memref<8xf32>) {label = "adamw"}
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

// The main stream waits for the update, which no step needs, when 96 average steps have passed since: steps are all the
// same to a target without rates, and with them the first copy takes as long as 1200 others.
// CHECK-LABEL: plan.module @lag
// CHECK: plan.launch @adamw{{.*}}signals = 0 : i64, stream = 1
// CHECK-NOT: waits = array<i64: 0>
// CHECK: label = "96"{{.*}}waits = array<i64: 0>
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
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "1", flops = 1200000000 : i64}
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
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "57"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "58"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "59"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "60"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "61"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "62"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "63"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "64"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "65"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "66"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "67"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "68"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "69"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "70"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "71"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "72"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "73"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "74"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "75"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "76"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "77"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "78"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "79"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "80"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "81"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "82"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "83"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "84"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "85"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "86"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "87"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "88"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "89"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "90"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "91"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "92"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "93"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "94"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "95"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "96"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "97"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "98"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "99"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "100"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "101"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "102"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "103"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "104"}
    plan.output "x" = %x : memref<8xf32>
  }
}

// -----

// Exchanges have a stream of their own. The sum of what ranks have, of which the main stream takes a norm at the end,
// and what only reads that sum, go to stream 1: the main stream does not wait for the exchange before it goes on. The
// third exchange waits for what reads the first. What reads bytes of the main stream too stays, and so does the last sum,
// which that reads at once.
// CHECK-LABEL: plan.module @exchange
// CHECK: plan.all_gather{{.*}}label = "gather 0"{{.*}}signals = [[G0:[0-9]+]] : i64, stream = 3
// CHECK: label = "sum 0"{{.*}}signals = [[S0:[0-9]+]] : i64, stream = 1 : i64, waits = array<i64: [[G0]]>
// CHECK: label = "square 0"{{.*}}stream = 1
// CHECK: label = "work 1"
// CHECK-NOT: waits
// CHECK: label = "gather 1"{{.*}}stream = 3
// CHECK: label = "sum 1"{{.*}}stream = 1
// CHECK: label = "gather 2"{{.*}}stream = 3 : i64, waits = array<i64: {{.*}}[[S0]]>
// CHECK: label = "scaled"}
// CHECK: label = "sum 2"
// CHECK-NOT: stream = 1
// CHECK-SAME: waits
// CHECK: label = "norm"
// CHECK-NOT: stream = 1
// CHECK-SAME: waits
plan.module @exchange {
  plan.mesh_axis "data" 2
  plan.kernel @add rows 1 grain 1 [memref<2x8xf32>, memref<8xf32>] {}
  plan.kernel @square rows 1 grain 1 [memref<8xf32>, memref<f32>] {}
  plan.kernel @norm rows 1 grain 1 [memref<f32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  plan.kernel @scale rows 1 grain 1 [memref<2x8xf32>, memref<8xf32>, memref<8xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    %y = plan.buffer transient other : memref<8xf32>
    %g0 = plan.buffer transient comm : memref<2x8xf32>
    %g1 = plan.buffer transient comm : memref<2x8xf32>
    %g2 = plan.buffer transient comm : memref<2x8xf32>
    %s0 = plan.buffer transient grad : memref<8xf32>
    %s1 = plan.buffer transient grad : memref<8xf32>
    %s2 = plan.buffer transient grad : memref<8xf32>
    %z = plan.buffer transient grad : memref<8xf32>
    %n0 = plan.buffer transient grad : memref<f32>
    %out = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    plan.all_gather(%x : memref<8xf32>) -> (%g0 : memref<2x8xf32>) along 0 {label = "gather 0"}
    plan.launch @add(read %g0 : memref<2x8xf32>, write %s0 : memref<8xf32>) {label = "sum 0"}
    plan.launch @square(read %s0 : memref<8xf32>, write %n0 : memref<f32>) {label = "square 0"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "work 1"}
    plan.all_gather(%y : memref<8xf32>) -> (%g1 : memref<2x8xf32>) along 0 {label = "gather 1"}
    plan.launch @add(read %g1 : memref<2x8xf32>, write %s1 : memref<8xf32>) {label = "sum 1"}
    plan.copy(%y : memref<8xf32>) -> (%x : memref<8xf32>) {label = "work 2"}
    plan.copy(%x : memref<8xf32>) -> (%y : memref<8xf32>) {label = "work 3"}
    plan.all_gather(%x : memref<8xf32>) -> (%g2 : memref<2x8xf32>) along 0 {label = "gather 2"}
    plan.launch @scale(read %g1 : memref<2x8xf32>, read %y : memref<8xf32>, write %z : memref<8xf32>) {label = "scaled"}
    plan.launch @add(read %g2 : memref<2x8xf32>, write %s2 : memref<8xf32>) {label = "sum 2"}
    plan.launch @norm(read %n0 : memref<f32>, read %s1 : memref<8xf32>, read %s2 : memref<8xf32>, read %y : memref<8xf32>, write %out : memref<8xf32>) {label = "norm"}
    plan.output "out" = %out : memref<8xf32>
    plan.output "z" = %z : memref<8xf32>
  }
}

// -----

// An update may leave something for steps that lead to variables of training alone, as the magnitudes of what it wrote. One
// whose results the batch is multiplied by stays.
// CHECK-LABEL: plan.module @magnitudes
// CHECK: label = "gradient"{{.*}}stream = 1
// CHECK: label = "adamw"{{.*}}stream = 1
// CHECK: label = "largest"{{.*}}stream = 1
// CHECK: label = "remember"{{.*}}stream = 1
// CHECK: label = "read"
// CHECK-NOT: stream = 1
// CHECK: plan.output
plan.module @magnitudes {
  %w = plan.buffer persistent param : memref<8x8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8x8xf32>
  %v = plan.buffer persistent param : memref<8x8xf32>
  plan.variable parameter "v" = %v init <zeros> : memref<8x8xf32>
  %seen = plan.buffer persistent other : memref<f32>
  plan.variable derived "seen" = %seen init <zeros> : memref<f32>
  plan.kernel @adamw rows 8 grain 8 [memref<8x8xf32>, memref<8x8xf32>, memref<8xf32>] {}
  plan.kernel @largest rows 1 grain 1 [memref<8xf32>, memref<f32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8x8xf32>
    plan.input "x" = %x values 0 : memref<8x8xf32>
    %dw = plan.buffer transient other : memref<8x8xf32>
    %rows = plan.buffer transient other : memref<8xf32>
    %one = plan.buffer transient other : memref<f32>
    %dv = plan.buffer transient other : memref<8x8xf32>
    %others = plan.buffer transient other : memref<8xf32>
    %y = plan.buffer transient other : memref<f32>
    plan.matmul(%x : memref<8x8xf32>, %x : memref<8x8xf32>) -> (%dw : memref<8x8xf32>) {label = "gradient"}
    plan.launch @adamw(read %dw : memref<8x8xf32>, update %w : memref<8x8xf32>, write %rows : memref<8xf32>) {label = "adamw"}
    plan.launch @largest(read %rows : memref<8xf32>, write %one : memref<f32>) {label = "largest"}
    plan.copy(%one : memref<f32>) -> (%seen : memref<f32>) {label = "remember"}
    plan.launch @adamw(read %x : memref<8x8xf32>, update %v : memref<8x8xf32>, write %others : memref<8xf32>) {label = "read"}
    plan.launch @largest(read %others : memref<8xf32>, write %y : memref<f32>) {label = "answer"}
    plan.output "y" = %y : memref<f32>
  }
}

// -----

// What writes other columns of a buffer than a gradient reads does not wait for it; what writes the same ones does.
// CHECK-LABEL: plan.module @columns
// CHECK: label = "gradient"{{.*}}signals = [[GRADIENT:[0-9]+]] : i64, stream = 1
// CHECK: plan.launch @mark({{.*}}label = "beside"
// CHECK-NOT: waits
// CHECK: plan.launch @mark({{.*}}label = "over"{{.*}}waits = array<i64: [[GRADIENT]]>
plan.module @columns {
  %w = plan.buffer persistent param : memref<4x8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<4x8xf32>
  plan.kernel @adamw rows 4 grain 4 [memref<4x8xf32>, memref<4x8xf32>] {}
  plan.kernel @mark rows 8 grain 8 [memref<8x8xf32>, memref<8x4xf32, strided<[8, 1]>>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<8x8xf32>
    plan.input "x" = %x values 0 : memref<8x8xf32>
    %dy = plan.buffer transient other : memref<8x8xf32>
    %left = plan.view %dy plus 0 : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %right = plan.view %dy plus 4 : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %dw = plan.buffer transient other : memref<4x8xf32>
    plan.launch @mark(read %x : memref<8x8xf32>, write %right : memref<8x4xf32, strided<[8, 1]>>) {label = "first"}
    plan.matmul(%right : memref<8x4xf32, strided<[8, 1]>>, %x : memref<8x8xf32>) -> (%dw : memref<4x8xf32>) {transpose_a, label = "gradient"}
    plan.launch @adamw(read %dw : memref<4x8xf32>, update %w : memref<4x8xf32>) {label = "adamw"}
    plan.launch @mark(read %x : memref<8x8xf32>, write %left : memref<8x4xf32, strided<[8, 1]>>) {label = "beside"}
    plan.launch @mark(read %x : memref<8x8xf32>, write %right : memref<8x4xf32, strided<[8, 1]>>) {label = "over"}
    plan.output "dy" = %dy : memref<8x8xf32>
  }
}
