// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-apply-dropout="programs=loss" | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-apply-dropout="programs=loss" --canonicalize --cse --hydra-raise-attention | FileCheck %s --check-prefix=RAISED
// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-unroll-layers --hydra-apply-dropout | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2 set=part=0.0,keys=0.0" --hydra-unroll-layers --hydra-apply-dropout="programs=loss" | FileCheck %s --check-prefix=NONE
// RUN: not hydra-opt %s --split-input-file --hydra-bind="loops-from=2" --hydra-apply-dropout="programs=loss" 2>&1 | FileCheck %s --check-prefix=LAYER

// LAYER: error: 'hydra.attention' op is in a layer; run hydra-unroll-layers first

// Where nothing is trained, or nothing dropped, attention is as it would be without.
// NONE-NOT: hydra.random
// NONE-NOT: dropout
// NONE-NOT: dropkey
// NONE: hydra.attention {{.*}} causal scale = 5.000000e-01 : tensor<2x5x4x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>
// NONE-NOT: hydra.random
// NONE-NOT: dropout
// NONE-NOT: dropkey

// A program that trains computes it in steps: scores, masks, what hides keys, the softmax, and what drops weights. Keys have the
// first stream, weights the next, and a dropout behind them the one after that.
// CHECK-LABEL: hydra.model @both
// CHECK: hydra.entry @loss(
// CHECK: %[[Z:.*]] = hydra.matmul {{.*}} dtype = f32 transpose_b : tensor<2x2x10x4xf32>, tensor<2x2x5x4xf32>
// CHECK: hydra.compare {{.*}} is = "le" : tensor<2x4x5x5xi32>, tensor<2x4x5x5xi32>
// CHECK: %[[MASKED:.*]] = hydra.select
// CHECK: %[[R0:.*]] = hydra.random {{.*}} stream = 0 : tensor<2x4x5x5xi32>
// CHECK: hydra.constant {{.*}} value = -1073741824.0 : tensor<2x4x5x5xi32>
// CHECK: %[[SEEN:.*]] = hydra.compare %[[R0]], %{{.*}} is = "ge"
// CHECK: %[[NEVER:.*]] = hydra.constant {{.*}} value = -inf
// CHECK: %[[LEFT:.*]] = hydra.select %[[SEEN]], %[[MASKED]], %[[NEVER]]
// CHECK: %[[P:.*]] = hydra.softmax %[[LEFT]]
// CHECK: %[[R1:.*]] = hydra.random {{.*}} stream = 1 : tensor<2x4x5x5xi32>
// CHECK: %[[KEPT:.*]] = hydra.compare %[[R1]], %{{.*}} is = "ge"
// CHECK: %[[D:.*]] = hydra.dropout %[[P]], %[[KEPT]] p = 1.250000e-01
// CHECK: %[[ROWS:.*]] = hydra.reshape %[[D]] shape = [2, 2, 10, 5]
// CHECK: hydra.matmul %[[ROWS]], %{{.*}} : tensor<2x2x10x5xf32>, tensor<2x2x5x4xf32>
// CHECK: hydra.random {{.*}} stream = 2 : tensor<2x5x4x4xi32>
// CHECK: hydra.dropout %{{.*}} p = 5.000000e-01

// Another program of the same entry drops nothing, and stays attention.
// CHECK: hydra.entry @other(
// CHECK: hydra.attention {{.*}} causal scale = 5.000000e-01 :

