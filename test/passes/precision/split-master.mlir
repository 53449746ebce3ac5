// RUN: hydra-opt %s --hydra-bind --canonicalize --hydra-differentiate="programs=loss" --hydra-optimizer="programs=loss clip=false" --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-keep-rounded --hydra-split-master | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize --hydra-differentiate="programs=loss" --hydra-optimizer="programs=loss clip=false" --hydra-mixed-precision="policy=bf16" --canonicalize --cse --hydra-split-master | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --canonicalize --hydra-differentiate="programs=loss" --hydra-mixed-precision="policy=bf16" --hydra-split-master | FileCheck %s --check-prefix=FIXED
// RUN: not hydra-opt %s --hydra-bind="set=taken=1" --canonicalize --hydra-differentiate="programs=loss" --hydra-optimizer="programs=loss clip=false" --hydra-split-master 2>&1 | FileCheck %s --check-prefix=TAKEN

// The matrix is its bf16, which matmuls read as it lies, and a rest. The update joins and splits. So it is where there is
// a copy to begin with and where casts are made. A gain, of one dimension, is as it was.
// CHECK: hydra.param @g [8] init = ones
// CHECK: hydra.param @w [8, 8] bf16 init = normal(2.000000e-02)
// CHECK-NEXT: hydra.state @w.rest [8, 8] i16 init = zeros of @w as rest
// CHECK-NOT: as copy
// CHECK-LABEL: hydra.entry @loss
// CHECK-NOT: hydra.cast %w{{[ _]}}
// CHECK: hydra.linear %{{.*}}, %w{{[_0-9]*}} {{.*}}tensor<8x8xbf16>
// CHECK: %[[W:.*]] = hydra.join_master %w{{.*}}, %w.rest
// CHECK: %[[P:[^,]*]], %{{.*}}, %{{.*}} = hydra.adamw %[[W]],
// CHECK: %[[N:.*]] = hydra.guard
// CHECK: %[[H:[^,]*]], %[[R:[^ ]*]] = hydra.split_master %[[N]]
// CHECK: hydra.return loss = {{.*}}@w = %[[H]], @w.rest = %[[R]]
// What nothing updates stays.
// FIXED-NOT: as rest
// TAKEN: 'hydra.param' op is to have a rest @w.rest, which is there already
hydra.model @m version 1 {
  hydra.symbols dims(taken = 0)
  hydra.param @g [8] init = ones
  hydra.param @w [8, 8] init = normal(0.02)
  hydra.state @w.rest [1] init = zeros when taken > 0
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%x: [1, 4, 8] f32, %labels: [1, 4] i32) {
    %g = hydra.use @g
    %w = hydra.use @w
    %n = hydra.rms_norm %x, %g eps = 1.0e-5
    %y = hydra.linear %n, %w
    %loss = hydra.cross_entropy %y, %labels
    hydra.return loss = %loss
  }
}
