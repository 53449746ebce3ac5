// What ranks exchange, and which of them one is.
#ifndef HYDRA_COLLECTIVE_OPS_TD
#define HYDRA_COLLECTIVE_OPS_TD

include "dialects/hydra/NormOps.td"

// `over` is an axis of the mesh, `ranks` its size; of gathers and numbers of ranks several that are taken
// as one (`MeshAttr`). Ranks meet outside of loops only. On the wire are
// gathers and exchanges alone; sums are ordinary adds in the order of ranks.
class Hydra_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [StorageOpInterface, Hydra_VJP,
        DeclareOpInterfaceMethods<CollectiveOpInterface, ["wireBytes", "evaluateOverRanks"]>,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]> {
  let hasVerifier = 1;
}

def AllGatherOp : Hydra_CollectiveOp<"all_gather", [EightBitOperandsTrait]> {
  let summary = "what all ranks have, side by side";
  let description = [{
    `%y = hydra.all_gather %x axis = 0 over = "data" ranks = 2 number = 1`: `x [..., n, ...]`,
    `y [..., ranks n, ...]`, along `axis` and in the order of ranks. Gathers of other numbers are never
    merged: what is gathered again for the backward pass is not kept from the forward pass. `over =
    "data*data.node"` is the gather over `data` of what is gathered over `data.node`: `hydra-split-gathers`
    makes it two.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Int:$axis, StrAttr:$over, Hydra_Int:$ranks,
                       Hydra_Int:$number);
  let results = (outs Hydra_Value:$y);
}

def AllToAllOp : Hydra_CollectiveOp<"all_to_all"> {
  let summary = "every rank gives each a piece";
  let description = [{
    `%y = hydra.all_to_all %x axis = 0 over = "data" ranks = 2 number = 1`: `x [..., ranks n, ...]` is
    `ranks` pieces along `axis`; piece i goes to rank i. `y`, of the same shape, is what comes from all
    ranks, in their order.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Int:$axis, StrAttr:$over, Hydra_Int:$ranks,
                       Hydra_Int:$number);
  let results = (outs Hydra_Value:$y);
}

def AllReduceOp : Hydra_CollectiveOp<"all_reduce"> {
  let summary = "the sum over all ranks";
  let description = [{
    `%y = hydra.all_reduce %x over = "data" ranks = 2`: `y = x of rank 0 + x of rank 1 + …`, from left to
    right. `hydra.all_reduce %x, %start` begins with `start`, the same on all ranks:
    `start + x of rank 0 + …`, the chain of adds that accumulation over as many micro-batches makes.
    An all_to_all of pieces, adds, and an all_gather of the sums. With `sum = f32` rounded operands (bf16,
    f16) are added up in f32, which `start` and `y` then are.
  }];
  let arguments = (ins Hydra_Value:$x, Optional<Hydra_Value>:$start, StrAttr:$over, Hydra_Int:$ranks,
                       OptionalAttr<TypeAttr>:$sum);
  let results = (outs Hydra_Value:$y);
}

def ReduceScatterOp : Hydra_CollectiveOp<"reduce_scatter"> {
  let summary = "each rank's piece of the sum over all ranks";
  let description = [{
    `%y = hydra.reduce_scatter %x axis = 0 over = "data" ranks = 2`: `x [..., ranks n, ...]` is `ranks`
    pieces along `axis`; rank i has the sum of the pieces i `[..., n, ...]`, in the order of ranks.
    `hydra.reduce_scatter %x, %start` begins with `start`, of which each rank has its piece. An all_to_all
    and adds. `sum = f32` is as in all_reduce.
  }];
  let arguments = (ins Hydra_Value:$x, Optional<Hydra_Value>:$start, Hydra_Int:$axis, StrAttr:$over,
                       Hydra_Int:$ranks, OptionalAttr<TypeAttr>:$sum);
  let results = (outs Hydra_Value:$y);
}

def ShardOp : Hydra_ValueOp<"shard", [StorageOpInterface, PrecisionOpInterface, CostOpInterface]> {
  let summary = "the same value, of which each rank is to have its rows";
  let description = [{
    `%y = hydra.shard %x over = "data"`: says that what follows works on the rows of `x` that a rank has
    along that axis of the mesh. `hydra-partition` makes it so and leaves nothing of it.
  }];
  let arguments = (ins Hydra_Value:$x, StrAttr:$over);
  let results = (outs Hydra_Value:$y);
}

def RankOp : Hydra_LeafOp<"rank", [
    DeclareOpInterfaceMethods<ReferenceOpInterface>, CostOpInterface, StorageOpInterface,
    PrecisionOpInterface,
    DeclareOpInterfaceMethods<CollectiveOpInterface, ["wireBytes", "evaluateOverRanks"]>]> {
  let summary = "which rank this is along an axis of the mesh";
  let description = [{ `%r = hydra.rank over = "data" ranks = 2`: `r []` i32, from 0. }];
  let arguments = (ins StrAttr:$over, Hydra_Int:$ranks);
  let results = (outs Hydra_Value:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser,
                                         ::mlir::OperationState &state) {
      return ::hydra::parseLeafOp(parser, state, getAttributeNames());
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) { ::hydra::printLeafOp(printer, *this); }
  }];
}

#endif // HYDRA_COLLECTIVE_OPS_TD
