// Which inputs are tokens and which are labels is said by what reads them. Labels may be looked up beside (multi-token
// prediction), and tokens be what is predicted.
//
// RUN: hydra-opt %s --hydra-bind='batch=2 seq=5' | FileCheck %s

// CHECK: hydra.entry @plain(%tokens: tensor<2x5xi32>, %labels: tensor<2x5xi32>) ids(7, -7)
// CHECK: hydra.entry @ahead(%tokens: tensor<2x5xi32>, %labels: tensor<2x5xi32>) ids(7, -7)
// CHECK: hydra.entry @first(%labels: tensor<2x5xi32>, %tokens: tensor<2x5xi32>) ids(-7, 7)
// CHECK: hydra.entry @same(%tokens: tensor<2x5xi32>) ids(7)
// CHECK: hydra.entry @speakers(%tokens: tensor<2x5xi32>, %speakers: tensor<2x5xi32>) ids(7, 3)
// CHECK: hydra.entry @both(%tokens: tensor<2x5xi32>, %labels: tensor<2x5xi32>) ids(7, -7)
hydra.model @m version 1 {
  hydra.symbols dims(D = 4, V = 7)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.param @voices [3, D] init = normal(1.0)
  hydra.entry @plain(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %l = hydra.let linear_cross_entropy(embedding(%tokens, @e), @e, %labels)
    hydra.return loss = %l
  }
  // The token behind is predicted from the next one as well, which is known where there is a label.
  hydra.def @behind(%tokens, %labels) {
    %next = hydra.let embedding(select(%labels < 0, 0, %labels), @e)
    %later = hydra.let concat(slice(%labels, axis = 1, start = 1, size = S - 1), constant(value = -100, shape = [B, 1], dtype = i32), axis = 1)
    %x = hydra.let embedding(%tokens, @e)
    %l = hydra.let linear_cross_entropy(%x, @e, %labels) + linear_cross_entropy(%x + %next, @e, %later)
    hydra.yield %l
  }
  hydra.entry @ahead(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %l = hydra.call @behind(%tokens, %labels)
    hydra.return loss = %l
  }
  hydra.entry @first(%labels: [B, S] i32, %tokens: [B, S] i32) dims(B, S) {
    %l = hydra.call @behind(%tokens, %labels)
    hydra.return loss = %l
  }
  hydra.entry @same(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let slice(embedding(%tokens, @e), axis = 1, start = 0, size = S - 1)
    %l = hydra.let linear_cross_entropy(%x, @e, slice(%tokens, axis = 1, start = 1, size = S - 1))
    hydra.return loss = %l
  }
  // What is looked up in another table makes no labels of tokens.
  hydra.entry @speakers(%tokens: [B, S] i32, %speakers: [B, S] i32) dims(B, S) {
    %x = hydra.let slice(embedding(%tokens, @e) + embedding(%speakers, @voices), axis = 1, start = 0, size = S - 1)
    %l = hydra.let linear_cross_entropy(%x, @e, slice(%tokens, axis = 1, start = 1, size = S - 1))
    hydra.return loss = %l
  }
  hydra.entry @both(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %l = hydra.let linear_cross_entropy(%x, @e, %labels) + linear_cross_entropy(%x, @e, %tokens)
    hydra.return loss = %l
  }
}
