// DEFINE: %{units} = --hydra-select-quantized="least=8 keep=none" --hydra-shard="whole-below=12"
// DEFINE: %{ranks} = %{units} --hydra-differentiate="programs=loss" --hydra-optimizer="clip=false" --hydra-partition --hydra-mixed-precision
// RUN: hydra-opt %s %{ranks} --hydra-quantize-matmuls=scaling=block128 --hydra-gather-quantized | FileCheck %s --check-prefix=BLOCKS
// RUN: hydra-opt %s %{ranks} --hydra-quantize-matmuls=scaling=row --hydra-gather-quantized=between=1 | FileCheck %s --check-prefix=ROWS
// RUN: hydra-opt %s %{ranks} --hydra-quantize-matmuls=scaling=row --hydra-gather-quantized=between=0 | FileCheck %s --check-prefix=KEPT

// A rank finds the largest magnitudes of 64 neighbours, which share a block wherever its piece begins: columns of w are
// one and a half blocks. Ranks tell each other those of both units at once.
// BLOCKS-LABEL: hydra.entry @loss
// BLOCKS: hydra.reshape %{{.*}} shape = [576, 64]
// BLOCKS: %[[L0:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<576x64xbf16>
// BLOCKS: %[[L1:.*]] = hydra.reduce_max %{{.*}} axes = [1] : tensor<96x128xbf16>
// BLOCKS: hydra.concat %[[L0]], %[[L1]] axis = 0
// BLOCKS: hydra.all_gather %{{.*}} : tensor<1x{{[0-9]+}}xbf16>
// A scale of each block of w, for both ways of reading, and of each segment of this rank.
// BLOCKS: %[[S:.*]] = hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<3x2xf32>
// BLOCKS: %[[RANK:.*]] = hydra.rank over = "gpu" ranks = 2
// BLOCKS: hydra.embedding %{{.*}} : tensor<1xi32>, tensor<2x576xf32>
// BLOCKS: hydra.quantize %{{.*}} format = f8E4M3FN : tensor<576x64xbf16>, tensor<576x64xf32>
// BLOCKS: hydra.all_gather %{{.*}} : tensor<36x1024xf8E4M3FN>
// BLOCKS-NOT: hydra.all_gather {{.*}}xbf16>
// BLOCKS: hydra.quantized_matmul %{{.*}}, %[[S]] dtype
// BLOCKS-NOT: hydra.all_gather {{.*}}xbf16>

// What is read by rows and what is read transposed are two gathers where another unit lies in between. A piece is 192 whole
// rows of w: a rank finds the largest magnitudes of its columns, and rounds all rows by one row of scales.
// ROWS-LABEL: hydra.entry @loss
// ROWS: hydra.reduce_max %{{.*}} axes = [1] : tensor<576x64xbf16>
// ROWS: hydra.reduce_max %{{.*}} axes = [0] : tensor<192x192xbf16>
// ROWS: %[[S:.*]] = hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<384xf32>
// ROWS: hydra.embedding %{{.*}} : tensor<1xi32>, tensor<2x576xf32>
// ROWS: %[[C:.*]] = hydra.quantization_scale %{{.*}} format = f8E4M3FN : tensor<192xf32>
// ROWS: hydra.embedding %{{.*}} : tensor<1xi32>, tensor<2x192xf32>
// ROWS: hydra.quantize %{{.*}} format = f8E4M3FN : tensor<192x192xbf16>, tensor<192x192xf32>
// ROWS: hydra.all_gather %{{.*}} : tensor<36x1024xf8E4M3FN>
// ROWS: hydra.quantized_matmul %{{.*}}, %[[S]] dtype
// ROWS: hydra.all_gather %{{.*}} : tensor<{{[0-9]+}}x1024xbf16>
// ROWS: %[[G:.*]] = hydra.all_gather %{{.*}} : tensor<36x1024xf8E4M3FN>
// ROWS: hydra.transpose %{{.*}} order = [1, 0] : tensor<384x192xf8E4M3FN>
// ROWS: hydra.quantized_matmul %{{.*}}, %[[C]] dtype

// Where what is gathered is kept for the backward pass, it is bf16: both forms in 8 bits are as many bytes.
// KEPT-LABEL: hydra.entry @loss
// KEPT-NOT: hydra.all_gather {{.*}}xf8E4M3FN>
hydra.model @m version 1 mesh <["gpu"], [2]> bound {} {
  hydra.param @e [64, 192] init = normal(0.02)
  hydra.param @w [384, 192] init = normal(0.02) in "layers.0"
  hydra.param @v [64, 384] init = normal(0.02) in "layers.1"
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%ids: tensor<32xi32>, %labels: tensor<32xi32>) rows <1 arguments [0, 0]> {
    %e = hydra.use @e : tensor<64x192xf32>
    %w = hydra.use @w : tensor<384x192xf32>
    %v = hydra.use @v : tensor<64x384xf32>
    %x = hydra.embedding %ids, %e : tensor<32xi32>, tensor<64x192xf32>
    %a = hydra.linear %x, %w : tensor<32x192xf32>, tensor<384x192xf32>
    %h = hydra.silu %a : tensor<32x384xf32>
    %b = hydra.linear %h, %v : tensor<32x384xf32>, tensor<64x384xf32>
    %loss = hydra.cross_entropy %b, %labels : tensor<32x64xf32>, tensor<32xi32>
    hydra.return loss = %loss : tensor<f32>
  }
}
