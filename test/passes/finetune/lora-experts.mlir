// RUN: split-file %s %t
// RUN: hydra-opt %t/experts.mlir --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-lora="rank=2 alpha=6 targets=*.up,*.down" | FileCheck %s
// RUN: not hydra-opt %t/sliced.mlir --hydra-bind --hydra-lora="rank=2 alpha=6 targets=w" 2>&1 | FileCheck %s --check-prefix=SLICED
// RUN: not hydra-opt %t/sliced.mlir --hydra-bind --hydra-lora="rank=5 alpha=6 targets=w" 2>&1 | FileCheck %s --check-prefix=RANK

// Beside the matrix of each expert stand two small ones, by which its rows are multiplied; others call them by its number.
// CHECK: hydra.param @layers.0.up [3, 6, 4] init = ones from "h.0.experts.{row}.up.weight" frozen in "layers.0"
// CHECK-NEXT: hydra.param @layers.0.up.lora_a [3, 2, 4] init = uniform(5.000000e-01) in "layers.0" adapter = #hydra.adapter<"base_model.model.h.0.experts.{row}.up.lora_A.weight", 6.000000e+00 : f64>
// CHECK-NEXT: hydra.param @layers.0.up.lora_b [3, 6, 2] init = zeros in "layers.0" adapter = #hydra.adapter<"base_model.model.h.0.experts.{row}.up.lora_B.weight", 6.000000e+00 : f64>
// CHECK: %[[UP:.*]] = hydra.grouped_linear %[[X:.*]], %layers.0.up, %[[OFFSETS:[a-z0-9]*]]{{ *}}{{(:|$)}}
// CHECK-NEXT: %[[A:.*]] = hydra.grouped_linear %[[X]], %layers.0.up.lora_a, %[[OFFSETS]]{{ *}}{{(:|$)}}
// CHECK: %[[S:.*]] = hydra.mul %[[A]], %
// CHECK-NEXT: %[[B:.*]] = hydra.grouped_linear %[[S]], %layers.0.up.lora_b, %[[OFFSETS]]{{ *}}{{(:|$)}}
// CHECK-NEXT: %[[SUM:.*]] = hydra.add %[[UP]], %[[B]]

// What is multiplied as it lies, [E, K, N], is multiplied by the second one first.
// CHECK: %[[DOWN:.*]] = hydra.grouped_linear %[[SUM]], %layers.0.down, %[[OFFSETS]] transposed
// CHECK-NEXT: %[[A:.*]] = hydra.grouped_linear %[[SUM]], %layers.0.down.lora_b, %[[OFFSETS]] transposed
// CHECK: %[[S:.*]] = hydra.mul %[[A]], %
// CHECK-NEXT: %[[B:.*]] = hydra.grouped_linear %[[S]], %layers.0.down.lora_a, %[[OFFSETS]] transposed
// CHECK-NEXT: hydra.add %[[DOWN]], %[[B]]

// SLICED: sliced.mlir:[[#]]:{{.*}} 'hydra.reshape' op --lora: reads a parameter that is to be adapted; expected it as the weight of hydra.grouped_linear alone
// RANK: 'hydra.param' op --lora: rank 5 of @w [3, 4, 6]; expected at most 4, which any matrix of that shape has

//--- experts.mlir
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @up [3, 6, 4] init = ones from "h.{layer}.experts.{row}.up.weight"
    hydra.param @down [3, 6, 4] init = ones
  }
  hydra.entry @loss(%x: [8, 4] f32, %shares: [8, 3] f32) {
    %mask = hydra.top_k %shares k = 1
    %index, %group, %place, %offsets = hydra.route %mask k = 1
    %y = hydra.for @layers carry(%h = %x) {
      %rows = hydra.let take_rows(%h, %index, %place)
      %u = hydra.let grouped_linear(%rows, @up, %offsets)
      %d = hydra.let grouped_linear(%u, @down, %offsets, transposed)
      %z = hydra.let take_rows(%d, %place, %index)
      hydra.yield %z
    }
    %square = hydra.let %y * %y
    %loss = hydra.mean %square axes = [0, 1]
    hydra.return loss = %loss
  }
}
//--- sliced.mlir
hydra.model @m version 1 {
  hydra.param @w [3, 4, 6] init = ones
  hydra.entry @loss(%x: [8, 6] f32) {
    %y = hydra.let linear(%x, reshape(@w, [12, 6]))
    %loss = hydra.mean %y axes = [0, 1]
    hydra.return loss = %loss
  }
}
