// A product of matrices of 8 bits by scales of blocks, by hand: of 128 neighbours of a row for x, of 128 rows and as many
// neighbours for w, with last blocks that have fewer; then both by rows.
hydra.model @blocks version 1 {
  hydra.entry @run(%x: [5, 300] f32, %w: [130, 300] f32, %ax: [3, 5] f32, %aw: [2, 3] f32) {
    %sx = hydra.let quantization_scale(%ax, format = f8E5M2)
    %sw = hydra.let quantization_scale(%aw, format = f8E4M3FN)
    %x3 = hydra.let broadcast(reshape(transpose(%sx, [1, 0]), [5, 3, 1]), [5, 3, 128])
    %qx = hydra.let quantize(%x, slice(reshape(%x3, [5, 384]), axis = 1, start = 0, size = 300), format = f8E5M2)
    %rows = hydra.let slice(reshape(broadcast(reshape(%sw, [2, 1, 3]), [2, 128, 3]), [256, 3]), axis = 0, start = 0, size = 130)
    %w3 = hydra.let broadcast(reshape(%rows, [130, 3, 1]), [130, 3, 128])
    %qw = hydra.let quantize(%w, slice(reshape(%w3, [130, 384]), axis = 1, start = 0, size = 300), format = f8E4M3FN)
    %y = hydra.let quantized_matmul(%qx, %qw, %sx, %sw, dtype = f32)
    %turned = hydra.let quantized_matmul(%qw, %qx, %sw, %sx, dtype = f32)
    %each = hydra.let copy(transpose(%rows, [1, 0]))
    %rowwise = hydra.let quantized_matmul(%qx, %qw, %sx, %each, dtype = f32)
    hydra.return y = %y, turned = %turned, rowwise = %rowwise
  }
}
