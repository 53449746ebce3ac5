// Cross entropy over logits, and fused with the output projection.
#ifndef HYDRA_LOSS_OPS_TD
#define HYDRA_LOSS_OPS_TD

include "dialects/hydra/NormOps.td"

class Hydra_LossOp<string mnemonic, list<Trait> traits = [],
                   list<string> precision = ["precisionClass", "takesRounded"]>
    : Hydra_ValueOp<mnemonic, traits # [StorageOpInterface,
        DeclareOpInterfaceMethods<IdOpInterface>, CountedLossOpInterface,
        DeclareOpInterfaceMethods<PrecisionOpInterface, precision>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;

def CrossEntropyOp : Hydra_LossOp<"cross_entropy", [Hydra_SavingVJP, Hydra_RowWiseForm]> {
  let summary = "mean of lse(z) - z[label] over the rows whose label is not -100";
  let description = [{
    `%loss = hydra.cross_entropy %logits, %labels`: `logits [..., V]`, `labels [...] i32`, `loss []`
    (f32). No valid row: 0. With `saving`, also `lse [...]` (f32). Labels outside `[0, V)` other
    than -100 are an error where a program is given them, and make NaN where it computes them. `%loss = hydra.cross_entropy %logits, %labels, %count`
    divides by `count []` (f32) instead: where a step has several micro-batches,
    `hydra-optimizer` gives it the labels that count in all of them, divided by their number.
    models.md section 1.3.
  }];
  let arguments = (ins Hydra_Value:$logits, Hydra_Value:$labels, Optional<Hydra_Value>:$count,
                       UnitAttr:$saving);
  let results = (outs Hydra_Value:$loss, Optional<Hydra_Value>:$lse);
}

def CrossEntropyGradOp : Hydra_LossOp<"cross_entropy_grad", [Hydra_RowWiseForm]> {
  let summary = "dlogits = dloss (softmax(z) - onehot(label)) / valid rows, 0 on ignored rows";
  let description = [{
    `%dz = hydra.cross_entropy_grad %dloss, %logits, %labels, %lse`, and `count` behind them as above.
  }];
  let arguments = (ins Hydra_Value:$dloss, Hydra_Value:$logits, Hydra_Value:$labels,
                       Hydra_Value:$lse, Optional<Hydra_Value>:$count);
  let results = (outs Hydra_Value:$dlogits);
}

def LinearCrossEntropyOp : Hydra_LossOp<"linear_cross_entropy", [Hydra_SavingVJP],
                                        ["precisionClass", "takesRounded", "multipliedIn",
                                         "multiplyIn", "allowReducedReduction", "roundLogits"]> {
  let summary = "cross entropy of x wᵀ without logits in memory";
  let description = [{
    `%loss = hydra.linear_cross_entropy %x, %w, %labels`: `x [..., D]`, `w [V, D]`,
    `labels [...] i32`, `loss []` (f32). Computed over chunks of rows. Because the loss ends the
    forward pass, `saving` also yields its gradients with respect to x (f32 or the type of x) and w
    (f32) from the same sweep. With `rows` the second result is what each row adds to the sum of
    which the loss is the mean, `[...]` (f32), 0 on ignored rows; it has no derivative: a loss may
    use it behind `hydra.detach`. A fourth operand `count []` is what it divides by, as above.
    Logits are f32, or with `rounded_logits` rounded to the type of x; what is made of them is f32.
    models.md section 1.3.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$w, Hydra_Value:$labels,
                       Optional<Hydra_Value>:$count, UnitAttr:$rows, UnitAttr:$saving,
                       UnitAttr:$reduced_reduction, OptionalAttr<TypeAttr>:$compute,
                       UnitAttr:$rounded_logits);
  let results = (outs Hydra_Value:$loss, Variadic<Hydra_Value>:$others);
  let authoredResults = "Adaptor(operands, attributes, properties, regions).getRows() ? 2 : 1";
  let extraClassDeclaration = inferDeclaration # [{
    /// Of ReferenceOpInterface.
    ::llvm::LogicalResult evaluateRounded(::llvm::ArrayRef<const ::hydra::RefTensor *> operands,
                                          ::llvm::MutableArrayRef<::hydra::RefTensor> results);
    /// The losses of rows, if it yields them.
    ::mlir::Value getRowLosses() { return getRows() ? getOthers().front() : ::mlir::Value(); }
    /// With `saving`: the gradients of x and w.
    ::mlir::ResultRange getSaved() { return getOthers().drop_front(getRows()); }
  }];
}

#endif // HYDRA_LOSS_OPS_TD
