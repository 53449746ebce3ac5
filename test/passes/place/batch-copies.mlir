// RUN: hydra-opt %s --split-input-file --hydra-batch-copies | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-batch-copies=take-moments | FileCheck %s --check-prefix=MOMENTS

// Two copies and a fill run at one place although kernels run between them: behind the kernel that one of them needs,
// and before the one that needs another.
// CHECK-LABEL: plan.module @between
// CHECK: plan.launch @k(read %[[A:[a-z0-9]+]] : memref<8xf32>, write %[[C:[a-z0-9]+]] : memref<8xf32>)
// CHECK: plan.copy(%[[A]] : memref<8xf32>) -> (%[[B:[a-z0-9]+]] : memref<8xf32>) {plan.together = 0 : i64}
// CHECK: plan.copy(%[[C]] : memref<8xf32>) -> (%{{[a-z0-9]+}} : memref<8xf32>) {plan.together = 0 : i64}
// CHECK: plan.fill {{.*}} {plan.together = 0 : i64}
// CHECK: plan.launch @k(read %[[B]]
plan.module @between {
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.program @p {
    %a = plan.buffer transient other : memref<8xf32>
    plan.input "a" = %a values 0 : memref<8xf32>
    %b = plan.buffer transient other : memref<8xf32>
    plan.copy(%a : memref<8xf32>) -> (%b : memref<8xf32>)
    %c = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %a : memref<8xf32>, write %c : memref<8xf32>)
    %d = plan.buffer transient other : memref<8xf32>
    plan.copy(%c : memref<8xf32>) -> (%d : memref<8xf32>)
    %e = plan.buffer transient other : memref<8xf32>
    plan.fill 1.0 -> (%e : memref<8xf32>)
    %f = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %b : memref<8xf32>, write %f : memref<8xf32>)
    plan.output "d" = %d : memref<8xf32>
    plan.output "e" = %e : memref<8xf32>
    plan.output "f" = %f : memref<8xf32>
  }
}

// -----

// A copy of what another one makes stays behind it, and so does one that writes what another reads.
// CHECK-LABEL: plan.module @chain
// CHECK-NOT: plan.together
// CHECK: plan.output
plan.module @chain {
  plan.program @p {
    %a = plan.buffer transient other : memref<8xf32>
    %b = plan.buffer transient other : memref<8xf32>
    %c = plan.buffer transient other : memref<8xf32>
    plan.input "a" = %a values 0 : memref<8xf32>
    plan.copy(%a : memref<8xf32>) -> (%b : memref<8xf32>)
    plan.copy(%b : memref<8xf32>) -> (%c : memref<8xf32>)
    plan.copy(%c : memref<8xf32>) -> (%a : memref<8xf32>)
    plan.output "c" = %c : memref<8xf32>
  }
}

// -----

// Columns of a matrix are apart, although their bytes lie between each other; unless some are the same.
// CHECK-LABEL: plan.module @columns
// CHECK: plan.copy({{.*}}) -> (%{{[a-z0-9]+}} : memref<4x2xf32, strided<[6, 1]>>) {plan.together = 0 : i64}
// CHECK: plan.copy({{.*}}) -> (%{{[a-z0-9]+}} : memref<4x4xf32, strided<[6, 1]>>) {plan.together = 0 : i64}
// CHECK: plan.copy({{.*}}) -> (%{{[a-z0-9]+}} : memref<4x2xf32, strided<[6, 1]>>){{$}}
plan.module @columns {
  plan.program @p {
    %a = plan.buffer transient other : memref<4x2xf32>
    %b = plan.buffer transient other : memref<4x4xf32>
    plan.input "a" = %a values 0 : memref<4x2xf32>
    plan.input "b" = %b values 0 : memref<4x4xf32>
    %both = plan.buffer transient other : memref<4x6xf32>
    %left = plan.view %both plus 0 : memref<4x6xf32> to memref<4x2xf32, strided<[6, 1]>>
    %right = plan.view %both plus 2 : memref<4x6xf32> to memref<4x4xf32, strided<[6, 1]>>
    %middle = plan.view %both plus 1 : memref<4x6xf32> to memref<4x2xf32, strided<[6, 1]>>
    plan.copy(%a : memref<4x2xf32>) -> (%left : memref<4x2xf32, strided<[6, 1]>>)
    plan.copy(%b : memref<4x4xf32>) -> (%right : memref<4x4xf32, strided<[6, 1]>>)
    plan.copy(%a : memref<4x2xf32>) -> (%middle : memref<4x2xf32, strided<[6, 1]>>)
    plan.output "both" = %both : memref<4x6xf32>
  }
}

