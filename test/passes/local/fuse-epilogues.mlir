// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-fuse-epilogues="epilogues=gelu few-rows=16" | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-fuse-epilogues=epilogues=gelu | FileCheck %s --check-prefix=LIBRARY
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-fuse-epilogues | FileCheck %s --check-prefix=NONE
// RUN: not hydra-opt %s --split-input-file --hydra-bind --hydra-fuse-epilogues=epilogues=relu 2>&1 | FileCheck %s --check-prefix=BAD

// The argument of the first GELU has another reader and is written too. Rows of 12 elements are no whole 16 bytes, and
// matmuls in f32 have no epilogue. Where the library has none, everything stays.
// CHECK-LABEL: hydra.entry @f(
// CHECK: %[[Y:.*]], %[[SUMS:.*]] = hydra.linear_gelu %{{.*}}, %{{.*}}, %{{.*}} saving : tensor<24x8xbf16>, tensor<16x8xbf16>, tensor<16xbf16>
// CHECK-NOT: hydra.gelu %[[SUMS]]
// CHECK: hydra.linear_gelu %[[Y]], %{{[a-z0-9]+}} : tensor<24x16xbf16>
// CHECK: hydra.linear %{{.*}}tensor<12x16xbf16>
// CHECK: hydra.gelu
// CHECK: hydra.add %{{.*}}, %[[SUMS]]
// CHECK: hydra.linear {{.*}}xf32>
// A few rows, of a program that writes text, have kernels without an epilogue, if the backend has such kernels.
// CHECK-LABEL: hydra.entry @few
// CHECK-NOT: hydra.linear_gelu
// CHECK: hydra.gelu
// LIBRARY-LABEL: hydra.entry @few
// LIBRARY: hydra.linear_gelu
// NONE-LABEL: hydra.entry @f(
// NONE-NOT: hydra.linear_gelu
// BAD: knows no epilogue 'relu'; expected gelu
hydra.model @m version 1 {
  hydra.param @w [16, 8] init = normal(0.1)
  hydra.param @b [16] init = normal(0.1)
  hydra.param @v [16, 16] init = normal(0.1)
  hydra.param @u [12, 16] init = normal(0.1)
  hydra.entry @f(%x0: [24, 8] f32) {
    %x = hydra.cast %x0 to = bf16
    %w0 = hydra.use @w
    %w = hydra.cast %w0 to = bf16
    %b0 = hydra.use @b
    %b = hydra.cast %b0 to = bf16
    %v0 = hydra.use @v
    %v = hydra.cast %v0 to = bf16
    %u0 = hydra.use @u
    %u = hydra.cast %u0 to = bf16
    %h0 = hydra.linear %x, %w, %b
    %h = hydra.gelu %h0
    %g0 = hydra.linear %h, %v
    %g = hydra.gelu %g0
    %e0 = hydra.linear %h, %u
    %e = hydra.gelu %e0
    %sum = hydra.add %g, %h0
    %k0 = hydra.linear %x0, %w0
    %k = hydra.gelu %k0
    hydra.return y = %sum, z = %e, k = %k
  }
  hydra.entry @few(%x0: [16, 8] f32) {
    %x = hydra.cast %x0 to = bf16
    %w0 = hydra.use @w
    %w = hydra.cast %w0 to = bf16
    %h = hydra.linear %x, %w
    %y = hydra.gelu %h
    hydra.return y = %y
  }
}
