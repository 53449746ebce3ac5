// RUN: split-file %s %t
// RUN: hydra-opt %t/step.mlir --hydra-bind="batch=6 mesh=data:2" --hydra-differentiate --hydra-partition | FileCheck %t/step.mlir
// RUN: hydra-opt %t/step.mlir --hydra-bind="batch=6 mesh=data:2" --hydra-differentiate --hydra-optimizer="accum=2 clip=false" --hydra-partition | FileCheck %t/step.mlir --check-prefix=ACCUM
// RUN: hydra-opt %t/step.mlir --hydra-bind="batch=6 mesh=data:2" --hydra-differentiate --hydra-optimizer="accum=2 clip=false batch-filter=true" --hydra-partition | FileCheck %t/step.mlir --check-prefix=LIMIT
// RUN: hydra-opt %t/step.mlir --hydra-bind="batch=6 mesh=data:2" --hydra-differentiate --hydra-optimizer="accum=2 clip=false sum-losses=true" --hydra-partition | FileCheck %t/step.mlir --check-prefix=TOLD
// RUN: hydra-opt %t/step.mlir --hydra-bind="batch=6 mesh=data:2" --hydra-differentiate --hydra-optimizer="accum=2 clip=false exchange-last" --hydra-partition | FileCheck %t/step.mlir --check-prefix=LAST
// RUN: hydra-opt %t/step.mlir --hydra-bind="batch=8 mesh=node:2,gpu:2" --hydra-differentiate --hydra-optimizer="accum=2 exchange-last" --hydra-partition | FileCheck %t/step.mlir --check-prefix=NODES
// RUN: hydra-opt %t/loop.mlir --hydra-bind="batch=4 set=S=9 mesh=data:2" --hydra-differentiate --hydra-partition | FileCheck %t/loop.mlir
// RUN: hydra-opt %t/numbers.mlir --hydra-bind="batch=4 set=S=9 mesh=data:2" --hydra-apply-dropout="programs=loss" --hydra-differentiate --hydra-partition | FileCheck %t/numbers.mlir
// RUN: hydra-opt %t/routing.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition | FileCheck %t/routing.mlir
// RUN: hydra-opt %t/counts.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition | FileCheck %t/counts.mlir
// RUN: hydra-opt %t/groups.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition | FileCheck %t/groups.mlir
// RUN: hydra-opt %t/blocks.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition | FileCheck %t/blocks.mlir
// RUN: hydra-opt %t/forms.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition | FileCheck %t/forms.mlir
// RUN: hydra-opt %t/forms.mlir --hydra-bind="batch=12 mesh=node:2,gpu:3" --hydra-partition | FileCheck %t/forms.mlir --check-prefix=TWO
// RUN: hydra-opt %t/forms.mlir --hydra-bind="batch=4" --hydra-partition | FileCheck %t/forms.mlir --check-prefix=ONE
// RUN: not hydra-opt %t/forms.mlir --hydra-bind="batch=5 mesh=data:2" --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=DIVIDE
// RUN: not hydra-opt %t/forms.mlir --hydra-bind="batch=4 mesh=data" 2>&1 | FileCheck %t/errors --check-prefix=READ
// RUN: not hydra-opt %t/flat.mlir --hydra-bind="batch=4 mesh=data:2" 2>&1 | FileCheck %t/errors --check-prefix=FLAT
// RUN: not hydra-opt %t/fused.mlir --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=RULE
// RUN: not hydra-opt %t/mixed.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=MIXED
// RUN: not hydra-opt %t/gathered.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-apply-dropout="programs=loss" --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=GATHERED
// RUN: not hydra-opt %t/offsets.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=OFFSETS
// RUN: not hydra-opt %t/own-numbers.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=NUMBERS
// RUN: hydra-opt %t/own-signs.mlir --hydra-bind="batch=4 mesh=data:2" --hydra-partition | FileCheck %t/own-signs.mlir
// RUN: not hydra-opt %t/inside.mlir --hydra-bind="batch=4 set=S=9 mesh=data:2" --hydra-partition 2>&1 | FileCheck %t/errors --check-prefix=INSIDE

