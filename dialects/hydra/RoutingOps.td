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
    equal numbers the one at the lower index counts as larger. A NaN, than which nothing is larger, is true
    beside the k largest numbers. models.md section 3.5.
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

def RouteOp : Hydra_RoutingOp<"route", [StorageOpInterface]> {
  let summary = "rows sorted by the groups that they are in";
  let description = [{
    `%index, %group, %place, %offsets = hydra.route %mask k = 2`: `mask [T, E]` i1 says which of E groups
    (experts) row t is in, at most k; of more the first k count. The R = k T sorted rows are those of group
    0, then of group 1, …, of each in ascending order. `index [R]` i32 is the row that a sorted one is,
    `group [R]` i32 its group, `offsets [E + 1]` i32 where groups begin: group e has the sorted rows
    `offsets[e]` to `offsets[e + 1] - 1`, and `offsets[0]` is 0. `place [T, k]` i32 is the inverse of
    `index`: where row t stands in each of its groups. Where rows are in fewer groups than k, `place` is
    -1, and behind the last sorted row `index` is -1 and `group` 0. With them `hydra.take_rows` gathers
    rows, and adds up what comes back; `hydra.grouped_linear` works on them. How many rows a group has is
    data of the device; there are R however they are shared out.
  }];
  let arguments = (ins Hydra_Value:$mask, Hydra_Int:$k);
  let results = (outs Hydra_Value:$index, Hydra_Value:$group, Hydra_Value:$place,
                      Hydra_Value:$offsets);
  let authoredResults = "4";
}

def TakeRowsOp : Hydra_RoutingOp<"take_rows", [
    StorageOpInterface, DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>,
    DeclareOpInterfaceMethods<RowWiseFormOpInterface, ["needsRowWiseForm", "buildRowWiseForm"]>,
    DeclareOpInterfaceMethods<RowWiseOpInterface,
                              ["isRowWise", "rowDimensions", "operandForm", "needsOuterOperand"]>]> {
  let summary = "rows of a matrix by number, sums of them, and zeros";
  let description = [{
    `%y = hydra.take_rows %x, %index, %place`: `x [M, D]`, `index [N]`; row i of `y [N, D]` is row
    `index[i]` of x, or zero where that is negative. With `index [N, k]` it is the sum of the rows
    `index[i, 0]`, `index[i, 1]`, …, added in this order in f32 and rounded once. `place [M]` or `[M, j]`
    is the inverse of `index`: the rows of y that row i of x is in, as `hydra.compact` and `hydra.route`
    make it. That makes the derivative the same operation with the two exchanged; so
    `hydra.take_rows %y, %place, %index` scatters rows back.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$index, Hydra_Value:$place);
  let results = (outs Hydra_Value:$y);
}

#endif // HYDRA_ROUTING_OPS_TD
