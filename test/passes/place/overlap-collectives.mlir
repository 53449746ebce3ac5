// RUN: hydra-opt %s --split-input-file --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", rates = {memory_bandwidth = 1.0e12, cache_bandwidth = 1.0e12, vector_flops = 1.0e12, launch_seconds = 1.0e-6, matmul_flops = {f32 = 1.0e12}, attention_flops = {f32 = 1.0e12}, links = {node_ranks = 8.0, node_bandwidth = 1.0e12, node_seconds = 2.0e-6, network_bandwidth = 1.0e12, network_seconds = 2.0e-6, overlap = 0.5}}>}' --hydra-overlap-collectives | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", rates = {memory_bandwidth = 1.0e12, cache_bandwidth = 1.0e12, vector_flops = 1.0e12, launch_seconds = 1.0e-6, matmul_flops = {f32 = 1.0e12}, attention_flops = {f32 = 1.0e12}, links = {node_ranks = 8.0, node_bandwidth = 1.0e12, node_seconds = 2.0e-6, network_bandwidth = 1.0e12, network_seconds = 2.0e-6, overlap = 0.5}}>}' --hydra-overlap-collectives=ahead=0 | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --split-input-file --hydra-overlap-collectives | FileCheck %s --check-prefix=UNTIMED

// Each kernel takes 1 us here, each exchange 2. The second gather stands two kernels before its reader, where 2.4 us
// are left, a fifth more than predicted. The exchange of a gradient goes as soon as that is there; the third gather
// would not end before its reader behind it, and so goes before it. The gather of what a kernel has just written stays
// behind that kernel.
// CHECK-LABEL: plan.program @train
// CHECK: plan.all_gather{{.*}}label = "first"
// CHECK: label = "reads first"
// CHECK: label = "one"
// CHECK: label = "two"
// CHECK: plan.all_gather{{.*}}label = "second"
// CHECK: label = "three"
// CHECK: label = "four"
// CHECK: label = "reads second"
// CHECK: plan.all_gather{{.*}}label = "third"
// CHECK: label = "gradient"
// CHECK: plan.all_to_all
// CHECK: label = "reads exchanged"
// CHECK: label = "reads third"
// CHECK: label = "writes"
// CHECK: plan.all_gather{{.*}}label = "of what was written"

// Without rates nothing is predicted, and nothing moves.
// UNTIMED: label = "four"
// UNTIMED: label = "second"
// UNTIMED: label = "reads second"
plan.module @step {
  plan.mesh_axis "data" 2
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @two rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  %a = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "a" = %a init <zeros> : memref<4xf32>
  %b = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "b" = %b init <zeros> : memref<4xf32>
  %c = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "c" = %c init <zeros> : memref<4xf32>
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %ga = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%a : memref<4xf32>) -> (%ga : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "first"}
    %x1 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x : memref<8xf32>, read %ga : memref<8xf32>, write %x1 : memref<8xf32>) {label = "reads first"}
    %x2 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x1 : memref<8xf32>, write %x2 : memref<8xf32>) {label = "one"}
    %x3 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x2 : memref<8xf32>, write %x3 : memref<8xf32>) {label = "two"}
    %x4 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x3 : memref<8xf32>, write %x4 : memref<8xf32>) {label = "three"}
    %x5 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x4 : memref<8xf32>, write %x5 : memref<8xf32>) {label = "four"}
    %gb = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%b : memref<4xf32>) -> (%gb : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "second"}
    %x6 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x5 : memref<8xf32>, read %gb : memref<8xf32>, write %x6 : memref<8xf32>) {label = "reads second"}
    %x7 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x6 : memref<8xf32>, write %x7 : memref<8xf32>) {label = "five"}
    %x8 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x7 : memref<8xf32>, write %x8 : memref<8xf32>) {label = "six"}
    %x9 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x8 : memref<8xf32>, write %x9 : memref<8xf32>) {label = "gradient"}
    %sent = plan.buffer transient comm : memref<8xf32>
    plan.all_to_all(%x9 : memref<8xf32>) -> (%sent : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "exchange"}
    %y = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %sent : memref<8xf32>, write %y : memref<8xf32>) {label = "reads exchanged"}
    %gc = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%c : memref<4xf32>) -> (%gc : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "third"}
    %x10 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x8 : memref<8xf32>, read %gc : memref<8xf32>, write %x10 : memref<8xf32>) {label = "reads third"}
    %x11 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x9 : memref<8xf32>, read %y : memref<8xf32>, write %x11 : memref<8xf32>) {label = "writes"}
    %part = plan.view %x11 plus 0 : memref<8xf32> to memref<4xf32>
    %gd = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%part : memref<4xf32>) -> (%gd : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "of what was written"}
    %x12 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x10 : memref<8xf32>, read %gd : memref<8xf32>, write %x12 : memref<8xf32>) {label = "seven"}
    plan.output "y" = %x12 : memref<8xf32>
  }
}

// -----

