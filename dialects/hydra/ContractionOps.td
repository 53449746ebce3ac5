// Matmuls and the embedding lookup.
#ifndef HYDRA_CONTRACTION_OPS_TD
#define HYDRA_CONTRACTION_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_MatmulLikeOp<string mnemonic, list<Trait> traits>
    : Hydra_ValueOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout", "resultLayout", "overwritableOperands"]>,
        DeclareOpInterfaceMethods<RowUseOpInterface, ["paysToSkipRows"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;
class Hydra_ContractionOp<string mnemonic, list<Trait> traits = []>
    : Hydra_MatmulLikeOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded", "yieldIn",
                                                         "multipliedIn", "multiplyIn",
                                                         "allowReducedReduction"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]>;
// Matmuls sum in f32 and round once, to `dtype` (by default the type of the operands). With
// `reduced_reduction` a library may also round partial sums of narrow operands to their type. With
// `compute = f32` the operands stay in f32 under mixed precision, in the derivatives too; with
// `compute = tf32` they are, moreover, rounded to that format before they are multiplied.
// `quantize…` says to what `hydra-quantize-matmuls` quantizes operands; alone it changes nothing.

def LinearOp
    : Hydra_ContractionOp<
          "linear", [DeclareOpInterfaceMethods<QuantizableOpInterface, ["getWeight", "quantizeTo",
                                                                        "matmulToQuantize"]>]> {
  let summary = "y = x wᵀ + b";
  let description = [{
    `%y = hydra.linear %x, %w` or `hydra.linear %x, %w, %b`: `x [..., K]`, `w [N, K]`, `b [N]`,
    `y [..., N]`. With `dtype = f32` the sums of bf16 or f16 operands are not
    rounded. With `compute = f32` the operands of this layer and of its derivatives stay in f32 under
    mixed precision; with `compute = tf32` they are, moreover, rounded to 10 bits behind the point before they
    are multiplied. `quantize = f8E4M3FN quantize_gradient = f8E5M2` are the formats of `x` and `w`, and of
    the gradient of `y` in the matmuls of the derivative.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Optional<Hydra_Value>:$b,
                       OptionalAttr<TypeAttr>:$dtype, UnitAttr:$reduced_reduction,
                       OptionalAttr<TypeAttr>:$compute, OptionalAttr<TypeAttr>:$quantize,
                       OptionalAttr<TypeAttr>:$quantize_gradient);
  let results = (outs Hydra_Value:$y);
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$w, "::mlir::Value":$b,
                                 CArg<"::mlir::TypeAttr", "{}">:$dtype,
                                 CArg<"::mlir::UnitAttr", "{}">:$reduced_reduction,
                                 CArg<"::mlir::TypeAttr", "{}">:$compute), [{
    build($_builder, $_state, x, w, b, dtype, reduced_reduction, compute, ::mlir::TypeAttr(),
          ::mlir::TypeAttr());
  }]>];
}

