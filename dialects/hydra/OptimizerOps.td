// What updates of parameters share: the norm of all gradients, and the guard of new values.
#ifndef HYDRA_OPTIMIZER_OPS_TD
#define HYDRA_OPTIMIZER_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_OptimizerOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<StorageOpInterface, ["overwritableOperands"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;

/// The update of one tensor, element by element.
class Hydra_UpdateOp<string mnemonic, list<Trait> traits = []>
    : Hydra_OptimizerOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<OptimizerOpInterface>,
        DeclareOpInterfaceMethods<RowWiseOpInterface, ["operandForm"]>]>;

def GlobalNormOp : Hydra_OptimizerOp<"global_norm", [Hydra_RowWiseForm]> {
  let summary = "the square root of the sum of all squared elements";
  let description = [{ `%n = hydra.global_norm %g0, %g1, …`: `n []` in f32. }];
  let arguments = (ins Variadic<Hydra_Value>:$tensors);
  let results = (outs Hydra_Value:$norm);
  let extraClassDeclaration = inferDeclaration # [{
    /// Operations, row-wise or sums, for the sum of all squared elements of the tensors, at least one:
    /// `[]` in f32.
    static ::mlir::Value sumOfSquares(::mlir::OpBuilder &b, ::mlir::Location loc,
                                      ::mlir::ValueRange tensors);
  }];
}

def GuardOp : Hydra_OptimizerOp<"guard", [EightBitOperandsTrait,
    DeclareOpInterfaceMethods<RowWiseOpInterface, ["operandForm"]>]> {
  let summary = "the new value where an update is applied, else the old one, bit for bit";
  let description = [{
    `%kept = hydra.guard %ok, %new, %old`: `ok []` i1, the others of one type. `hydra-optimizer` puts it
    behind every new value of a step, with one `ok` for all of them.
  }];
  let arguments = (ins Hydra_Value:$ok, Hydra_Value:$fresh, Hydra_Value:$old);
  let results = (outs Hydra_Value:$kept);
}

#endif // HYDRA_OPTIMIZER_OPS_TD
