// RUN: hydra-opt %s --hydra-bind --hydra-quantize-parts --canonicalize | FileCheck %s

hydra.model @m version 1 {
  // What is made element by element is compared and rounded before it is joined; bytes are joined.
  // CHECK-LABEL: hydra.entry @delayed
  // CHECK: %[[A:.*]] = hydra.silu %x : tensor<2x4x8xf32>
  // CHECK: %[[B:.*]] = hydra.mul %x, %y : tensor<2x4x8xf32>
  // CHECK-NOT: hydra.concat %[[A]], %[[B]]
  // CHECK-DAG: %[[MOST_A:.*]] = hydra.reduce_max %{{.*}} axes = [-1] : tensor<2x4x8xf32>
  // CHECK-DAG: %[[MOST_B:.*]] = hydra.reduce_max %{{.*}} axes = [-1] : tensor<2x4x8xf32>
  // CHECK: %[[MOST:.*]] = hydra.max %[[MOST_A]], %[[MOST_B]] : tensor<2x4xf32>
  // CHECK-DAG: %[[BYTES_A:.*]] = hydra.quantize %[[A]], %scale format = f8E5M2 : tensor<2x4x8xf32>
  // CHECK-DAG: %[[BYTES_B:.*]] = hydra.quantize %[[B]], %scale format = f8E5M2 : tensor<2x4x8xf32>
  // CHECK: %[[BYTES:.*]] = hydra.concat %[[BYTES_A]], %[[BYTES_B]] axis = 2 : tensor<2x4x8xf8E5M2>, tensor<2x4x8xf8E5M2>
  // CHECK: hydra.quantized_matmul
  // CHECK: hydra.return most = %[[MOST]]
  hydra.entry @delayed(%x: [2, 4, 8] f32, %y: [2, 4, 8] f32, %scale: [] f32) {
    %a = hydra.silu %x
    %b = hydra.mul %x, %y
    %both = hydra.concat %a, %b axis = 2
    %less = hydra.neg %both
    %size = hydra.max %both, %less
    %most = hydra.reduce_max %size axes = [-1]
    %bytes = hydra.quantize %both, %scale format = f8E5M2
    %rows = hydra.reshape %bytes shape = [8, 16]
    %other = hydra.constant dtype = f32 shape = [16, 16] value = 1.0
    %w = hydra.quantize %other, %scale format = f8E4M3FN
    %product = hydra.quantized_matmul %rows, %w, %scale, %scale dtype = f32
    hydra.return most = %most, product = %product
  }

  // A scale that is made of the joined value waits for it.
  // CHECK-LABEL: hydra.entry @current
  // CHECK: %[[BOTH:.*]] = hydra.concat
  // CHECK: hydra.max
  // CHECK: hydra.quantize %[[BOTH]],
  hydra.entry @current(%x: [8, 8] f32, %y: [8, 8] f32) {
    %a = hydra.silu %x
    %b = hydra.mul %x, %y
    %both = hydra.concat %a, %b axis = 1
    %most = hydra.reduce_max %both axes = [0, 1]
    %bytes = hydra.quantize %both, %most format = f8E4M3FN
    %product = hydra.quantized_matmul %bytes, %bytes, %most, %most dtype = f32
    hydra.return product = %product
  }

  // Parts that no group makes stay: each would need a launch of its own. So does what lies along another axis.
  // CHECK-LABEL: hydra.entry @left
  // CHECK: %[[BOTH:.*]] = hydra.concat
  // CHECK: hydra.reduce_max %[[BOTH]] axes = [1]
  // CHECK: %[[JOINED:.*]] = hydra.concat
  // CHECK: hydra.reduce_max %[[JOINED]] axes = [1]
  hydra.entry @left(%x: [8, 8] f32, %y: [8, 8] f32) {
    %a = hydra.matmul %x, %y
    %b = hydra.mul %x, %y
    %both = hydra.concat %a, %b axis = 1
    %most = hydra.reduce_max %both axes = [1]
    %c = hydra.silu %x
    %joined = hydra.concat %b, %c axis = 0
    %more = hydra.reduce_max %joined axes = [1]
    hydra.return most = %most, more = %more
  }
}
