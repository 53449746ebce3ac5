// RUN: hydra-opt %s --split-input-file --hydra-offload-moments='least=32' | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-offload-moments='least=32' --hydra-batch-launches | FileCheck %s --check-prefix=BATCH
// RUN: hydra-opt %s --split-input-file --hydra-offload-moments='least=32' --hydra-assign-streams --hydra-plan-memory | FileCheck %s --check-prefix=STREAMS

// Moments live in the host's memory and visit slots of transient memory, which take turns: those of the next two visits
// may arrive while one is under way, the fourth visit's come into the slot that is free by then. What an update only
// reads is not taken back. Parameters, and moments below the bound, stay.
// CHECK-LABEL: plan.module @updates
// CHECK: %[[M1:[a-z0-9]+]] = plan.buffer host opt_state : memref<4x4xf32>
// CHECK-NEXT: %[[M2:[a-z0-9]+]] = plan.buffer host opt_state : memref<4x4xf32>
// CHECK-NEXT: plan.buffer persistent param
// CHECK-NEXT: %[[M3:[a-z0-9]+]] = plan.buffer host
// CHECK-NEXT: plan.buffer persistent param
// CHECK-NEXT: %[[M4:[a-z0-9]+]] = plan.buffer host
// CHECK-NEXT: plan.buffer persistent param
// CHECK-NEXT: %[[M5:[a-z0-9]+]] = plan.buffer host
// CHECK-NEXT: %[[SMALL:[a-z0-9]+]] = plan.buffer persistent opt_state : memref<4xf32>
// CHECK: plan.variable moment "a.m" = %[[M1]]
// CHECK: plan.program @train
// CHECK: %[[A:[a-z0-9]+]] = plan.buffer transient opt_state : memref<128xf32>
// CHECK-NEXT: %[[B:[a-z0-9]+]] = plan.buffer transient opt_state : memref<64xf32>
// CHECK-NEXT: %[[C:[a-z0-9]+]] = plan.buffer transient opt_state : memref<64xf32>
// CHECK-NEXT: %[[A1:[a-z0-9]+]] = plan.view %[[A]] plus 0 : memref<128xf32> to memref<4x4xf32>
// CHECK-NEXT: plan.transfer(%[[M1]] : memref<4x4xf32>) -> (%[[A1]] : memref<4x4xf32>) {bytes = 64 : i64, label = "transfer", op_class = #hydra.op_class<transfer>}
// CHECK-NEXT: %[[A2:[a-z0-9]+]] = plan.view %[[A]] plus 64
// CHECK-NEXT: plan.transfer(%[[M2]] : memref<4x4xf32>) -> (%[[A2]]
// CHECK: %[[READ:[a-z0-9]+]] = plan.view %[[A]] plus 64
// CHECK: %[[B1:[a-z0-9]+]] = plan.view %[[B]] plus 0
// CHECK-NEXT: plan.transfer(%[[M3]] : memref<4x4xf32>) -> (%[[B1]]
// CHECK-NEXT: plan.launch @adam(read %{{.*}}, update %{{.*}}, update %{{.*}}, read %[[READ]]
// CHECK-NEXT: %[[C1:[a-z0-9]+]] = plan.view %[[C]] plus 0
// CHECK-NEXT: plan.transfer(%[[M4]] : memref<4x4xf32>) -> (%[[C1]]
// CHECK-NEXT: plan.transfer(%[[A1]] : memref<4x4xf32>) -> (%[[M1]] : memref<4x4xf32>)
// CHECK: plan.launch @momentum
// CHECK-NEXT: %[[A3:[a-z0-9]+]] = plan.view %[[A]] plus 0
// CHECK-NEXT: plan.transfer(%[[M5]] : memref<4x4xf32>) -> (%[[A3]]
// CHECK-NEXT: plan.transfer(%[[B1]] : memref<4x4xf32>) -> (%[[M3]]
// CHECK: plan.launch @momentum
// CHECK-NEXT: plan.transfer(%[[C1]] : memref<4x4xf32>) -> (%[[M4]]
// CHECK: plan.launch @momentum
// CHECK-NEXT: plan.transfer(%[[A3]] : memref<4x4xf32>) -> (%[[M5]]
// CHECK-NEXT: plan.launch @tiny(read %{{.*}}, update %[[SMALL]]

