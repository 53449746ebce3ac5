// How many numbers are of which size.
#ifndef HYDRA_COUNTING_OPS_TD
#define HYDRA_COUNTING_OPS_TD

include "dialects/hydra/HydraBase.td"

def CountExponentsOp : Hydra_ValueOp<"count_exponents", [StorageOpInterface,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]> {
  let summary = "how many elements of tensors are nearest to which power of two";
  let description = [{
    `%n = hydra.count_exponents %x, %y, … first = -40 count = 64`: `n [64]` i32. Number i is of the elements x of all
    operands with 2^(first + i - 1/2) < |x| < 2^(first + i + 1/2): their exponents of two, rounded to nearest. The
    first one has all smaller ones too, zeros and what is no number, the last one all larger ones and infinities. The
    limits are irrational, so no number lies on one. -126 <= first, so subnormals of f32 are always counted by the first
    one, and first + count - 1 <= 127. Together the operands have less than 2^31 elements.

    With `scaled` the first operand is a factor, `[]` in f32, by which the elements of all others are multiplied in f32
    before they are counted. Counts are sums of whole numbers, so their bits depend on no order. No derivative.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$values, Hydra_Int:$first, Hydra_Int:$count,
                       UnitAttr:$scaled);
  let results = (outs Hydra_Value:$counts);
  let extraClassDeclaration = inferDeclaration # [{
    /// The most elements that are counted together.
    static constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;
    /// What is counted: the operands but the factor.
    ::mlir::OperandRange getTensors() { return (*this)->getOperands().drop_front(getScaled() ? 1 : 0); }
    /// What multiplies it first, or null.
    ::mlir::Value getFactor() { return getScaled() ? (*this)->getOperand(0) : ::mlir::Value(); }
  }];
}

#endif // HYDRA_COUNTING_OPS_TD
