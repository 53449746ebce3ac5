// RUN: hydra-opt %s --hydra-bind --hydra-chunk-linear-ce=chunk=4 | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-chunk-linear-ce | FileCheck %s --check-prefix=WHOLE
// RUN: hydra-opt %s --hydra-bind --hydra-mixed-precision=policy=bf16 --hydra-chunk-linear-ce=class-multiple=8 | FileCheck %s --check-prefix=PADDED
// RUN: hydra-opt %s --hydra-bind --hydra-chunk-linear-ce=class-multiple=8 | FileCheck %s --check-prefix=WHOLE
// RUN: hydra-opt %s --hydra-bind --hydra-differentiate=programs=loss --hydra-mixed-precision="policy=bf16 round-logits" --hydra-chunk-linear-ce | FileCheck %s --check-prefix=ROUNDED
// RUN: not hydra-opt %s --hydra-bind --hydra-chunk-linear-ce=class-multiple=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not hydra-opt %s --hydra-bind --hydra-chunk-linear-ce=chunk=-1 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: hydra-opt %s --hydra-bind --hydra-chunk-linear-ce=chunk=9223372036854775807 | FileCheck %s --check-prefix=WHOLE
// RUN: hydra-opt %s --hydra-bind='set=N=2147483648' --hydra-chunk-linear-ce | FileCheck %s --check-prefix=MOST
// RUN: not hydra-opt %s --hydra-bind='set=N=2147483648' --hydra-chunk-linear-ce=chunk=1000 2>&1 | FileCheck %s --check-prefix=MANY

// Six rows, at most four at a time: two even chunks of three. Never more than three rows of logits.
// CHECK-LABEL: hydra.entry @loss
// CHECK-NOT: hydra.linear_cross_entropy
// CHECK: hydra.slice %{{.*}} axis = 0 size = 3 start = 0
// CHECK: hydra.linear {{.*}} : tensor<3x4xf32>, tensor<11x4xf32>
// CHECK: hydra.slice %{{.*}} axis = 0 size = 3 start = 3
// CHECK: hydra.linear {{.*}} : tensor<3x4xf32>, tensor<11x4xf32>
// CHECK: hydra.return loss =

// Small logits fit one chunk.
// WHOLE: hydra.linear {{.*}} : tensor<6x4xf32>, tensor<11x4xf32>
// WHOLE-NOT: hydra.linear
// WHOLE: hydra.entry @rows

// Eleven classes in bf16 become sixteen, of which five have no weight.
// PADDED: hydra.pad {{.*}}after = 5{{.*}} : tensor<11x4xbf16>
// PADDED: %[[Z:.*]] = hydra.linear {{.*}} : tensor<6x4xbf16>, tensor<16x4xbf16>
// PADDED: %[[EXISTS:.*]] = hydra.compare {{.*}} is = "lt"
// PADDED: hydra.select %[[EXISTS]], %[[Z]]

// Rounded logits, whose gradient is made in front of all that looks at losses.
// ROUNDED-LABEL: hydra.entry @loss
// ROUNDED: %[[HELD:.*]] = hydra.linear %{{.*}}, %{{.*}} : tensor<6x4xbf16>, tensor<11x4xbf16>
// ROUNDED: %[[Z:.*]] = hydra.cast %[[HELD]] to = f32 : tensor<6x11xbf16>
// ROUNDED: hydra.reduce_max %[[Z]]
// ROUNDED: %[[DZ:.*]] = hydra.cast %{{.*}} to = bf16 : tensor<6x11xf32>
// ROUNDED: hydra.sum %{{.*}} axes = [0] : tensor<6xf32>
// ROUNDED: hydra.matmul %[[DZ]]

// The losses of all rows, for whoever asks.
// CHECK-LABEL: hydra.entry @rows
// CHECK: %[[ALL:.*]] = hydra.concat %{{.*}}, %{{.*}} axis = 0 : tensor<3xf32>, tensor<3xf32>
// CHECK: hydra.reshape %[[ALL]] shape = [2, 3]

// However many rows there are, there are at most 1024 chunks, unless the flag says otherwise, and never over 4096.
// MOST-COUNT-1024: hydra.linear %{{.*}} : tensor<4194304x4xf32>, tensor<11x4xf32>
// MOST-NOT: hydra.linear
// MOST: hydra.entry @rows
// MANY: has 4294967296 rows, which chunks of 1000 cut into 4294968; expected at most 4096, chunks of 1048576 or more

// NONE: cannot pad classes to a multiple of 0
// BAD: cannot compute -1 rows at a time
hydra.model @m version 1 {
  hydra.symbols dims(N = 3)
  hydra.param @w [11, 4] init = ones
  hydra.entry @loss(%x: [2, N, 4] f32, %labels: [2, N] i32) {
    %w = hydra.use @w
    %loss = hydra.linear_cross_entropy %x, %w, %labels
    hydra.return loss = %loss
  }
  hydra.entry @rows(%x: [2, 3, 4] f32, %labels: [2, 3] i32) {
    %w = hydra.use @w
    %loss, %rows = hydra.linear_cross_entropy %x, %w, %labels rows
    hydra.return loss = %loss, rows = %rows
  }
}