// Updates of one kernel share no launch: each waits for its own moments.
// BATCH-LABEL: plan.module @updates
// BATCH: plan.launch @momentum
// BATCH: plan.launch @momentum
// BATCH: plan.launch @momentum

// Both directions have streams of their own. What comes into a slot waits until what was there has been taken back.
// STREAMS-LABEL: plan.module @updates
// STREAMS-SAME: host 1280
// STREAMS: plan.program @train streams 6
// STREAMS: plan.transfer{{.*}}stream = 4
// STREAMS: plan.transfer{{.*}}signals = [[IN:[0-9]+]] : i64, stream = 4
// STREAMS: plan.transfer{{.*}}stream = 4
// STREAMS: plan.launch @adam{{.*}}signals = [[UPDATED:[0-9]+]] : i64, stream = 1 : i64, waits = array<i64: [[IN]]>
// STREAMS: plan.transfer{{.*}}stream = 4 : i64}
// STREAMS: plan.transfer{{.*}}signals = [[BACK:[0-9]+]] : i64, stream = 5 : i64, waits = array<i64: [[UPDATED]]>
// STREAMS: plan.launch @momentum{{.*}}stream = 1
// STREAMS: plan.transfer{{.*}}stream = 4 : i64, waits = array<i64: {{.*}}[[BACK]]>
plan.module @updates {
  %a = plan.buffer persistent param : memref<4x4xf32>
  %m1 = plan.buffer persistent opt_state : memref<4x4xf32>
  %m2 = plan.buffer persistent opt_state : memref<4x4xf32>
  %b = plan.buffer persistent param : memref<4x4xf32>
  %m3 = plan.buffer persistent opt_state : memref<4x4xf32>
  %c = plan.buffer persistent param : memref<4x4xf32>
  %m4 = plan.buffer persistent opt_state : memref<4x4xf32>
  %d = plan.buffer persistent param : memref<4x4xf32>
  %m6 = plan.buffer persistent opt_state : memref<4x4xf32>
  %m5 = plan.buffer persistent opt_state : memref<4xf32>
  plan.variable parameter "a" = %a init <zeros> : memref<4x4xf32>
  plan.variable moment "a.m" = %m1 init <zeros> of "a" : memref<4x4xf32>
  plan.variable moment "a.v" = %m2 init <zeros> of "a" : memref<4x4xf32>
  plan.variable parameter "b" = %b init <zeros> : memref<4x4xf32>
  plan.variable moment "b.m" = %m3 init <zeros> of "b" : memref<4x4xf32>
  plan.variable parameter "c" = %c init <zeros> : memref<4x4xf32>
  plan.variable moment "c.m" = %m4 init <zeros> of "c" : memref<4x4xf32>
  plan.variable parameter "d" = %d init <zeros> : memref<4x4xf32>
  plan.variable moment "d.m" = %m6 init <zeros> of "d" : memref<4x4xf32>
  plan.variable moment "tiny" = %m5 init <zeros> of "c" : memref<4xf32>
  plan.kernel @adam rows 4 grain 4 [memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>] {}
  plan.kernel @momentum rows 4 grain 4 [memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>] {}
  plan.kernel @tiny rows 4 grain 4 [memref<4x4xf32>, memref<4xf32>] {}
  plan.program @train {
    %g = plan.buffer transient grad : memref<4x4xf32>
    plan.input "g" = %g values 0 : memref<4x4xf32>
    plan.launch @adam(read %g : memref<4x4xf32>, update %a : memref<4x4xf32>, update %m1 : memref<4x4xf32>, read %m2 : memref<4x4xf32>) {label = "adam"}
    plan.launch @momentum(read %g : memref<4x4xf32>, update %m3 : memref<4x4xf32>, update %b : memref<4x4xf32>) {label = "momentum"}
    plan.launch @momentum(read %g : memref<4x4xf32>, update %m4 : memref<4x4xf32>, update %c : memref<4x4xf32>) {label = "momentum"}
    plan.launch @momentum(read %g : memref<4x4xf32>, update %m6 : memref<4x4xf32>, update %d : memref<4x4xf32>) {label = "momentum"}
    plan.launch @tiny(read %g : memref<4x4xf32>, update %m5 : memref<4xf32>) {label = "tiny"}
  }
}