//--- step.mlir
// The batch is local in shapes, and global in numbers. The loss divides by the labels that count on all
// ranks; gradients of parameters are summed over ranks where they are returned.
hydra.model @m version 1 {
  hydra.group @default sgd()
  hydra.param @w [5, 3] init = normal(1.0)
  // CHECK: hydra.model @m version 1 mesh <["data"], [2]>
  // CHECK: hydra.entry @loss(%x: tensor<3x3xf32>, %labels: tensor<3xi32>) stage(grad) ids(0, -5) rows <2 arguments[0, 0] results[-1, -1]>
  // CHECK: hydra.constant {{.*}}value = 6.0
  // CHECK: %[[HERE:.*]] = hydra.sum %{{.*}} axes = [0] : tensor<3xf32>
  // CHECK: %[[ALL:.*]] = hydra.all_reduce %[[HERE]] over = "data" ranks = 2 : tensor<f32>
  // CHECK: %[[COUNT:.*]] = hydra.max %[[ALL]]
  // CHECK: hydra.cross_entropy %{{.*}}, %labels, %[[COUNT]] saving : tensor<3x5xf32>, tensor<3xi32>, tensor<f32>
  // CHECK: hydra.cross_entropy_grad %{{.*}}, %{{.*}}, %labels, %{{.*}}, %[[COUNT]]
  // CHECK: %[[DW:.*]] = hydra.matmul %{{.*}} transpose_a : tensor<3x5xf32>, tensor<3x3xf32>
  // CHECK: %[[SUM:.*]] = hydra.all_reduce %[[DW]] over = "data" ranks = 2 : tensor<5x3xf32>
  // CHECK: hydra.return loss = %{{.*}}, grad @w = %[[SUM]]

  // Over micro-batches each adds its sum over ranks to what is there. Of the loss all ranks have the whole, and with it
  // whether it is finite.
  // ACCUM: hydra.entry @count(%labels: tensor<3xi32>) stage(count)
  // ACCUM: %[[SEEN:.*]] = hydra.use @labels.0
  // ACCUM: hydra.all_reduce %{{.*}}, %[[SEEN]] over = "data"
  // ACCUM: hydra.entry @accumulate
  // ACCUM: %[[LOSS:.*]] = hydra.all_reduce %loss over = "data" ranks = 2 : tensor<f32>
  // ACCUM-NOT: hydra.all_reduce
  // ACCUM: %[[BEFORE:.*]] = hydra.use @w.grad
  // ACCUM: %[[AFTER:.*]] = hydra.all_reduce %{{.*}}, %[[BEFORE]] over = "data" ranks = 2 : tensor<5x3xf32>, tensor<5x3xf32>
  // ACCUM-NOT: hydra.all_reduce
  // ACCUM: %[[FINITE:.*]] = hydra.use @loss.sum
  // ACCUM-NOT: hydra.all_reduce
  // ACCUM: hydra.compare %[[LOSS]], %{{.*}} is = "le"
  // ACCUM-NOT: hydra.all_reduce
  // ACCUM: hydra.select %{{.*}}, %[[FINITE]], %
  // ACCUM-NOT: hydra.all_reduce
  // ACCUM: updates(@w.grad = %[[AFTER]]
  // ACCUM: hydra.entry @apply
  // ACCUM-NOT: hydra.all_reduce

  // Where their mean has a limit, losses are added up in the order of micro-batches on one rank.
  // LIMIT: hydra.entry @accumulate
  // LIMIT: %[[BEFORE:.*]] = hydra.use @loss.sum
  // LIMIT: hydra.all_reduce %loss, %[[BEFORE]] over = "data" ranks = 2 : tensor<f32>, tensor<f32>

  // So they are where it is told.
  // TOLD: hydra.entry @accumulate
  // TOLD: %[[BEFORE:.*]] = hydra.use @loss.sum
  // TOLD: %[[AFTER:.*]] = hydra.all_reduce %loss, %[[BEFORE]] over = "data" ranks = 2 : tensor<f32>, tensor<f32>
  // TOLD: hydra.return loss = %{{.*}}, loss_sum = %[[AFTER]] updates({{.*}}@loss.sum = %[[AFTER]])
  // TOLD: hydra.entry @apply

  // Where they exchange once, each adds what its own rows give to its own part, and the update sums up the
  // parts. What losses divide by is known before.
  // LAST: hydra.state @w.grad [5, 3] init = zeros of @w as gradient_part
  // LAST: hydra.entry @count(%labels: tensor<3xi32>) stage(count)
  // LAST: hydra.all_reduce %{{.*}}, %{{.*}} over = "data"
  // LAST: hydra.entry @accumulate
  // LAST-NOT: hydra.all_reduce {{.*}}5x3
  // LAST: %[[BEFORE:.*]] = hydra.use @w.grad
  // LAST-NOT: hydra.all_reduce {{.*}}5x3
  // LAST: %[[AFTER:.*]] = hydra.add %[[BEFORE]], %{{.*}} : tensor<5x3xf32>
  // LAST-NOT: hydra.all_reduce {{.*}}5x3
  // LAST: updates(@w.grad = %[[AFTER]]
  // LAST: hydra.entry @apply
  // LAST: %[[PART:.*]] = hydra.use @w.grad
  // LAST: %[[SUM:.*]] = hydra.all_reduce %[[PART]] over = "data" ranks = 2 : tensor<5x3xf32>
  // LAST: hydra.sgd {{.*}}%[[SUM]]

  // Over two axes the inner one comes first, and the norm is that of the sum.
  // NODES: hydra.entry @apply
  // NODES: %[[OWN:.*]] = hydra.use @w.grad
  // NODES: %[[INNER:.*]] = hydra.all_reduce %[[OWN]] over = "gpu" ranks = 2 : tensor<5x3xf32>
  // NODES: %[[OUTER:.*]] = hydra.all_reduce %[[INNER]] over = "node" ranks = 2 : tensor<5x3xf32>
  // NODES: hydra.global_norm %[[OUTER]]
  hydra.entry @loss(%x: [B, 3] f32, %labels: [B] i32) dims(B) {
    %scaled = hydra.let %x * (1.0 * B)
    %z = hydra.let linear(%scaled, @w)
    %loss = hydra.let cross_entropy(%z, %labels)
    hydra.return loss = %loss
  }
}

