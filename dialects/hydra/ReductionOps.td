// Reductions over axes.
#ifndef HYDRA_REDUCTION_OPS_TD
#define HYDRA_REDUCTION_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_ReductionOp<string mnemonic, string what>
    : Hydra_ValueOp<mnemonic, [ReductionTrait, StorageOpInterface,
        DeclareOpInterfaceMethods<RowWiseOpInterface,
          ["isRowWise", "rowDimensions", "operandForm", "resultForm", "sumsOverRows"]>,
        DeclareOpInterfaceMethods<RowWiseFormOpInterface, ["needsRowWiseForm", "buildRowWiseForm"]>,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = what # " over axes";
  let description = "`%y = hydra." # mnemonic # [{ %x axes = [2] keep`: negative axes count from the
    end; `keep` leaves reduced dimensions in the shape as 1.}];
  let arguments = (ins Hydra_Value:$x, Hydra_IntList:$axes, UnitAttr:$keep);
  let results = (outs Hydra_Value:$y);
}
def SumOp : Hydra_ReductionOp<"sum", "sum">;
def MeanOp : Hydra_ReductionOp<"mean", "arithmetic mean"> {
  let extraClassDeclaration = inferDeclaration # [{
    ::hydra::Exactness exactness() { return ::hydra::Exactness::Never; }
  }];
}
def ReduceMaxOp : Hydra_ReductionOp<"reduce_max",
  "maximum (the gradient is shared equally among ties)">;

#endif // HYDRA_REDUCTION_OPS_TD
