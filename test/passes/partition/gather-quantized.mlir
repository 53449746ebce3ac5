// DEFINE: %{before} = --hydra-shard="whole-below=12" --hydra-differentiate="programs=loss"
// DEFINE: %{ranks} = --hydra-partition --hydra-mixed-precision
// DEFINE: %{all} = --hydra-select-quantized="least=8 keep=none" %{before} --hydra-optimizer="clip=false" %{ranks}
// DEFINE: %{delayed} = --hydra-quantize-matmuls="amax=delayed history=4" --hydra-gather-quantized
// RUN: hydra-opt %s %{all} %{delayed} | FileCheck %s
// RUN: hydra-opt %s %{all} --hydra-quantize-matmuls --hydra-gather-quantized | FileCheck %s --check-prefix=CURRENT
// RUN: hydra-opt %s %{all} %{delayed} --hydra-keep-quantized | FileCheck %s --check-prefix=KEPT
// RUN: hydra-opt %s --hydra-select-quantized="least=8 keep=none" %{before} --hydra-optimizer %{ranks} %{delayed} --hydra-keep-quantized | FileCheck %s --check-prefix=CLIP
// RUN: hydra-opt %s %{all} %{delayed} --hydra-keep-quantized --canonicalize --hydra-keep-gathered | FileCheck %s --check-prefix=ZERO
// RUN: hydra-opt %s %{all} --hydra-quantize-matmuls=scaling=row --hydra-gather-quantized | FileCheck %s --check-prefix=OTHERS
// RUN: hydra-opt %s --hydra-select-quantized="least=8 keep=w" %{before} --hydra-optimizer="clip=false" %{ranks} %{delayed} | FileCheck %s --check-prefix=OTHERS

// A rank rounds what it has of the unit, in blocks of which each is of one weight. Which one, its number says: 256
// elements are of w, what comes behind is of v.
// CHECK-LABEL: hydra.entry @loss
// CHECK: %[[U:.*]] = hydra.use @unit.layers.0 : tensor<1x1024xf32>
// CHECK-NEXT: %[[X:.*]] = hydra.cast %[[U]] to = bf16
// CHECK-NEXT: %[[B:.*]] = hydra.reshape %[[X]] shape = [4, 256]
// CHECK: hydra.reduce_max %{{.*}} axes = [1] : tensor<4x256xbf16>
// CHECK: hydra.rank over = "gpu" ranks = 2
// CHECK: %[[L:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<2x4xbf16>
// CHECK: %[[ISV:.*]] = hydra.compare %{{.*}} is = "ge" : tensor<4xi32>, tensor<4xi32>
// CHECK-NEXT: %[[SV:.*]] = hydra.broadcast %{{.*}} shape = [4] : tensor<f32>
// CHECK-NEXT: %[[S:.*]] = hydra.select %[[ISV]], %[[SV]], %{{.*}} : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = hydra.reshape %[[S]] shape = [4, 1]
// CHECK-NEXT: %[[E:.*]] = hydra.broadcast %[[R]] shape = [4, 256]
// CHECK: %[[Q:.*]] = hydra.quantize %{{.*}}, %[[E]] format = f8E4M3FN : tensor<4x256xbf16>, tensor<4x256xf32>
// CHECK-NEXT: %[[P:.*]] = hydra.reshape %[[Q]] shape = [1, 1024]