//--- loop.mlir
// Bodies of loops are written for what they are given: rows of what is carried, and in the derivative the
// parts of the gradients of what all iterations read, which are summed over ranks behind the loop.
hydra.model @m version 1 {
  hydra.param @w [3] init = normal(1.0)
  hydra.param @start [3] init = zeros
  // CHECK: hydra.entry @scan_0_backward_0_rank_0(%chunk0: tensor<1x2x3xf32>, %carried0: tensor<2x3xf32>, %carried1: tensor<3xf32>, %kept0: tensor<3xf32>) scan <9
  // CHECK-NOT: hydra.all_reduce
  // CHECK: hydra.entry @scan_0_saving_0_rank_{{[0-9]+}}(%chunk0: tensor<2x1x3xf32>, %carried0: tensor<2x3xf32>, %kept0: tensor<3xf32>)
  // CHECK-NOT: hydra.all_reduce
  // CHECK: hydra.entry @loss
  // CHECK: %[[BACK:.*]]:{{[0-9]+}} = hydra.loop @scan_0_backward_0_rank
  // CHECK: hydra.all_reduce %[[BACK]]#{{[0-9]+}} over = "data" ranks = 2 : tensor<3xf32>
  hydra.entry @loss(%x: [B, S, 3] f32) dims(B, S) {
    %zero = hydra.let broadcast(@start, [B, 3])
    %end = hydra.scan axis = 1 chunk = 1 over(%row = %x) carry(%h = %zero) {
      %next = hydra.let tanh(%h * @w) + reshape(%row, [B, 3])
      hydra.yield %next
    }
    %loss = hydra.let sum(%end, axes = [0, 1])
    hydra.return loss = %loss
  }
}