// -----

// Moments are copied one after the other, as the host gives them; together where they stay on the device.
// CHECK-LABEL: plan.module @moments
// CHECK-NOT: plan.together
// MOMENTS-LABEL: plan.module @moments
// MOMENTS: plan.copy({{.*}}plan.together = 0
// MOMENTS: plan.copy({{.*}}plan.together = 0
plan.module @moments {
  %m1 = plan.buffer persistent opt_state : memref<8xf32>
  %m2 = plan.buffer persistent opt_state : memref<8xf32>
  plan.variable moment "a.m" = %m1 init <zeros> of "a" : memref<8xf32>
  plan.variable moment "b.m" = %m2 init <zeros> of "b" : memref<8xf32>
  plan.program @p {
    %a = plan.buffer transient other : memref<8xf32>
    plan.input "a" = %a values 0 : memref<8xf32>
    plan.copy(%a : memref<8xf32>) -> (%m1 : memref<8xf32>)
    plan.copy(%a : memref<8xf32>) -> (%m2 : memref<8xf32>)
  }
}

// -----

// In the cases of a switch as well; but not in loops, whose iterations move buffers.
// CHECK-LABEL: plan.module @inside
// CHECK: plan.loop
// CHECK: plan.copy
// CHECK-NOT: plan.together
// CHECK: plan.switch
// CHECK: plan.copy({{.*}}plan.together = 0
// CHECK: plan.copy({{.*}}plan.together = 0
plan.module @inside {
  plan.program @p {
    %n = plan.buffer transient other : memref<i32>
    %a = plan.buffer transient other : memref<8xf32>
    %b = plan.buffer transient other : memref<8xf32>
    %c = plan.buffer transient other : memref<8xf32>
    plan.input "n" = %n values 0 : memref<i32>
    plan.input "a" = %a values 0 : memref<8xf32>
    plan.loop 2 () {
      plan.copy(%a : memref<8xf32>) -> (%b : memref<8xf32>)
      plan.copy(%a : memref<8xf32>) -> (%c : memref<8xf32>)
    }
    plan.switch %n by 1 : memref<i32> {
      plan.copy(%a : memref<8xf32>) -> (%b : memref<8xf32>)
      plan.copy(%a : memref<8xf32>) -> (%c : memref<8xf32>)
    }
    plan.output "b" = %b : memref<8xf32>
  }
}

// -----

// What only an update reads runs beside the main stream: it is not joined with what that reads.
// CHECK-LABEL: plan.module @sides
// CHECK-NOT: plan.together
// CHECK: plan.output
plan.module @sides {
  %w = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "w" = %w init <zeros> : memref<8xf32>
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @adamw rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.program @train {
    %a = plan.buffer transient other : memref<8xf32>
    plan.input "a" = %a values 0 : memref<8xf32>
    %g = plan.buffer transient grad : memref<8xf32>
    plan.copy(%a : memref<8xf32>) -> (%g : memref<8xf32>)
    %b = plan.buffer transient other : memref<8xf32>
    plan.copy(%a : memref<8xf32>) -> (%b : memref<8xf32>)
    plan.launch @adamw(read %g : memref<8xf32>, update %w : memref<8xf32>)
    %f = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %b : memref<8xf32>, write %f : memref<8xf32>)
    plan.output "f" = %f : memref<8xf32>
  }
}
