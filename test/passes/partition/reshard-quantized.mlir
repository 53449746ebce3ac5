// RUN: hydra-opt %s --hydra-reshard="between=1" | FileCheck %s

// What is gathered in 8 bits is gathered again too: of a state that updates write, and of what a program makes of a unit,
// which a rank keeps of its own piece.
hydra.model @m version 1 mesh <["gpu"], [2]> bound {} {
  hydra.param @unit.a [1, 1024] init = zeros unit = #hydra.unit<"gpu", 2, [<"a", [32, 64], 0, <ones>>]>
  hydra.state @unit.a.f8E4M3FN [1, 1024] f8E4M3FN init = zeros of @unit.a as derived
  hydra.param @unit.b [1, 1024] init = zeros unit = #hydra.unit<"gpu", 2, [<"b", [32, 64], 0, <ones>>]>
  hydra.param @unit.c [1, 1024] init = zeros unit = #hydra.unit<"gpu", 2, [<"c", [32, 64], 0, <ones>>]>

  // CHECK-LABEL: hydra.entry @loss
  // CHECK: hydra.all_gather %unit.a.f8E4M3FN axis = 0 number = 0
  // CHECK: %[[Q:.*]] = hydra.quantize %{{.*}} : tensor<1x1024xbf16>
  // CHECK: hydra.all_gather %[[Q]] axis = 0 number = 1
  // CHECK: hydra.all_gather %unit.c axis = 0 number = 2
  // CHECK: %[[A:.*]] = hydra.all_gather %unit.a.f8E4M3FN axis = 0 number = 3
  // CHECK-NEXT: %[[WA:.*]] = hydra.reshape %[[A]] shape = [32, 64]
  // CHECK-NEXT: hydra.quantized_matmul %{{.*}}, %[[WA]],
  // CHECK: %[[B:.*]] = hydra.all_gather %[[Q]] axis = 0 number = 4
  // CHECK-NEXT: %[[WB:.*]] = hydra.reshape %[[B]] shape = [32, 64]
  // CHECK-NEXT: hydra.quantized_matmul %{{.*}}, %[[WB]],
  hydra.entry @loss(%x: tensor<2x64xf32>) rows <2 arguments [0] results [0, 0, 0, 0, 0]> {
    %one = hydra.constant shape = [] value = 1.0 : tensor<f32>
    %q = hydra.quantize %x, %one format = f8E4M3FN : tensor<2x64xf32>, tensor<f32>
    %ra = hydra.use @unit.a.f8E4M3FN : tensor<1x1024xf8E4M3FN>
    %ga = hydra.all_gather %ra axis = 0 number = 0 over = "gpu" ranks = 2 : tensor<1x1024xf8E4M3FN>
    %wa = hydra.reshape %ga shape = [32, 64] : tensor<2x1024xf8E4M3FN>
    %1 = hydra.quantized_matmul %q, %wa, %one, %one dtype = f32 : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<f32>
    %rb = hydra.use @unit.b : tensor<1x1024xf32>
    %cb = hydra.cast %rb to = bf16 : tensor<1x1024xf32>
    %qb = hydra.quantize %cb, %one format = f8E4M3FN : tensor<1x1024xbf16>, tensor<f32>
    %gb = hydra.all_gather %qb axis = 0 number = 1 over = "gpu" ranks = 2 : tensor<1x1024xf8E4M3FN>
    %wb = hydra.reshape %gb shape = [32, 64] : tensor<2x1024xf8E4M3FN>
    %2 = hydra.quantized_matmul %q, %wb, %one, %one dtype = f32 : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<f32>
    %rc = hydra.use @unit.c : tensor<1x1024xf32>
    %gc = hydra.all_gather %rc axis = 0 number = 2 over = "gpu" ranks = 2 : tensor<1x1024xf32>
    %wc = hydra.reshape %gc shape = [32, 64] : tensor<2x1024xf32>
    %5 = hydra.linear %x, %wc : tensor<2x64xf32>, tensor<32x64xf32>
    %3 = hydra.quantized_matmul %q, %wa, %one, %one dtype = f32 : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<f32>
    %4 = hydra.quantized_matmul %q, %wb, %one, %one dtype = f32 : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<f32>
    hydra.return a = %1, b = %2, c = %3, d = %4, e = %5 : tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>
  }
}