// Nothing makes attention of what drops: that would lose what is dropped.
// RAISED-LABEL: hydra.model @both
// RAISED: hydra.entry @loss(
// RAISED-NOT: hydra.attention
// RAISED: hydra.random {{.*}} stream = 0
// RAISED-NOT: hydra.attention
// RAISED: hydra.softmax
// RAISED: hydra.random {{.*}} stream = 1
// RAISED-NOT: hydra.attention
// RAISED: hydra.dropout
// RAISED: hydra.matmul
// RAISED: hydra.entry @other(
// RAISED: hydra.attention
hydra.model @both version 1 {
  hydra.symbols reals(part = 0.125, keys = 0.25)
  hydra.entry @loss(%q: [2, 5, 4, 4] f32, %k: [2, 5, 2, 4] f32, %v: [2, 5, 2, 4] f32) {
    %o = hydra.let attention(%q, %k, %v, scale = 0.5, causal, dropout = part, dropkey = keys)
    %y = hydra.let dropout(%o, p = 4 * part)
    %loss = hydra.mean %y axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
  hydra.entry @other(%q: [2, 5, 4, 4] f32, %k: [2, 5, 2, 4] f32, %v: [2, 5, 2, 4] f32) {
    %o = hydra.attention %q, %k, %v scale = 0.5 causal dropout = part dropkey = keys
    hydra.return o = %o
  }
}

// -----

// What layers drop may depend on their number: the first drops nothing, the second keys alone, which takes one stream.
// CHECK-LABEL: hydra.model @layers
// CHECK: hydra.attention {{.*}} cap = 5.000000e+00 causal chunk = 4 scale = 5.000000e-01 window = 2 :
// CHECK: hydra.random {{.*}} stream = 0 : tensor<1x1x6x6xi32>
// CHECK: hydra.softmax
// CHECK-NOT: hydra.dropout
// CHECK: hydra.random {{.*}} stream = 1 : tensor<1x1x6x6xi32>
// CHECK: hydra.softmax
// CHECK: hydra.random {{.*}} stream = 2 : tensor<1x1x6x6xi32>
// CHECK-NOT: hydra.random
// CHECK: hydra.dropout
// CHECK-NOT: hydra.random
// CHECK: hydra.return
// RAISED-LABEL: hydra.model @layers
// RAISED-COUNT-1: hydra.attention
// RAISED-NOT: hydra.attention
// NONE-LABEL: hydra.model @layers
// NONE-COUNT-3: hydra.attention
hydra.model @layers version 1 {
  hydra.symbols dims(L = 3) reals(part = 0.125, keys = 0.25)
  hydra.stack @layers[L] {
    hydra.param @w [8] init = ones
  }
  hydra.entry @loss(%x: [1, 6, 1, 8] f32) {
    %y = hydra.for @layers carry(%h = %x) {
      %o = hydra.let attention(%h * @w, %h, %h, scale = 0.5, causal, chunk = 4, window = 2, cap = 5.0, dropkey = keys * min(layer, 1),
                             dropout = part * max(layer - 1, 0))
      hydra.yield %o
    }
    %loss = hydra.mean %y axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}

// -----

// In a loop, attention drops by the key of the iteration.
// CHECK-LABEL: hydra.model @loop
// CHECK: hydra.entry @[[DRAWS:[a-z_0-9]*drawing_0]](
// CHECK: hydra.random {{.*}} stream = 0 : tensor<i32>
// CHECK: hydra.random {{.*}} stream = 1 : tensor<i32>
// CHECK: hydra.random {{.*}} stream = 2 : tensor<1x1x2x2xi32>
// CHECK: hydra.softmax
// CHECK: hydra.random {{.*}} stream = 3 : tensor<1x1x2x2xi32>
// CHECK: hydra.dropout
// CHECK: hydra.entry @loss
// CHECK: hydra.loop @[[DRAWS]](
// RAISED-LABEL: hydra.model @loop
// RAISED-NOT: hydra.attention
// NONE-LABEL: hydra.model @loop
// NONE-NOT: hydra.random
// NONE: hydra.attention
hydra.model @loop version 1 {
  hydra.symbols reals(part = 0.125, keys = 0.25)
  hydra.param @w [4] init = ones
  hydra.entry @loss(%x: [1, 8, 1, 4] f32) {
    %v = hydra.let %x * @w
    %zero = hydra.constant shape = [1, 2, 1, 4] value = 0.0
    %z, %end = hydra.scan axis = 1 chunk = 2 over(%t = %v) carry(%c = %zero) {
      %n = hydra.let attention(%t, %t, %t, scale = 0.5, dropout = part, dropkey = keys) + %c
      hydra.yield %n, %n
    }
    %loss = hydra.mean %z axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}

// -----

// Of narrow queries and keys, scores and weights are f32, as fused kernels have them.
// CHECK-LABEL: hydra.model @narrow
// CHECK: hydra.matmul {{.*}} dtype = f32 transpose_b : tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>
// CHECK: hydra.softmax {{.*}} : tensor<1x1x8x8xf32>
// CHECK: %[[D:.*]] = hydra.dropout
// CHECK: %[[W:.*]] = hydra.cast %[[D]] to = bf16 : tensor<1x1x8x8xf32>
// CHECK: hydra.matmul %[[W]], %{{.*}} : tensor<1x1x8x8xbf16>, tensor<1x1x8x4xbf16>
// RAISED-LABEL: hydra.model @narrow
// RAISED-NOT: hydra.attention
// NONE-LABEL: hydra.model @narrow
// NONE: hydra.attention
hydra.model @narrow version 1 {
  hydra.symbols reals(part = 0.125, keys = 0.25)
  hydra.param @w [4] init = ones
  hydra.entry @loss(%x: [1, 8, 1, 4] f32) {
    %v = hydra.let cast(%x * @w, to = bf16)
    %o = hydra.let cast(attention(%v, %v, %v, scale = 0.5, dropout = part, dropkey = keys), to = f32)
    %loss = hydra.mean %o axes = [0, 1, 2, 3]
    hydra.return loss = %loss
  }
}