// The 8 bits are gathered where the unit was, and read forward and, transposed, backward.
// CHECK: %[[G:.*]] = hydra.all_gather %[[P]] axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<1x1024xf8E4M3FN>
// CHECK-NEXT: %[[F:.*]] = hydra.reshape %[[G]] shape = [2048]
// CHECK-NEXT: %[[W:.*]] = hydra.slice %[[F]] axis = 0 size = 256 start = 0
// What a rank finds of a weight goes into the history, which compares ranks.
// CHECK-NEXT: hydra.slice %[[L]] axis = 0 size = 1 start = 0
// CHECK: %[[V:.*]] = hydra.slice %[[F]] axis = 0 size = 512 start = 256
// CHECK: hydra.slice %[[L]] axis = 0 size = 1 start = 1
// CHECK-NOT: hydra.all_gather {{.*}}xbf16>
// CHECK: %[[MW:.*]] = hydra.reshape %[[W]] shape = [16, 16]
// CHECK-NEXT: hydra.quantized_matmul %{{.*}}, %[[MW]],
// CHECK: %[[MV:.*]] = hydra.reshape %[[V]] shape = [32, 16]
// CHECK-NEXT: hydra.quantized_matmul %{{.*}}, %[[MV]],
// CHECK: %[[BV:.*]] = hydra.reshape %[[V]] shape = [32, 16]
// CHECK-NEXT: hydra.transpose %[[BV]] order = [1, 0]
// CHECK-NOT: hydra.all_gather {{.*}}xbf16>

// Of present magnitudes ranks compare those of all weights at once, before anything is rounded.
// CURRENT-LABEL: hydra.entry @loss
// CURRENT-NEXT: hydra.use @unit.layers.0
// CURRENT: %[[L:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<2x4xbf16>
// CURRENT-NEXT: %[[LF:.*]] = hydra.cast %[[L]] to = f32
// CURRENT-NEXT: %[[ONE:.*]] = hydra.reshape %[[LF]] shape = [1, 2]
// CURRENT-NEXT: %[[ALL:.*]] = hydra.all_gather %[[ONE]] axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<1x2xf32>
// CURRENT-NEXT: %[[MAX:.*]] = hydra.reduce_max %[[ALL]] axes = [0]
// CURRENT-NEXT: %[[C:.*]] = hydra.reshape %[[MAX]] shape = [2, 1]
// CURRENT-NEXT: %[[CC:.*]] = hydra.broadcast %[[C]] shape = [2, 4]
// CURRENT-NEXT: %[[S:.*]] = hydra.quantization_scale %[[CC]] format = f8E4M3FN
// CURRENT-NEXT: hydra.slice %[[S]] axis = 0 size = 1 start = 0
// CURRENT: hydra.slice %[[S]] axis = 0 size = 1 start = 1
// CURRENT: hydra.quantize %{{.*}} format = f8E4M3FN : tensor<4x256xbf16>, tensor<4x256xf32>
// CURRENT: hydra.all_gather %{{.*}} : tensor<1x1024xf8E4M3FN>
// CURRENT-NOT: hydra.all_gather {{.*}}xbf16>

