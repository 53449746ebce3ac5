// RUN: hydra-opt %s --hydra-bind --canonicalize --hydra-fuse-qkv --hydra-differentiate="programs=loss" --hydra-optimizer="programs=loss clip=false" --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-keep-rounded | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize --hydra-fuse-qkv --hydra-differentiate="programs=loss" --hydra-mixed-precision="policy=bf16" --hydra-keep-rounded | FileCheck %s --check-prefix=FIXED

// What matmuls read is state, joined where the parameters were; the update writes it. A gain that no
// matmul reads has none.
// CHECK: hydra.param @g
// CHECK-NOT: of @g as copy
// CHECK: hydra.param @wq
// CHECK-NEXT: hydra.state @wq.bf16 [8, 8] bf16 init = normal(2.000000e-02) of @wq as copy
// CHECK-LABEL: hydra.entry @loss
// CHECK: hydra.concat %wq.bf16, %wk.bf16, %wv.bf16 axis = 0 : tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8x8xbf16>
// CHECK: %[[P:[^,]*]], %{{.*}}, %{{.*}} = hydra.adamw %wq,
// CHECK: %[[N:.*]] = hydra.guard %{{.*}}, %[[P]], %wq
// CHECK: %[[C:.*]] = hydra.cast %[[N]] to = bf16
// CHECK: hydra.return loss = {{.*}}@wq = %[[N]],{{.*}}@wq.bf16 = %[[C]]
// Parameters that no program updates are rounded where they are read.
// FIXED-NOT: as copy
// FIXED: hydra.cast
hydra.model @m version 1 {
  hydra.param @g [8] init = ones
  hydra.param @wq [8, 8] init = normal(0.02)
  hydra.param @wk [8, 8] init = normal(0.02)
  hydra.param @wv [8, 8] init = normal(0.02)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%x: [1, 4, 8] f32, %labels: [1, 4] i32) {
    %g = hydra.use @g
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %n = hydra.rms_norm %x, %g eps = 1.0e-5
    %q0 = hydra.linear %n, %wq
    %k0 = hydra.linear %n, %wk
    %v0 = hydra.linear %n, %wv
    %q = hydra.reshape %q0 shape = [1, 4, 2, 4]
    %k = hydra.reshape %k0 shape = [1, 4, 2, 4]
    %v = hydra.reshape %v0 shape = [1, 4, 2, 4]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    %y = hydra.reshape %o shape = [1, 4, 8]
    %loss = hydra.cross_entropy %y, %labels
    hydra.return loss = %loss
  }
}
