// Numbers of 8 bits with scales, and their matmul.
#ifndef HYDRA_QUANTIZATION_OPS_TD
#define HYDRA_QUANTIZATION_OPS_TD

include "dialects/hydra/HydraBase.td"

defvar Hydra_ExactNumbers =
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>;

class Hydra_QuantizationOp<string mnemonic, list<Trait> traits>
    : Hydra_ValueOp<mnemonic, traits # [StorageOpInterface, Hydra_ExactNumbers,
        DeclareOpInterfaceMethods<RowWiseOpInterface, ["operandForm"]>]>;

def QuantizationScaleOp : Hydra_QuantizationOp<"quantization_scale", [CostOpInterface]> {
  let summary = "the power of two that numbers are divided by before they are rounded to a format";
  let description = [{
    `%scale = hydra.quantization_scale %amax format = f8E4M3FN`: `amax [...] f32` is the largest magnitude of a
    tensor, `scale [...]` the smallest power of two by which divided it is no more than the largest number
    of the format (448 for f8E4M3FN, 57344 for f8E5M2), and at least 2^-100. Of an infinite amax the scale is
    infinite, so that whatever is computed by it is NaN or infinite; of NaN it is NaN.
  }];
  let arguments = (ins Hydra_Value:$amax, TypeAttr:$format);
  let results = (outs Hydra_Value:$scale);
}

def QuantizeOp : Hydra_QuantizationOp<"quantize", [CostOpInterface]> {
  let summary = "numbers divided by a scale and rounded to 8 bits";
  let description = [{
    `%q = hydra.quantize %x, %scale format = f8E4M3FN`: `x [...]` in f32, bf16 or f16, `scale f32`, powers of
    two: `[]`, or one for each element, as a broadcast makes them. To nearest, ties to even; magnitudes beyond the
    largest number of the format become that number, NaN stays NaN. Only `hydra.quantized_matmul` and operations that move elements take what comes out. `again` keeps
    it apart from the same without: what a backward pass makes anew instead of keeping it.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$scale, TypeAttr:$format, UnitAttr:$again);
  let results = (outs Hydra_Value:$q);
}

def QuantizedMatmulOp : Hydra_ValueOp<"quantized_matmul", [EightBitOperandsTrait,
    Hydra_ExactNumbers,
    DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout", "resultLayout"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]> {
  let summary = "c = scale_a scale_b (a bᵀ) of 8-bit operands";
  let description = [{
    `%c = hydra.quantized_matmul %a, %b, %scale_a, %scale_b dtype = bf16`: `a [M, K]`, `b [N, K]` of f8E4M3FN
    or f8E5M2, not both the latter, `c [M, N]` in f32, bf16 or f16. Products are summed in f32, multiplied by
    the scales in f32 and rounded once. These are `[]` each, or `[M]` and `[N]`: one for each row of an operand,
    or of blocks of 128 elements of the sum, whose sums are multiplied by the scales before they are added: one
    for each row, `[K/128, M]` and `[K/128, N]`, and for one of the two operands maybe one for each 128 rows,
    `[M/128, K/128]` or `[N/128, K/128]`. Quotients are rounded up: the last blocks may have fewer elements.
    Both operands lie by rows of what is summed over, as tensor cores read numbers of 8 bits.
  }];
  let arguments = (ins Hydra_Value:$a, Hydra_Value:$b, Hydra_Value:$scale_a, Hydra_Value:$scale_b,
                       TypeAttr:$dtype);
  let results = (outs Hydra_Value:$c);
}

def ScaledLinearOp : Hydra_ValueOp<"scaled_linear", [EightBitOperandsTrait,
    Hydra_ExactNumbers,
    DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout", "resultLayout"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]> {
  let summary = "y = scale (x wᵀ) + b, of few rows and a weight of integers";
  let description = [{
    `%y = hydra.scaled_linear %x, %w, %scale dtype = bf16` or `…, %scale, %b`: `x [..., K]` of f32, bf16 or f16 with
    at most 16 rows, `w [N, K]` of i8, `scale [N] f32`, `b [N]` of the type of the result, `y [..., N]`. Integers are
    multiplied as they are, which is exact; sums are in f32, multiplied by the scales of their rows of w, and rounded once, with
    the bias, to `dtype`: f32, or the type of x, which is the default. K is a multiple of 16.

    With `w [N, K/2]` and `scale [N, K/32] bf16` the bytes of w have two numbers of 4 bits each (`support::packInt4`), and groups of 32
    numbers of a row a scale, by which they are multiplied before the rows of x are. Scales have four significant bits, so the type of x has
    these products. K is a multiple of 32.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Hydra_Value:$scale, Optional<Hydra_Value>:$b,
                       OptionalAttr<TypeAttr>:$dtype);
  let results = (outs Hydra_Value:$y);
}

#endif // HYDRA_QUANTIZATION_OPS_TD