// A gather that could begin right behind the kernel whose result it sends stays behind that kernel, where the next
// block was a gather that has moved up before it.
// CHECK-LABEL: plan.module @order
// CHECK: label = "early"
// CHECK: label = "writes"
// CHECK: label = "of what was written"
// CHECK: label = "end"
plan.module @order {
  plan.mesh_axis "data" 2
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @two rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  %a = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "a" = %a init <zeros> : memref<4xf32>
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %x1 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x : memref<8xf32>, write %x1 : memref<8xf32>) {label = "one"}
    %x2 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x1 : memref<8xf32>, write %x2 : memref<8xf32>) {label = "two"}
    %x3 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x2 : memref<8xf32>, write %x3 : memref<8xf32>) {label = "three"}
    %x4 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x3 : memref<8xf32>, write %x4 : memref<8xf32>) {label = "writes"}
    %ga = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%a : memref<4xf32>) -> (%ga : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "early"}
    %x5 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x3 : memref<8xf32>, read %ga : memref<8xf32>, write %x5 : memref<8xf32>) {label = "reads early"}
    %sent = plan.buffer transient comm : memref<8xf32>
    plan.all_to_all(%x4 : memref<8xf32>) -> (%sent : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "exchange"}
    %x6 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x5 : memref<8xf32>, write %x6 : memref<8xf32>) {label = "four"}
    %x7 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x6 : memref<8xf32>, write %x7 : memref<8xf32>) {label = "five"}
    %part = plan.view %x4 plus 0 : memref<8xf32> to memref<4xf32>
    %gb = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%part : memref<4xf32>) -> (%gb : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "of what was written"}
    %x8 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x7 : memref<8xf32>, read %gb : memref<8xf32>, write %x8 : memref<8xf32>) {label = "reads written"}
    %x9 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x8 : memref<8xf32>, read %sent : memref<8xf32>, write %x9 : memref<8xf32>) {label = "end"}
    plan.output "y" = %x9 : memref<8xf32>
  }
}

// -----

// A gather of what another one brings, in two levels, moves with that: both take 4 us, and a fifth more is left.
// CHECK-LABEL: plan.module @levels
// CHECK: label = "one"
// CHECK: label = "two"
// CHECK: plan.all_gather{{.*}}label = "across"
// CHECK: plan.all_gather{{.*}}label = "inside"
// CHECK: label = "three"
// CHECK: label = "six"
// CHECK: label = "reads"
plan.module @levels {
  plan.mesh_axis "node" 2
  plan.mesh_axis "data" 2
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @two rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  %a = plan.buffer persistent param : memref<2xf32>
  plan.variable parameter "a" = %a member <[8] at 0 over "data*node"> init <zeros> : memref<2xf32>
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %x1 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x : memref<8xf32>, write %x1 : memref<8xf32>) {label = "one"}
    %x2 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x1 : memref<8xf32>, write %x2 : memref<8xf32>) {label = "two"}
    %x3 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x2 : memref<8xf32>, write %x3 : memref<8xf32>) {label = "three"}
    %x4 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x3 : memref<8xf32>, write %x4 : memref<8xf32>) {label = "four"}
    %x5 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x4 : memref<8xf32>, write %x5 : memref<8xf32>) {label = "five"}
    %x6 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x5 : memref<8xf32>, write %x6 : memref<8xf32>) {label = "six"}
    %ga = plan.buffer transient comm : memref<4xf32>
    plan.all_gather(%a : memref<2xf32>) -> (%ga : memref<4xf32>) along 0 {wire_bytes = 8 : i64, label = "across"}
    %gb = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%ga : memref<4xf32>) -> (%gb : memref<8xf32>) along 1 {wire_bytes = 16 : i64, label = "inside"}
    %y = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x6 : memref<8xf32>, read %gb : memref<8xf32>, write %y : memref<8xf32>) {label = "reads"}
    plan.output "y" = %y : memref<8xf32>
  }
}

// -----

// A gather that stands long before its reader moves later, to where it still ends in time; with no room ahead, right
// before its reader. What only the next step reads stays where it is.
// CHECK-LABEL: plan.module @later
// CHECK: label = "of the next step"
// CHECK: label = "four"
// CHECK: plan.all_gather{{.*}}label = "much too early"
// CHECK: label = "five"
// CHECK: label = "reads"
// NONE-LABEL: plan.module @later
// NONE: label = "of the next step"
// NONE: label = "six"
// NONE: plan.all_gather{{.*}}label = "much too early"
// NONE: label = "reads"
plan.module @later {
  plan.mesh_axis "data" 2
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @two rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  %a = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "a" = %a init <zeros> : memref<4xf32>
  %b = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "b" = %b init <zeros> : memref<4xf32>
  %c = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "c" = %c init <zeros> : memref<8xf32>
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %ga = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%a : memref<4xf32>) -> (%ga : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "much too early"}
    plan.all_gather(%b : memref<4xf32>) -> (%c : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "of the next step"}
    %x1 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x : memref<8xf32>, write %x1 : memref<8xf32>) {label = "one"}
    %x2 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x1 : memref<8xf32>, write %x2 : memref<8xf32>) {label = "two"}
    %x3 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x2 : memref<8xf32>, write %x3 : memref<8xf32>) {label = "three"}
    %x4 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x3 : memref<8xf32>, write %x4 : memref<8xf32>) {label = "four"}
    %x5 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x4 : memref<8xf32>, write %x5 : memref<8xf32>) {label = "five"}
    %x6 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x5 : memref<8xf32>, write %x6 : memref<8xf32>) {label = "six"}
    %y = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x6 : memref<8xf32>, read %ga : memref<8xf32>, write %y : memref<8xf32>) {label = "reads"}
    plan.output "y" = %y : memref<8xf32>
  }
}

