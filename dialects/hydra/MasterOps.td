// A parameter that is held in two halves: the bf16 that matmuls read, and what of its f32 that leaves out.
#ifndef HYDRA_MASTER_OPS_TD
#define HYDRA_MASTER_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_MasterOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [EightBitOperandsTrait, ElementwiseTrait, CostOpInterface,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<RowWiseOpInterface>,
        DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout"]>]>;

def SplitMasterOp : Hydra_MasterOp<"split_master"> {
  let summary = "the two halves of a number: the nearest bf16, and the rest";
  let description = [{
    `%high, %rest = hydra.split_master %x`: `x [...] f32`, `high [...] bf16`, `rest [...] i16`. With the bits of x as an
    integer, `rest` is their lower half with a sign, and `high` are the bits without it: x to nearest, and away from
    zero where two are equally near (`hydra.cast` rounds to even there). `hydra.join_master` makes every x again, to the
    bit; of NaN a NaN.
  }];
  let arguments = (ins Hydra_Value:$x);
  let results = (outs Hydra_Value:$high, Hydra_Value:$rest);
  let authoredResults = "2";
}

def JoinMasterOp : Hydra_MasterOp<"join_master"> {
  let summary = "the number that two halves are of";
  let description = [{
    `%x = hydra.join_master %high, %rest`: `high [...] bf16`, `rest [...] i16`, `x [...] f32`: what
    `hydra.split_master` has made them of.
  }];
  let arguments = (ins Hydra_Value:$high, Hydra_Value:$rest);
  let results = (outs Hydra_Value:$x);
}

#endif // HYDRA_MASTER_OPS_TD
