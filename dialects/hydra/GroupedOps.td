// Matmuls of rows in groups, each of which has a matrix of its own.
#ifndef HYDRA_GROUPED_OPS_TD
#define HYDRA_GROUPED_OPS_TD

include "dialects/hydra/HydraBase.td"

// Rows are sorted by groups, as `hydra.route` sorts them: group e has the rows offsets[e] to
// offsets[e + 1] - 1. offsets[0] is 0; behind the last group are rows without one. Sums are in f32 and
// rounded once, to `dtype` (by default the type of the operands). `compute` as for `hydra.linear`.
class Hydra_GroupedOp<string mnemonic>
    : Hydra_ValueOp<mnemonic, [StorageOpInterface,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded", "yieldIn",
                                                         "multipliedIn", "multiplyIn"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;

def GroupedLinearOp : Hydra_GroupedOp<"grouped_linear"> {
  let summary = "y = x wᵀ, with a weight for each group of rows";
  let description = [{
    `%y = hydra.grouped_linear %x, %w, %offsets`: `x [R, K]`, `w [E, N, K]`, `offsets [E + 1]` i32; row r of
    `y [R, N]` is row r of x times the transpose of `w[e]`, if r is in group e. Rows without a group are
    zero. With `transposed`, `w [E, K, N]` is multiplied as it is. So a mixture of experts has one buffer of
    sorted rows, however experts share them out.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Hydra_Value:$offsets, UnitAttr:$transposed,
                       OptionalAttr<TypeAttr>:$dtype, OptionalAttr<TypeAttr>:$compute);
  let results = (outs Hydra_Value:$y);
}

def GroupedOuterOp : Hydra_GroupedOp<"grouped_outer"> {
  let summary = "c[e] = aᵀ b over the rows of group e";
  let description = [{
    `%c = hydra.grouped_outer %a, %b, %offsets`: `a [R, N]`, `b [R, K]`, `offsets [E + 1]` i32,
    `c [E, N, K]`: c[e] is the sum over the rows r of group e, in rising order, of the outer product of a[r]
    and b[r]; zero for a group without rows. The gradient of the weights of `hydra.grouped_linear`.
  }];
  let arguments = (ins Hydra_Value:$a, Hydra_Value:$b, Hydra_Value:$offsets,
                       OptionalAttr<TypeAttr>:$dtype, OptionalAttr<TypeAttr>:$compute);
  let results = (outs Hydra_Value:$c);
}

#endif // HYDRA_GROUPED_OPS_TD
