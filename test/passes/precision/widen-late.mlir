// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-mixed-precision="policy=bf16" --hydra-widen-late --canonicalize --cse | FileCheck %s

// What matmuls rounded lies in bf16 until something computes with it. Loops read it and widen a chunk
// at a time, but where something that is no kernel of its own takes the chunk.
hydra.model @m version 1 {
  hydra.param @wq [4, 4] init = normal(0.5)
  hydra.param @wv [4, 4] init = normal(0.5)

  // CHECK-LABEL: hydra.entry @scan_0
  // CHECK-SAME: %chunk0: tensor<2x1x4xf32>, %chunk1: tensor<2x1x4xbf16>
  // CHECK: %[[V:.*]] = hydra.cast %chunk1 to = f32
  // CHECK: hydra.mul %[[V]], %carried0
  // CHECK: hydra.return joined0 = %chunk0,

  // CHECK-LABEL: hydra.entry @run
  // CHECK: %[[Q:.*]] = hydra.linear
  // CHECK: %[[WIDE:.*]] = hydra.cast %[[Q]] to = f32
  // CHECK: %[[VALUES:.*]] = hydra.linear
  // CHECK: hydra.loop @scan_0(%[[WIDE]], %[[VALUES]],
  hydra.entry @run(%x: [2, 32, 4] f32) {
    %q, %v = hydra.let linear(%x, @wq), linear(%x, @wv)
    %start = hydra.let broadcast(0.5, [2, 1, 4])
    %qs, %ys, %end = hydra.scan axis = 1 chunk = 1 over(%q1 = %q, %v1 = %v) carry(%c = %start) {
      %next = hydra.let %v1 * %c + 1
      %y = hydra.let %q1 * %next
      hydra.yield %q1, %y, %next
    }
    hydra.return qs = %qs, ys = %ys, end = %end
  }

  // A rotation is widened behind the moves of its heads.
  // CHECK-LABEL: hydra.entry @heads
  // CHECK: %[[R:.*]] = hydra.rope
  // CHECK: %[[MOVED:.*]] = hydra.transpose %[[R]] order = [0, 2, 1, 3] : tensor<2x32x2x2xbf16>
  // CHECK: %[[HEADS:.*]] = hydra.cast %[[MOVED]] to = f32
  // CHECK: hydra.mul %[[HEADS]], %[[HEADS]]
  hydra.entry @heads(%x: [2, 32, 4] f32) {
    %v = hydra.let linear(%x, @wv)
    %turned = hydra.let transpose(rope(reshape(%v, [2, 32, 2, 2]), base = 10000), [0, 2, 1, 3])
    %scores, %squares = hydra.let matmul(%turned, %turned, transpose_b), sum(%turned * %turned, [3])
    hydra.return scores = %scores, squares = %squares
  }
}
