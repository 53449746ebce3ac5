// Numbers of 8 bits by hand: scales of largest magnitudes at their limits, and a product of quantized matrices.
hydra.model @scales version 1 {
  hydra.entry @run(%amax: [12] f32, %x: [5, 8] f32, %w: [3, 8] f32, %ax: [] f32, %aw: [] f32) {
    %s3 = hydra.let quantization_scale(%amax, format = f8E4M3FN)
    %s2 = hydra.let quantization_scale(%amax, format = f8E5M2)
    %sx = hydra.let quantization_scale(%ax, format = f8E5M2)
    %sw = hydra.let quantization_scale(%aw, format = f8E4M3FN)
    %qx = hydra.let quantize(%x, %sx, format = f8E5M2)
    %qw = hydra.let quantize(%w, %sw, format = f8E4M3FN)
    %y = hydra.let quantized_matmul(%qx, %qw, %sx, %sw, dtype = f32)
    hydra.return s3 = %s3, s2 = %s2, y = %y
  }
}