//--- numbers.mlir
// In a loop too a rank knows its number, and with it those of its rows, by which it drops: in the derivative the same.
hydra.model @m version 1 {
  hydra.param @w [3] init = normal(1.0)
  // CHECK: hydra.entry @scan_0_drawing_0_backward_0_rank_{{[0-9]+}}(
  // CHECK: %[[R:.*]] = hydra.rank over = "data" ranks = 2 : tensor<i32>
  // CHECK: %[[FIRST:.*]] = hydra.mul %[[R]], %{{.*}}
  // CHECK: %[[OWN:.*]] = hydra.iota axis = 0 dtype = i32 shape = [2, 3]
  // CHECK: %[[FROM:.*]] = hydra.broadcast %[[FIRST]]
  // CHECK: hydra.add %[[OWN]], %[[FROM]]
  // CHECK: hydra.random {{.*}} stream = 2 : tensor<2x3xi32>
  // CHECK: hydra.entry @scan_0_drawing_0_rank_{{[0-9]+}}(
  // CHECK: %[[R:.*]] = hydra.rank over = "data" ranks = 2 : tensor<i32>
  // CHECK: hydra.random {{.*}} stream = 2 : tensor<2x3xi32>
  // CHECK: hydra.dropout {{.*}} : tensor<2x3xf32>, tensor<2x3xi1>
  // CHECK: hydra.entry @loss
  // CHECK-NOT: hydra.rank
  hydra.entry @loss(%x: [B, S, 3] f32) dims(B, S) {
    %v = hydra.let %x * @w
    %zero = hydra.constant value = 0.0 shape = [B, 3]
    %end = hydra.scan axis = 1 chunk = 1 over(%row = %v) carry(%h = %zero) {
      %next = hydra.let %h + dropout(reshape(%row, [B, 3]), p = 0.25)
      hydra.yield %next
    }
    %loss = hydra.let sum(%end * %end, axes = [0, 1])
    hydra.return loss = %loss
  }
}

//--- routing.mlir
// Every rank brings its own rows together, and takes them back.
hydra.model @m version 1 {
  // CHECK: rows <2 arguments[0] results[0, -1]>
  // CHECK: hydra.compact %{{.*}} : tensor<2xi1>
  // CHECK: %[[N:.*]] = hydra.all_reduce %{{.*}} : tensor<i32>
  // CHECK: hydra.take_rows %x, %{{.*}} : tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>
  // CHECK: hydra.return y = %{{.*}}, n = %[[N]]
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %mask = hydra.let reshape(sum(%x, 1), [B]) > 0.0
    %index, %place, %n = hydra.compact %mask
    %some = hydra.let tanh(take_rows(%x, %index, %place))
    %y = hydra.let take_rows(%some, %place, %index)
    hydra.return y = %y, n = %n
  }
}

//--- counts.mlir
// Every rank counts its own rows, and what is a part of a sum once that is added up.
hydra.model @m version 1 {
  // CHECK: %[[OWN:.*]] = hydra.count_exponents %x count = 8 first = -4 : tensor<2x3xf32>
  // CHECK: %[[N:.*]] = hydra.all_reduce %[[OWN]] over = "data" ranks = 2 : tensor<8xi32>
  // CHECK: %[[SUM:.*]] = hydra.all_reduce %{{.*}} over = "data" ranks = 2 : tensor<3xf32>
  // CHECK: %[[M:.*]] = hydra.count_exponents %[[SUM]] count = 8 first = -4 : tensor<3xf32>
  // CHECK: hydra.return n = %[[N]], m = %[[M]]
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %n = hydra.count_exponents %x first = -4 count = 8
    %sum = hydra.sum %x axes = [0]
    %m = hydra.count_exponents %sum first = -4 count = 8
    hydra.return n = %n, m = %m
  }
}

//--- groups.mlir
// Every rank sorts its own rows by groups, and has where its groups begin; what is summed for each group is a
// part of a sum.
hydra.model @m version 1 {
  // CHECK: rows <2 arguments[0, -1] results[0, -1]>
  // CHECK: %[[INDEX:.*]], %{{.*}}, %[[PLACE:.*]], %[[OFFSETS:.*]] = hydra.route %{{.*}} k = 2 : tensor<2x3xi1>
  // CHECK: %[[SOME:.*]] = hydra.take_rows %x, %[[INDEX]], %[[PLACE]] : tensor<2x3xf32>, tensor<4xi32>, tensor<2x2xi32>
  // CHECK: %[[Y:.*]] = hydra.grouped_linear %[[SOME]], %w, %[[OFFSETS]] : tensor<4x3xf32>, tensor<3x5x3xf32>, tensor<4xi32>
  // CHECK: %[[BACK:.*]] = hydra.take_rows %[[Y]], %[[PLACE]], %[[INDEX]] : tensor<4x5xf32>, tensor<2x2xi32>, tensor<4xi32>
  // CHECK: %[[PART:.*]] = hydra.grouped_outer %[[Y]], %[[SOME]], %[[OFFSETS]]
  // CHECK: %[[SUM:.*]] = hydra.all_reduce %[[PART]]
  // CHECK: hydra.return y = %[[BACK]], sum = %[[SUM]]
  hydra.entry @loss(%x: [B, 3] f32, %w: [3, 5, 3] f32) dims(B) {
    %mask = hydra.let %x > 0.0
    %index, %group, %place, %offsets = hydra.route %mask k = 2
    %some = hydra.let take_rows(%x, %index, %place)
    %y = hydra.let grouped_linear(%some, %w, %offsets)
    %back, %sum = hydra.let take_rows(%y, %place, %index), grouped_outer(%y, %some, %offsets)
    hydra.return y = %back, sum = %sum
  }
}

