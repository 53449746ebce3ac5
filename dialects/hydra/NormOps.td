// Row-wise operations with a reduction inside: norms, softmax, rotary embedding.
#ifndef HYDRA_NORM_OPS_TD
#define HYDRA_NORM_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_RowOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<StorageOpInterface, ["overwritableOperands"]>,
        DeclareOpInterfaceMethods<RowWiseOpInterface,
          ["rowDimensions", "operandForm", "resultForm", "needsOuterOperand", "sumsOverRows"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;
defvar Hydra_VJP = DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>;
defvar Hydra_SavingVJP = DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp", "saveForBackward"]>;

def RmsNormOp : Hydra_RowOp<"rms_norm", [Hydra_SavingVJP, RecomputeOpInterface]> {
  let summary = "y = x r w with r = (mean(x²) + eps)^(-1/2) over the last axis";
  let description = [{
    `%y = hydra.rms_norm %x, %w eps = 1.0e-5`: `x [..., D]`, `w [D]`. With `saving`, also `r [...]`
    (f32). models.md section 1.3.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Hydra_Real:$eps, UnitAttr:$saving);
  let results = (outs Hydra_Value:$y, Optional<Hydra_Value>:$r);
}

def RmsNormGradOp : Hydra_RowOp<"rms_norm_grad"> {
  let summary = "the derivative of rms_norm";
  let description = [{
    `%dx, %dw = hydra.rms_norm_grad %dy, %x, %w, %r`: with `n = x r`, `h = dy w`:
    `dx = r (h - n mean(h n))`, `dw = sum over rows of dy n`.
  }];
  let arguments = (ins Hydra_Value:$dy, Hydra_Value:$x, Hydra_Value:$w, Hydra_Value:$r);
  let results = (outs Hydra_Value:$dx, Hydra_Value:$dw);
  let authoredResults = "2";
}

def LayerNormOp : Hydra_RowOp<"layer_norm", [Hydra_SavingVJP, RecomputeOpInterface]> {
  let summary = "y = (x - mean) r w + b with r = (var + eps)^(-1/2) over the last axis";
  let description = [{
    `%y = hydra.layer_norm %x, %w, %b eps = 1.0e-5`; population variance. With `saving`, also the
    mean and `r` of every row (f32). models.md section 1.3.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Hydra_Value:$b, Hydra_Real:$eps,
                       UnitAttr:$saving);
  let results = (outs Hydra_Value:$y, Variadic<Hydra_Value>:$saved);
}

def LayerNormGradOp : Hydra_RowOp<"layer_norm_grad"> {
  let summary = "the derivative of layer_norm";
  let description = [{
    `%dx, %dw, %db = hydra.layer_norm_grad %dy, %x, %w, %mean, %r`: with `n = (x - mean) r` and
    `h = dy w`: `dx = r (h - mean(h) - n mean(h n))`.
  }];
  let arguments = (ins Hydra_Value:$dy, Hydra_Value:$x, Hydra_Value:$w, Hydra_Value:$mean,
                       Hydra_Value:$r);
  let results = (outs Hydra_Value:$dx, Hydra_Value:$dw, Hydra_Value:$db);
  let authoredResults = "3";
}

def SoftmaxOp : Hydra_RowOp<"softmax", [Hydra_VJP]> {
  let summary = "y = e^(x - max) / sum over the last axis";
  let description = [{ `%y = hydra.softmax %x`. A row of minus infinities gives zeros. }];
  let arguments = (ins Hydra_Value:$x);
  let results = (outs Hydra_Value:$y);
}

def SoftmaxGradOp : Hydra_RowOp<"softmax_grad"> {
  let summary = "dx = y (dy - sum(dy y))";
  let description = [{ `%dx = hydra.softmax_grad %dy, %y` }];
  let arguments = (ins Hydra_Value:$dy, Hydra_Value:$y);
  let results = (outs Hydra_Value:$dx);
}

def RopeOp : Hydra_RowOp<"rope", [Hydra_VJP,
    DeclareOpInterfaceMethods<RecomputeOpInterface, ["recomputeWhen"]>]> {
  let summary = "rotary position embedding";
  let description = [{
    `%y = hydra.rope %x base = 1.0e4`: `x [B, S, H, hd]` with hd even; pair i is rotated by
    `pos * base^(-2i/hd)`. Pair i is the channels (2i, 2i+1), or with `half_split` (i, i + hd/2).
    Position t of the sequence is t, or with `period = P` t mod P. `inverse` rotates back: the
    derivative. Angles are computed in fp32 or better from integer positions. A second operand
    `positions [B, S]` (f32) says where rows stand instead: whole numbers from 0 to 2^24 - 1, to which others are cut off; they have no derivative.
  }];
  let arguments = (ins Hydra_Value:$x, Optional<Hydra_Value>:$positions, Hydra_Real:$base, UnitAttr:$half_split, UnitAttr:$inverse,
                       Hydra_Optional<Hydra_Int>:$period);
  let results = (outs Hydra_Value:$y);
}

#endif // HYDRA_NORM_OPS_TD
