// Operations that move elements without computing: the later views and copies.
#ifndef HYDRA_SHAPE_OPS_TD
#define HYDRA_SHAPE_OPS_TD

include "dialects/hydra/HydraBase.td"

class Hydra_ShapeOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]>;
class Hydra_ViewOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ShapeOp<mnemonic, traits # [DeclareOpInterfaceMethods<StorageOpInterface,
                                                         ["viewedOperand", "view", "operandLayout"]>]>;
defvar Hydra_RowUse = DeclareOpInterfaceMethods<RowUseOpInterface>;

def BroadcastOp : Hydra_ViewOp<"broadcast"> {
  let summary = "repeats a tensor along missing or unit dimensions";
  let description = [{
    `%y = hydra.broadcast %x shape = [B, S, D]`: `%x` is aligned to the right, as in NumPy.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_IntList:$shape);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
}

def ReshapeOp : Hydra_ViewOp<"reshape", [EightBitOperandsTrait, Hydra_RowUse, ZeroOpInterface]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{ `%y = hydra.reshape %x shape = [B, S, H, hd]` }];
  let arguments = (ins Hydra_Value:$x, Hydra_IntList:$shape);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TransposeOp : Hydra_ViewOp<"transpose", [EightBitOperandsTrait]> {
  let summary = "permutes dimensions";
  let description = [{
    `%y = hydra.transpose %x order = [0, 2, 1, 3]`: dimension i of the result is dimension
    `order[i]` of `%x`.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_IntList:$order);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def SliceOp : Hydra_ViewOp<"slice", [EightBitOperandsTrait, Hydra_RowUse, ZeroOpInterface]> {
  let summary = "a range of one axis";
  let description = [{ `%y = hydra.slice %x axis = 1 start = 0 size = S - 1` }];
  let arguments = (ins Hydra_Value:$x, Hydra_Int:$axis, Hydra_Int:$start, Hydra_Int:$size);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
}

def CopyOp : Hydra_ShapeOp<"copy", [EightBitOperandsTrait, DeclareOpInterfaceMethods<StorageOpInterface,
                                                              ["operandLayout", "resultLayout"]>]> {
  let summary = "the same tensor in a dense buffer of its own";
  let description = [{
    `%y = hydra.copy %x`: made by `hydra-assign-layouts` where a consumer does not take a view, and by
    `hydra-quantize-matmuls` of what is read transposed.
  }];
  let arguments = (ins Hydra_Value:$x);
  let results = (outs Hydra_Value:$y);
}

def ConcatOp : Hydra_ShapeOp<"concat", [EightBitOperandsTrait, Hydra_RowUse, ZeroOpInterface,
    DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout", "resultLayout"]>]> {
  let summary = "joins tensors along one axis";
  let description = [{ `%y = hydra.concat %a, %b, %c axis = 0` }];
  let arguments = (ins Variadic<Hydra_Value>:$parts, Hydra_Int:$axis);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
}

def PadOp : Hydra_ShapeOp<"pad", [
    DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout", "resultLayout"]>]> {
  let summary = "zeros before and after one axis";
  let description = [{ `%y = hydra.pad %x axis = 1 before = 2 after = 0` }];
  let arguments = (ins Hydra_Value:$x, Hydra_Int:$axis, Hydra_Int:$before, Hydra_Int:$after);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
}

#endif // HYDRA_SHAPE_OPS_TD