//--- forms.mlir
// A mean over the batch is a part of a mean; what is linear stays one, the square does not. What the ranks
// have of a constant is a smaller one. A maximum needs all rows.
hydra.model @m version 1 {
  // CHECK: hydra.entry @loss(%x: tensor<2x3xf32>)
  // CHECK: %[[ROWS:.*]] = hydra.all_gather %x axis = 0 number = 0 over = "data" ranks = 2
  // CHECK: %[[MEAN:.*]] = hydra.mean %x axes = [0] : tensor<2x3xf32>
  // CHECK: %[[PART:.*]] = hydra.mul %[[MEAN]]
  // CHECK: %[[NEG:.*]] = hydra.neg %[[PART]]
  // CHECK: %[[ALL:.*]] = hydra.all_reduce %[[NEG]] over = "data" ranks = 2 : tensor<3xf32>
  // CHECK: hydra.mul %[[ALL]], %[[ALL]]
  // CHECK: %[[B:.*]] = hydra.constant shape = [] value = 4.0
  // CHECK: hydra.broadcast %[[B]] shape = [2, 3]
  // CHECK: hydra.reduce_max %[[ROWS]] axes = [0] : tensor<4x3xf32>
  // CHECK: hydra.return square = %{{.*}}, most = %{{.*}}, rows = %{{.*}} : tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>

  // Six ranks on two nodes: first a half of the rows, then a third of that. Sums are made inside the node,
  // then across.
  // TWO: hydra.entry @loss(%x: tensor<2x3xf32>) {{.*}}rows <6 arguments[0] results[-1, -1, 0]>
  // TWO: %[[INNER:.*]] = hydra.all_reduce %{{.*}} over = "gpu" ranks = 3
  // TWO: hydra.all_reduce %[[INNER]] over = "node" ranks = 2

  // Without a mesh nothing changes.
  // ONE: hydra.entry @loss(%x: tensor<4x3xf32>) ids(0) {
  // ONE-NOT: all_reduce
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %mean = hydra.let -mean(%x, axes = [0])
    %square = hydra.let %mean * %mean
    %rows = hydra.let %x * (1.0 * B)
    %most = hydra.let reduce_max(%x, axes = [0])
    hydra.return square = %square, most = %most, rows = %rows
  }
}

//--- blocks.mlir
// Where the batch is behind another dimension and both become one, a rank has a part of each block.
hydra.model @m version 1 {
  hydra.param @w [3, 3] init = normal(1.0)
  // CHECK: hydra.entry @loss(%x: tensor<2x5x3xf32>) {{.*}}results[0]>
  // CHECK: %[[T:.*]] = hydra.transpose %x order = [1, 0, 2] : tensor<2x5x3xf32>
  // CHECK: hydra.reshape %[[T]] shape = [10, 3] : tensor<5x2x3xf32>
  // CHECK: hydra.linear %{{.*}} : tensor<10x3xf32>, tensor<3x3xf32>
  // CHECK: hydra.reshape %{{.*}} shape = [5, 2, 3] : tensor<10x3xf32>
  // CHECK-NOT: hydra.all_
  hydra.entry @loss(%x: [B, 5, 3] f32) dims(B) {
    %rows = hydra.let linear(reshape(transpose(%x, [1, 0, 2]), [5 * B, 3]), @w)
    %y = hydra.let transpose(reshape(%rows, [5, B, 3]), [1, 0, 2])
    hydra.return y = %y
  }
}

