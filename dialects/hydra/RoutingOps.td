// Which rows are active, and gathering them.
#ifndef HYDRA_ROUTING_OPS_TD
#define HYDRA_ROUTING_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_RoutingOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;

def TopKOp : Hydra_RoutingOp<"top_k", [StorageOpInterface, Hydra_RowWiseForm]> {
  let summary = "which elements of a row are among its k largest";
  let description = [{
    `%chosen = hydra.top_k %u k = 16`: `u [..., S]`, `chosen [..., S]` i1, k of them true in every row. Of
    equal numbers the one at the lower index counts as larger. models.md section 3.5.
  }];
  let arguments = (ins Hydra_Value:$u, Hydra_Int:$k);
  let results = (outs Hydra_Value:$chosen);
}

def CompactOp : Hydra_RoutingOp<"compact", [StorageOpInterface]> {
  let summary = "the numbers of the active rows";
  let description = [{
    `%index, %place, %count = hydra.compact %mask`: `mask [N]` i1. `index [N]` i32 holds the numbers of the
    active rows, whose mask is true, ascending, then -1; `place [N]` i32 is its inverse: where such a row
    stands in `index`, -1 for other rows; `count []` i32 is how many there are. With them
    `hydra.take_rows` gathers the active rows and scatters them back. The row capacity N is static; how
    many rows are active is data of the device.
  }];
  let arguments = (ins Hydra_Value:$mask);
  let results = (outs Hydra_Value:$index, Hydra_Value:$place, Hydra_Value:$count);
  let authoredResults = "3";
}

def TakeRowsOp : Hydra_RoutingOp<"take_rows", [
    StorageOpInterface, DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>,
    DeclareOpInterfaceMethods<RowWiseOpInterface,
                              ["rowDimensions", "operandForm", "needsOuterOperand"]>]> {
  let summary = "rows of a matrix by number, and zeros";
  let description = [{
    `%y = hydra.take_rows %x, %index, %place`: `x [N, D]`; row i of `y [N, D]` is row `index[i]` of x, or
    zero where that is negative. `place` is the inverse of `index` as `hydra.compact` makes it, which
    makes the derivative the same operation with the two exchanged; so
    `hydra.take_rows %y, %place, %index` scatters rows back.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$index, Hydra_Value:$place);
  let results = (outs Hydra_Value:$y);
}

#endif // HYDRA_ROUTING_OPS_TD
