// RUN: hydra-opt %s --hydra-bind --canonicalize --cse --hydra-fuse-qkv --hydra-differentiate="programs=loss" --hydra-optimizer="programs=loss clip=false" --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-hold-rounded --hydra-keep-rounded | FileCheck %s

// What is frozen and read rounded has the format that it is read in, also where it is joined; nothing casts it. Of a table
// that is the head too, rows are read rounded. A gain that no matmul reads stays as it is, and a matrix that is trained has
// both forms.
// CHECK: hydra.param @table [8, 8] bf16 init = normal(2.000000e-02) frozen
// CHECK-NEXT: hydra.param @g [8] init = ones frozen
// CHECK-NEXT: hydra.param @wq [8, 8] bf16 init = normal(2.000000e-02) frozen
// CHECK-NEXT: hydra.param @wk [8, 8] bf16 init = normal(2.000000e-02) frozen
// CHECK-NEXT: hydra.param @wv [8, 8] bf16 init = normal(2.000000e-02) frozen
// CHECK-NEXT: hydra.param @wo [8, 8] init = normal(2.000000e-02)
// CHECK-NEXT: hydra.state @wo.bf16
// CHECK-LABEL: hydra.entry @loss
// CHECK: hydra.embedding %tokens, %table : tensor<1x4xi32>, tensor<8x8xbf16>
// CHECK: %[[W:.*]] = hydra.concat %wq, %wk, %wv axis = 0 : tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8x8xbf16>
// CHECK: hydra.linear %{{.*}}, %[[W]]
// CHECK-NOT: hydra.cast %w{{[qkv] }}
// CHECK-NOT: hydra.cast %table
// CHECK: updates(@wo = %{{[^,]*}}, @wo.bf16 = %{{[^,]*}})
hydra.model @m version 1 {
  hydra.param @table [8, 8] init = normal(0.02) frozen
  hydra.param @g [8] init = ones frozen
  hydra.param @wq [8, 8] init = normal(0.02) frozen
  hydra.param @wk [8, 8] init = normal(0.02) frozen
  hydra.param @wv [8, 8] init = normal(0.02) frozen
  hydra.param @wo [8, 8] init = normal(0.02)
  hydra.group @default sgd(momentum = 0.0)
  hydra.entry @loss(%tokens: [1, 4] i32, %labels: [1, 4] i32) {
    %x = hydra.let embedding(%tokens, @table)
    %n = hydra.let rms_norm(linear(%x, @wo), @g, eps = 1.0e-5)
    %q0, %k0, %v0 = hydra.let linear(%n, @wq), linear(%n, @wk), linear(%n, @wv)
    %q = hydra.reshape %q0 shape = [1, 4, 2, 4]
    %k = hydra.reshape %k0 shape = [1, 4, 2, 4]
    %v = hydra.reshape %v0 shape = [1, 4, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    %y = hydra.reshape %o shape = [1, 4, 8]
    %z = hydra.let linear(%y, @table)
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
}