//--- flat.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [2 * B, 3] f32) dims(B) {
    hydra.return y = %x
  }
}

//--- fused.mlir
hydra.model @m version 1 mesh <["data"], [2]> bound {symbols = {}} {
  hydra.entry @loss(%x: tensor<4x3xf32>) rows <1 arguments [0]> {
    %y = hydra.fused rows = [4] inner = [3] (%a = %x) : tensor<4x3xf32> {
      %z = hydra.neg %a : tensor<4x3xf32>
      hydra.yield %z : tensor<4x3xf32>
    }
    hydra.return y = %y : tensor<4x3xf32>
  }
}

//--- mixed.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %mask = hydra.let reshape(sum(%x, 1), [B]) > 0.0
    %index, %place, %n = hydra.compact %mask
    %y = hydra.let take_rows(%x, %index, %place) + %x
    hydra.return y = %y
  }
}

//--- offsets.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %mask = hydra.let %x > 0.0
    %index, %group, %place, %offsets = hydra.route %mask k = 2
    hydra.return y = %offsets
  }
}

// A table has the rows of all ranks, and each rank numbers its own.
//--- own-numbers.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %chosen = hydra.top_k %x k = 2
    %index, %group, %place, %offsets = hydra.route %chosen k = 2
    %share = hydra.let embedding(%index * 3 + %group, reshape(%x, [3 * B, 1]))
    %y = hydra.let take_rows(%share, %place, %index)
    hydra.return y = %y
  }
}

// Which rows there are does not depend on how they are numbered.
//--- own-signs.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %mask = hydra.let reshape(sum(%x, 1), [B]) > 0.0
    %index, %place, %n = hydra.compact %mask
    // CHECK: hydra.compare %index{{.*}} is = "ge" : tensor<2xi32>
    // CHECK: hydra.take_rows
    %there = hydra.let cast(%index >= 0, to = f32)
    %own = hydra.let select(%there > 0.5, %index, -1)
    %y = hydra.let take_rows(take_rows(%x, %own, %place) * reshape(%there, [B, 1]), %place, %own)
    hydra.return y = %y
  }
}

//--- inside.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [B, S, 3] f32) dims(B, S) {
    %zero = hydra.constant value = 0.0 shape = [B, 1, 3]
    %end = hydra.scan axis = 1 chunk = 1 over(%row = %x) carry(%h = %zero) {
      %next = hydra.let %h + %row * mean(%row, 0)
      hydra.yield %next
    }
    hydra.return y = %end
  }
}

//--- gathered.mlir
hydra.model @m version 1 {
  hydra.entry @loss(%x: [B, 3] f32) dims(B) {
    %mask = hydra.let reshape(sum(%x, 1), [B]) > 0.0
    %index, %place, %n = hydra.compact %mask
    %some = hydra.let dropout(take_rows(%x, %index, %place), p = 0.5)
    %y = hydra.let take_rows(%some, %place, %index)
    hydra.return y = %y
  }
}

//--- errors
// GATHERED: gathered.mlir:5:{{.*}}: error: 'hydra.dropout' op numbers rows that hydra.compact has gathered, as dropout of them does: how many the other ranks have gathered, a rank does not know
// DIVIDE: error: 'hydra.entry' op @loss has a batch of 5, which the 2 ranks along 'data' of the mesh do not divide
// READ: error: 'hydra.model' op cannot read the axis 'data' of the mesh; expected NAME:SIZE
// FLAT: error: 'hydra.entry' op argument 'x' does not have the batch as one dimension B, of which ranks could have parts
// RULE: fused.mlir:3:10: error: 'hydra.fused' op has no rule for a part of the batch (the partition interface)
// MIXED: mixed.mlir:5:{{.*}}: error: 'hydra.add' op mixes rows that hydra.compact has gathered with others
// OFFSETS: offsets.mlir:{{.*}}: error: 'hydra.return' op mixes rows that hydra.route has gathered with others
// INSIDE: inside.mlir:5:{{.*}}: error: 'hydra.{{.*}}' op needs rows of what is a part of a sum in a loop, where ranks cannot exchange it
// NUMBERS: own-numbers.mlir:5:{{.*}}: error: 'hydra.mul' op reads numbers of rows that hydra.route has gathered, of which each rank numbers its own; expected hydra.take_rows alone