def LinearGeluOp : Hydra_MatmulLikeOp<"linear_gelu", [
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded",
                                                     "allowReducedReduction"]>]> {
  let summary = "y = gelu(x wᵀ + b)";
  let description = [{
    `hydra.linear` and `hydra.gelu` as one call of a library that applies the function to the sums before it
    rounds them; what `hydra-fuse-epilogues` makes of the two. With `saving`, also `x wᵀ + b`.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Optional<Hydra_Value>:$b, UnitAttr:$saving,
                       UnitAttr:$reduced_reduction);
  let results = (outs Hydra_Value:$y, Optional<Hydra_Value>:$sums);
}

def MatmulOp
    : Hydra_ContractionOp<
          "matmul", [DeclareOpInterfaceMethods<QuantizableOpInterface, ["matmulToQuantize"]>]> {
  let summary = "batched matmul";
  let description = [{
    `%c = hydra.matmul %a, %b transpose_a transpose_b`: `a [..., M, K]`, `b [..., K, N]`,
    `c [..., M, N]` with equal leading dimensions; a flag says that the operand is stored with its
    last two dimensions swapped. `hydra.matmul %a, %b, %d` is `a b + d`, with `d` of the type of the
    result, summed and rounded once. With `dtype = f32` the sums of bf16 or f16 operands are not
    rounded; `compute` as for `hydra.linear`.
    `full_precision` keeps the operands of this matmul and of its derivatives in f32 under mixed
    precision: for statistics and states that add up. `quantize_a` and `quantize_b` are the formats of
    the operands, which have two dimensions then.
  }];
  let arguments = (ins Hydra_Value:$a, Hydra_Value:$b, Optional<Hydra_Value>:$addend,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       OptionalAttr<TypeAttr>:$dtype, UnitAttr:$reduced_reduction,
                       UnitAttr:$full_precision, OptionalAttr<TypeAttr>:$compute,
                       OptionalAttr<TypeAttr>:$quantize_a, OptionalAttr<TypeAttr>:$quantize_b);
  let results = (outs Hydra_Value:$c);
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b,
                                 "::mlir::UnitAttr":$transpose_a,
                                 "::mlir::UnitAttr":$transpose_b), [{
    build($_builder, $_state, a, b, ::mlir::Value(), transpose_a, transpose_b, ::mlir::TypeAttr(),
          ::mlir::UnitAttr(), ::mlir::UnitAttr(), ::mlir::TypeAttr(), ::mlir::TypeAttr(),
          ::mlir::TypeAttr());
  }]>, OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$addend,
                      "::mlir::UnitAttr":$transpose_a, "::mlir::UnitAttr":$transpose_b,
                      "::mlir::TypeAttr":$dtype, "::mlir::UnitAttr":$reduced_reduction,
                      "::mlir::TypeAttr":$compute), [{
    build($_builder, $_state, a, b, addend, transpose_a, transpose_b, dtype, reduced_reduction,
          ::mlir::UnitAttr(), compute, ::mlir::TypeAttr(), ::mlir::TypeAttr());
  }]>, OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$addend,
                      "::mlir::UnitAttr":$transpose_a, "::mlir::UnitAttr":$transpose_b,
                      "::mlir::TypeAttr":$dtype, "::mlir::UnitAttr":$reduced_reduction,
                      "::mlir::UnitAttr":$full_precision, "::mlir::TypeAttr":$compute), [{
    build($_builder, $_state, a, b, addend, transpose_a, transpose_b, dtype, reduced_reduction,
          full_precision, compute, ::mlir::TypeAttr(), ::mlir::TypeAttr());
  }]>];
  let hasCanonicalizer = 1;
}

class Hydra_GatherLikeOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [StorageOpInterface,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<IdOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, ["bytes", "costClass"]>]>;

def EmbeddingOp : Hydra_GatherLikeOp<"embedding", [EightBitOperandsTrait,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>,
    DeclareOpInterfaceMethods<RowWiseOpInterface,
                              ["rowDimensions", "operandForm", "needsOuterOperand"]>]> {
  let summary = "rows of a table by token id";
  let description = [{
    `%x = hydra.embedding %tokens, %table`: `tokens [...] i32`, `table [V, D]`, `x [..., D]`. Ids
    outside `[0, V)` are an error where a program is given them, and rows of NaN where it computes them. Of a table of i8 the rows are too.
    `padding = N`: no gradient flows from rows with the id N, one of `[0, V)`, into the table. It changes no value.
  }];
  let arguments = (ins Hydra_Value:$tokens, Hydra_Value:$table, Hydra_Optional<Hydra_Int>:$padding);
  let results = (outs Hydra_Value:$x);
  let builders = [OpBuilder<(ins "::mlir::Value":$tokens, "::mlir::Value":$table), [{
    build($_builder, $_state, tokens, table, ::mlir::Attribute());
  }]>];
}

def EmbeddingGradOp : Hydra_GatherLikeOp<"embedding_grad"> {
  let summary = "sums rows into a table by token id";
  let description = [{
    `%g = hydra.embedding_grad %tokens, %dx rows = V`: `g[v] = sum over t with tokens[t] = v of
    dx[t]`, in ascending order of t; `g [V, D]` in f32.
  }];
  let arguments = (ins Hydra_Value:$tokens, Hydra_Value:$dx, Hydra_Int:$rows);
  let results = (outs Hydra_Value:$grad);
  let extraClassDeclaration = inferDeclaration # [{
    ::hydra::Exactness exactness() { return ::hydra::Exactness::OfWholeNumbers; }
  }];
}

#endif // HYDRA_CONTRACTION_OPS_TD
