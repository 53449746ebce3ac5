// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-differentiate --canonicalize --cse | FileCheck %s

// A linear layer: the weight gradient is a matmul of the upstream gradient and the input. The
// parameter that nothing uses in this configuration gets zeros.
// CHECK-LABEL: hydra.model @linear
// CHECK: hydra.entry @loss({{.*}}) stage(grad)
// CHECK: %[[GW:.*]] = hydra.matmul {{.*}} transpose_a
// CHECK: %[[ZERO:.*]] = hydra.constant {{.*}} value = 0.000000e+00 : tensor<3xf32>
// CHECK: hydra.return loss = %{{.*}}, grad @w = %[[GW]], grad @unused = %[[ZERO]]
hydra.model @linear version 1 {
  hydra.symbols flags(more = false)
  hydra.param @w [5, 4] init = ones
  hydra.param @unused [3] init = ones
  hydra.entry @loss(%x: [2, 4] f32) {
    %w = hydra.use @w
    %y = hydra.linear %x, %w
    %sum = hydra.mean %y axes = [0, 1]
    %loss = hydra.when more {
      %u = hydra.use @unused
      %s = hydra.sum %u axes = [0]
      %l = hydra.add %sum, %s
      hydra.yield %l
    } else {
      hydra.yield %sum
    }
    hydra.return loss = %loss
  }
}

// -----

// A parameter used twice: its gradients are summed. A norm keeps its row statistic for its derivative.
// CHECK-LABEL: hydra.model @tied
// CHECK: hydra.rms_norm {{.*}} saving
// CHECK: %{{.*}}, %[[G1:.*]] = hydra.rms_norm_grad
// CHECK: %[[SUM:.*]] = hydra.add %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK: hydra.return loss = %{{.*}}, grad @w = %[[SUM]]
hydra.model @tied version 1 {
  hydra.param @w [4] init = ones
  hydra.entry @loss(%x: [2, 4] f32) {
    %w = hydra.use @w
    %n = hydra.rms_norm %x, %w eps = 1.0e-5
    %y = hydra.mul %n, %w
    %loss = hydra.mean %y axes = [0, 1]
    hydra.return loss = %loss
  }
}

// -----

// The gradient of rows with the id of padding is left out of the table's. The lookup keeps the attribute, and is one of its
// own beside one without.
// CHECK-LABEL: hydra.model @padded
// CHECK: %[[PADDED:.*]] = hydra.embedding %tokens, %table padding = 6
// CHECK: %[[OTHER:.*]] = hydra.embedding %tokens, %table : tensor<2x3xi32>
// CHECK: %[[ID:.*]] = hydra.constant {{.*}} value = 6
// CHECK: %[[IS:.*]] = hydra.compare %tokens, %[[ID]] is = "eq"
// CHECK: %[[COLUMN:.*]] = hydra.reshape %[[IS]] shape = [2, 3, 1]
// CHECK: %[[ROWS:.*]] = hydra.broadcast %[[COLUMN]] shape = [2, 3, 4]
// CHECK: %[[KEPT:.*]] = hydra.select %[[ROWS]], %{{.*}}, %{{.*}} : tensor<2x3x4xi1>
// CHECK: hydra.embedding_grad %tokens, %[[KEPT]] rows = 7
hydra.model @padded version 1 {
  hydra.symbols dims(V = 7)
  hydra.param @table [V, 4] init = normal(1.0)
  hydra.entry @loss(%tokens: [2, 3] i32) {
    %loss = hydra.let mean(embedding(%tokens, @table, padding = V - 1) * embedding(%tokens, @table), [0, 1, 2])
    %number = hydra.reshape %loss shape = []
    hydra.return loss = %number
  }
}

// -----

// The derivative of attention computes scores again, with their cap and mask.
// CHECK-LABEL: hydra.model @capped
// CHECK: %{{.*}}, %[[LSE:.*]] = hydra.attention {{.*}} cap = 5.000000e+01 causal saving scale = 5.000000e-01 window = 3
// CHECK: hydra.attention_grad {{.*}}, %[[LSE]] cap = 5.000000e+01 causal scale = 5.000000e-01 window = 3
hydra.model @capped version 1 {
  hydra.param @w [1, 6, 2, 4] init = normal(1.0)
  hydra.entry @loss(%x: [1, 6, 2, 4] f32) {
    %w = hydra.use @w
    %y = hydra.mul %x, %w
    %o = hydra.attention %y, %y, %x scale = 0.5 cap = 50.0 causal window = 3
    %loss = hydra.mean %o axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}
