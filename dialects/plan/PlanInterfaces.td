// What every entry of a program has in common.
#ifndef HYDRA_PLAN_INTERFACES_TD
#define HYDRA_PLAN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def BlockInterface : OpInterface<"BlockInterface"> {
  let cppNamespace = "::hydra::plan";
  let description = [{ An entry of a program, loop body or case: when it may run. }];
  let methods = [
    InterfaceMethod<"The stream, below the program's number.", "int64_t", "getStreamNumber", (ins),
      "", [{ return $_op.getStream(); }]>,
    InterfaceMethod<"Events of the same list signalled before, waited for.",
      "::llvm::ArrayRef<int64_t>", "getAwaited", (ins), "", [{ return $_op.getWaits(); }]>,
    InterfaceMethod<"The event this block signals, or -1.", "int64_t", "getSignalled", (ins), "",
      [{ return $_op.getSignals(); }]>,
  ];
}

def PlanLoweringOpInterface : OpInterface<"PlanLoweringOpInterface"> {
  let cppNamespace = "::hydra::plan";
  let description = [{
    Turns an operation on values into steps on buffers. Implemented outside the dialect, per target,
    as external models (compiler/lowering).
  }];
  let methods = [
    InterfaceMethod<"Writes the steps of this operation.", "::llvm::LogicalResult", "lowerToPlan",
      (ins "::hydra::plan::Lowering &":$lowering)>,
  ];
}

#endif // HYDRA_PLAN_INTERFACES_TD