// -----

// Steps that work on the same moments are one visit, whatever stands between: this one is written, then read by
// another step. What a loop touches stays on the device.
// CHECK-LABEL: plan.module @several
// CHECK: %[[M:[a-z0-9]+]] = plan.buffer host opt_state
// CHECK: plan.buffer persistent opt_state
// CHECK: plan.transfer(%[[M]]
// CHECK: plan.launch @momentum
// CHECK-NEXT: plan.fill
// CHECK-NOT: plan.transfer
// CHECK: plan.matmul
// CHECK-NEXT: plan.transfer
// CHECK: plan.loop
// CHECK-NOT: plan.transfer
plan.module @several {
  %m = plan.buffer persistent opt_state : memref<4x4xf32>
  %n = plan.buffer persistent opt_state : memref<4x4xf32>
  plan.variable moment "m" = %m init <zeros> : memref<4x4xf32>
  plan.variable moment "n" = %n init <zeros> : memref<4x4xf32>
  plan.kernel @momentum rows 4 grain 4 [memref<4x4xf32>, memref<4x4xf32>] {}
  plan.program @train {
    %g = plan.buffer transient grad : memref<4x4xf32>
    %x = plan.buffer transient other : memref<4x4xf32>
    %y = plan.buffer transient other : memref<4x4xf32>
    plan.input "g" = %g values 0 : memref<4x4xf32>
    plan.launch @momentum(read %g : memref<4x4xf32>, update %m : memref<4x4xf32>) {label = "momentum"}
    plan.fill 1.0 -> (%y : memref<4x4xf32>) {label = "fill"}
    plan.matmul(%m : memref<4x4xf32>, %y : memref<4x4xf32>) -> (%x : memref<4x4xf32>) {label = "square"}
    plan.loop 2 () {
      plan.launch @momentum(read %g : memref<4x4xf32>, update %n : memref<4x4xf32>) {label = "momentum"}
    }
    plan.output "x" = %x : memref<4x4xf32>
  }
}

// -----

// What is copied into a moment at the end of the program is copied behind what makes it, so that no visit is longer than its
// update.
// CHECK-LABEL: plan.module @copied
// CHECK: %[[M:[a-z0-9]+]] = plan.buffer host opt_state
// CHECK: %[[N:[a-z0-9]+]] = plan.buffer host opt_state
// CHECK: plan.launch @momentum
// CHECK: plan.copy
// CHECK-NEXT: plan.transfer({{.*}}) -> (%[[M]]
// CHECK: plan.launch @momentum
// CHECK: plan.copy
// CHECK-NEXT: plan.transfer({{.*}}) -> (%[[N]]
// CHECK: plan.fill
plan.module @copied {
  %m = plan.buffer persistent opt_state : memref<4x4xf32>
  %n = plan.buffer persistent opt_state : memref<4x4xf32>
  plan.variable moment "m" = %m init <zeros> : memref<4x4xf32>
  plan.variable moment "n" = %n init <zeros> : memref<4x4xf32>
  plan.kernel @momentum rows 4 grain 4 [memref<4x4xf32>, memref<4x4xf32>] {}
  plan.program @train {
    %x = plan.buffer transient other : memref<4x4xf32>
    %y = plan.buffer transient other : memref<4x4xf32>
    %z = plan.buffer transient other : memref<4x4xf32>
    plan.launch @momentum(read %m : memref<4x4xf32>, write %x : memref<4x4xf32>) {label = "momentum"}
    plan.launch @momentum(read %n : memref<4x4xf32>, write %y : memref<4x4xf32>) {label = "momentum"}
    plan.fill 1.0 -> (%z : memref<4x4xf32>) {label = "fill"}
    plan.copy(%x : memref<4x4xf32>) -> (%m : memref<4x4xf32>)
    plan.copy(%y : memref<4x4xf32>) -> (%n : memref<4x4xf32>)
    plan.output "z" = %z : memref<4x4xf32>
  }
}
