// Groups of row-wise operations: the unit of generated code.
#ifndef HYDRA_FUSION_OPS_TD
#define HYDRA_FUSION_OPS_TD

include "dialects/hydra/HydraBase.td"

def FusedOp : Hydra_Op<"fused", [IsolatedFromAbove, ValueOpTrait, Pure,
                                 SingleBlockImplicitTerminator<"YieldOp">,
                                 DeclareOpInterfaceMethods<RowUseOpInterface>,
                                 DeclareOpInterfaceMethods<CostOpInterface,
                                                           ["flops", "bytes", "costClass"]>,
                                 DeclareOpInterfaceMethods<StorageOpInterface,
                                                           ["resultLayout", "operandLayout", "overwritableOperands"]>]> {
  let summary = "row-wise operations that become one kernel";
  let description = [{
    ```mlir
    %n, %r = hydra.fused rows = [4, 128] inner = [768] (%a = %x, %b = %w)
        : tensor<4x128x768xf32>, tensor<768xf32> {
      %s = hydra.add %a, %a : tensor<4x128x768xf32>, tensor<4x128x768xf32>
      %y, %q = hydra.rms_norm %s, %b eps = 1.0e-5 saving : …
      hydra.yield %y, %q : tensor<4x128x768xf32>, tensor<4x128xf32>
    }
    ```
    Every operation inside has the row-wise interface or is a reshape or broadcast that keeps rows
    and columns apart. Inner values need no memory. The shape of an input or result says how it lies
    in the domain (RowForms.h): rows ++ inner is a tile, rows one number a row, inner one number a
    column, [] one number. An input that is a table of rows to gather has any shape.

    A generated kernel reads a part of every tile input before it writes the same part of a tile
    result, so such a result may take over the buffer of an input of its type.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$inputs, Hydra_IntList:$rows, Hydra_IntList:$inner);
  let results = (outs Variadic<Hydra_Value>:$values);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let builders = [
    /// With an empty block whose arguments are the inputs.
    OpBuilder<(ins "const ::hydra::RowDomain &":$domain, "::mlir::ValueRange":$inputs,
                   "::mlir::TypeRange":$results)>
  ];
  let extraClassDeclaration = [{
    ::hydra::RowDomain getDomain();
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::hydra::YieldOp getYield();

    /// Whether an input is only read by operations that need an outer operand: its rows are
    /// gathered, or it is rotated. It is never loaded as a value of the group.
    bool isOuterOnly(unsigned input);
    /// The form of an input that is loaded, and of a result.
    ::hydra::RowForm getInputForm(unsigned input);
    ::hydra::RowForm getResultForm(unsigned result);
    /// Whether a result is a sum over rows.
    bool sumsOverRows(unsigned result);

    /// Emits the body. `inputs[i]` is the loaded input i (unused where `isOuterOnly(i)`). Returns
    /// the value of each result, whose form may be less than that of the result (a scalar that
    /// fills a tile). Every result of an inner operation is rounded to its element type, except
    /// sums over rows, which the store must round.
    ::llvm::SmallVector<::hydra::RowValue> emit(::hydra::RowEmitter &emitter,
                                                ::llvm::ArrayRef<::hydra::RowValue> inputs);
  }];
}

#endif // HYDRA_FUSION_OPS_TD