// -----

// An operand that is written before the gather's reader begins is the end of how late it can begin.
// CHECK-LABEL: plan.module @overwritten
// CHECK: label = "two"
// CHECK: plan.all_gather{{.*}}label = "of what is overwritten"
// CHECK: label = "three"
// CHECK: label = "overwrites"
// NONE-LABEL: plan.module @overwritten
// NONE: label = "four"
// NONE: plan.all_gather{{.*}}label = "of what is overwritten"
// NONE: label = "overwrites"
plan.module @overwritten {
  plan.mesh_axis "data" 2
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @two rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  %a = plan.buffer persistent param : memref<8xf32>
  plan.variable parameter "a" = %a init <zeros> : memref<8xf32>
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %part = plan.view %a plus 0 : memref<8xf32> to memref<4xf32>
    %ga = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%part : memref<4xf32>) -> (%ga : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "of what is overwritten"}
    %x1 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x : memref<8xf32>, write %x1 : memref<8xf32>) {label = "one"}
    %x2 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x1 : memref<8xf32>, write %x2 : memref<8xf32>) {label = "two"}
    %x3 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x2 : memref<8xf32>, write %x3 : memref<8xf32>) {label = "three"}
    %x4 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x3 : memref<8xf32>, write %x4 : memref<8xf32>) {label = "four"}
    plan.launch @k(read %x4 : memref<8xf32>, write %a : memref<8xf32>) {label = "overwrites"}
    %x5 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %a : memref<8xf32>, write %x5 : memref<8xf32>) {label = "five"}
    %y = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x5 : memref<8xf32>, read %ga : memref<8xf32>, write %y : memref<8xf32>) {label = "reads"}
    plan.output "y" = %y : memref<8xf32>
  }
}

// -----

// Where the links cannot keep up, gathers go in the order in which they are needed. The third would delay the gather of
// what "makes" has made, which is needed at once, and waits for it; the second would be late behind that.
// CHECK-LABEL: plan.module @short
// CHECK: plan.all_gather{{.*}}label = "first"
// CHECK: plan.all_gather{{.*}}label = "second"
// CHECK: label = "reads first"
// CHECK: label = "makes"
// CHECK: plan.all_gather{{.*}}label = "made"
// CHECK: label = "reads made"
// CHECK: plan.all_gather{{.*}}label = "third"
// CHECK: label = "reads second"
// CHECK: label = "reads third"
// CHECK: label = "end"
plan.module @short {
  plan.mesh_axis "data" 2
  plan.kernel @k rows 8 grain 8 [memref<8xf32>, memref<8xf32>] {}
  plan.kernel @two rows 8 grain 8 [memref<8xf32>, memref<8xf32>, memref<8xf32>] {}
  %a = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "a" = %a init <zeros> : memref<4xf32>
  %b = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "b" = %b init <zeros> : memref<4xf32>
  %c = plan.buffer persistent param : memref<4xf32>
  plan.variable parameter "c" = %c init <zeros> : memref<4xf32>
  plan.program @train {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %ga = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%a : memref<4xf32>) -> (%ga : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "first"}
    %x1 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x : memref<8xf32>, read %ga : memref<8xf32>, write %x1 : memref<8xf32>) {label = "reads first"}
    %x2 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x1 : memref<8xf32>, write %x2 : memref<8xf32>) {label = "makes"}
    %part = plan.view %x2 plus 0 : memref<8xf32> to memref<4xf32>
    %gm = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%part : memref<4xf32>) -> (%gm : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "made"}
    %x3 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x2 : memref<8xf32>, read %gm : memref<8xf32>, write %x3 : memref<8xf32>) {label = "reads made"}
    %gb = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%b : memref<4xf32>) -> (%gb : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "second"}
    %x4 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x3 : memref<8xf32>, read %gb : memref<8xf32>, write %x4 : memref<8xf32>) {label = "reads second"}
    %gc = plan.buffer transient comm : memref<8xf32>
    plan.all_gather(%c : memref<4xf32>) -> (%gc : memref<8xf32>) along 0 {wire_bytes = 16 : i64, label = "third"}
    %x5 = plan.buffer transient other : memref<8xf32>
    plan.launch @two(read %x4 : memref<8xf32>, read %gc : memref<8xf32>, write %x5 : memref<8xf32>) {label = "reads third"}
    %x6 = plan.buffer transient other : memref<8xf32>
    plan.launch @k(read %x5 : memref<8xf32>, write %x6 : memref<8xf32>) {label = "end"}
    plan.output "y" = %x6 : memref<8xf32>
  }
}