// The update writes the 8 bits of a rank's piece, which the next step gathers; ranks compare what they have found of it.
// KEPT: hydra.param @unit.layers.0 [1, 1024]
// KEPT-NEXT: hydra.state @unit.layers.0.f8E4M3FN [1, 1024] f8E4M3FN init = zeros of @unit.layers.0 as derived
// KEPT: hydra.state @fp8_amax.weights [2] init = zeros as derived
// KEPT-LABEL: hydra.entry @loss
// KEPT: %[[K:.*]] = hydra.use @unit.layers.0.f8E4M3FN : tensor<1x1024xf8E4M3FN>
// KEPT-NEXT: %[[KB:.*]] = hydra.reshape %[[K]] shape = [4, 256]
// KEPT-NEXT: %[[KP:.*]] = hydra.reshape %[[KB]] shape = [1, 1024]
// KEPT: hydra.all_gather %[[KP]] axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<1x1024xf8E4M3FN>
// KEPT: hydra.use @fp8_amax.weights
// The adds of a sum that the update alone reads become part of it as they are.
// KEPT: %[[NEW:.*]] = hydra.guard %{{.*}} : tensor<i1>, tensor<1x1024xf32>, tensor<1x1024xf32>
// KEPT-NEXT: %[[NB:.*]] = hydra.cast %[[NEW]] to = bf16
// KEPT-NEXT: hydra.reshape %[[NB]] shape = [4, 256]
// KEPT: %[[FOUND:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<2x4xbf16>
// KEPT: %[[NQ:.*]] = hydra.quantize %{{.*}} : tensor<4x256xbf16>, tensor<4x256xf32>
// KEPT-NEXT: %[[NP:.*]] = hydra.reshape %[[NQ]] shape = [1, 1024]
// KEPT: %[[FF:.*]] = hydra.cast %[[FOUND]] to = f32
// KEPT-NEXT: %[[FR:.*]] = hydra.reshape %[[FF]] shape = [1, 2]
// KEPT-NEXT: %[[FA:.*]] = hydra.all_gather %[[FR]] axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<1x2xf32>
// KEPT-NEXT: %[[FM:.*]] = hydra.reduce_max %[[FA]] axes = [0]
// KEPT-NEXT: hydra.return {{.*}}@unit.layers.0.f8E4M3FN = %[[NP]], @fp8_amax.weights = %[[FM]])
// KEPT-LABEL: hydra.entry @derive() stage(derive)
// KEPT: hydra.quantize %{{.*}} : tensor<4x256xbf16>, tensor<4x256xf32>
// KEPT: hydra.all_gather %{{.*}} : tensor<1x2xf32>

// Where a norm reads the sum too, it lies in memory, and the update goes along blocks.
// CLIP-LABEL: hydra.entry @loss
// CLIP: hydra.adamw {{.*}} : tensor<4x256xf32>

// What all ranks keep of a unit is made by the same programs as the pieces, which nothing else reads.
// ZERO-NOT: hydra.state @unit.layers.0.f8E4M3FN [
// ZERO: hydra.state @unit.layers.0.f8E4M3FN.whole [2, 1024] f8E4M3FN init = zeros of @unit.layers.0 as derived
// ZERO-NOT: hydra.state @unit.layers.0.f8E4M3FN [
// ZERO-LABEL: hydra.entry @loss
// ZERO: hydra.use @unit.layers.0.f8E4M3FN.whole : tensor<2x1024xf8E4M3FN>
// ZERO: %[[Z:.*]] = hydra.all_gather %{{.*}} : tensor<1x1024xf8E4M3FN>
// ZERO: hydra.return {{.*}}@unit.layers.0.f8E4M3FN.whole = %[[Z]]
// ZERO-LABEL: hydra.entry @derive() stage(derive)
// ZERO: hydra.all_gather %{{.*}} : tensor<1x1024xf8E4M3FN>

// A unit of which a program reads more than 8 bits of one scale a weight is gathered as it was.
// OTHERS-LABEL: hydra.entry @loss
// OTHERS-NOT: hydra.all_gather {{.*}}xf8E4M3FN>
// OTHERS: hydra.all_gather %{{.*}} : tensor<1x1024xbf16>
// OTHERS-NOT: hydra.all_gather {{.*}}xf8E4M3FN>
hydra.model @m version 1 mesh <["gpu"], [2]> bound {} {
  hydra.param @w [16, 16] init = normal(0.02) in "layers.0"
  hydra.param @v [32, 16] init = normal(0.02) in "layers.0"
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%x: tensor<32x16xf32>, %labels: tensor<32xi32>) rows <1 arguments [0, 0]> {
    %w = hydra.use @w : tensor<16x16xf32>
    %v = hydra.use @v : tensor<32x16xf32>
    %a = hydra.linear %x, %w : tensor<32x16xf32>, tensor<16x16xf32>
    %h = hydra.silu %a : tensor<32x16xf32>
    %b = hydra.linear %h, %v : tensor<32x16xf32>, tensor<32x16xf32>
    %loss = hydra.cross_entropy %b, %labels : tensor<32x32xf32>, tensor<32xi32>
    hydra.return loss = %loss : tensor<f32>
  }
}
