// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --hydra-freeze="patterns=embed,layers.*.up" --hydra-differentiate --hydra-optimizer="clip=false" --canonicalize --cse | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --hydra-freeze="patterns=embed,layers.*.up" --hydra-differentiate --mlir-print-debuginfo=false | FileCheck %s --check-prefix=GRAD

// What is frozen keeps its value and nothing else: no gradient, no moments, no update. Of a linear layer whose weight is
// frozen only the gradient of its input is computed, and of the lowest ones, with nothing trained below, none.
// CHECK-LABEL: hydra.model @m
// CHECK: hydra.param @embed [7, 4] init = ones frozen
// CHECK-NEXT: hydra.param @layers.0.up [4, 4] init = ones frozen in "layers.0"
// CHECK-NEXT: hydra.param @layers.0.gain [4] init = ones in "layers.0"
// CHECK: hydra.state @layers.0.gain.momentum
// CHECK-NOT: embed.momentum
// CHECK-NOT: up.momentum
// CHECK: hydra.entry @loss
// CHECK: %[[X:.*]] = hydra.embedding
// CHECK: hydra.linear %[[X]], %layers.0.up
// CHECK-NOT: transpose_a
// CHECK: hydra.matmul %{{.*}}, %layers.1.up
// CHECK-NOT: hydra.matmul
// CHECK-NOT: hydra.embedding_grad
// CHECK: hydra.return loss = %{{.*}}, applied = %{{.*}} updates(@layers.0.gain = %{{[^,]*}}, @layers.0.gain.momentum = %{{[^,]*}}, @layers.1.gain = %{{[^,]*}}, @layers.1.gain.momentum = %{{[^,]*}})
// GRAD-LABEL: hydra.model @m
// GRAD: hydra.return loss = %{{[^,]*}}, grad @layers.0.gain = %{{[^,]*}}, grad @layers.1.gain = %{{[^,]*}} :
hydra.model @m version 1 {
  hydra.group @default sgd(momentum = 0.9)
  hydra.param @embed [7, 4] init = ones
  hydra.stack @layers[2] {
    hydra.param @up [4, 4] init = ones
    hydra.param @gain [4] init = ones
  }
  hydra.entry @loss(%tokens: [2, 3] i32) {
    %x = hydra.let embedding(%tokens, @embed)
    %y = hydra.for @layers carry(%h = %x) {
      %u = hydra.let linear(%h, @up) * @gain
      hydra.yield %u
    }
    %square = hydra.let %y * %y
    %loss = hydra.mean %square axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}

// -----

// Who writes a model can freeze parameters too. Of a loss with its projection only the gradient of the rows is left.
// CHECK-LABEL: hydra.model @authored
// CHECK: hydra.param @head [7, 4] init = ones from "head.weight" frozen
// CHECK: hydra.linear_cross_entropy
// CHECK: updates(@w = %{{[^,]*}})
// GRAD-LABEL: hydra.model @authored
// GRAD: hydra.return loss = %{{[^,]*}}, grad @w = %{{[^,]*}} :
hydra.model @authored version 1 {
  hydra.group @default sgd(momentum = 0.0)
  hydra.param @embed [7, 4] init = ones
  hydra.param @head [7, 4] init = ones from "head.weight" frozen
  hydra.param @w [4, 4] init = ones
  hydra.stack @layers[1] {
    hydra.param @up [4, 4] init = ones
  }
  hydra.entry @loss(%tokens: [2, 3] i32, %labels: [2, 3] i32) {
    %x = hydra.let linear(embedding(%tokens, @embed), @w)
    %y = hydra.for @layers carry(%h = %x) {
      %u = hydra.let linear(%h, @up)
      hydra.yield %u
    }
    %loss = hydra.let linear_cross_entropy(%y, @head, %labels)
    hydra.return loss = %loss
  }
}
