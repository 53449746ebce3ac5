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

def StepInterface : OpInterface<"StepInterface", [BlockInterface]> {
  let cppNamespace = "::hydra::plan";
  let description = [{
    A block that works on buffers, all of them operands: its effects, its work, and how it falls
    apart. What reports and the cost model say of a step is in the attributes `flops`, `bytes`,
    `op_class` and `label`; all they decide is how long it is expected to take.
  }];
  let methods = [
    InterfaceMethod<"The buffers, in the order of the step's arguments in a plan file.",
      "::mlir::OperandRange", "getArgs", (ins), "", [{ return $_op->getOperands(); }]>,
    InterfaceMethod<"How the step uses each argument.",
      "::llvm::SmallVector<::hydra::plan::Access>", "getAccesses", (ins)>,
    InterfaceMethod<[{
        Into `slices` independent parts: of each argument, how many of its leading dimensions number
        the slices; 0 for one that all slices share. Failure where the step does not fall apart.
      }],
      "::llvm::FailureOr<::llvm::SmallVector<unsigned>>", "slicedDimensions",
      (ins "int64_t":$slices), "", [{ (void)slices; return ::mlir::failure(); }]>,
    InterfaceMethod<"Tells a step that runs beside others how many multiprocessors to count on.",
      "void", "countOnMultiprocessors", (ins "int64_t":$count), "", [{ (void)count; }]>,
    InterfaceMethod<"Whether ranks meet in it. All of them run such steps in one order, so they share a stream.",
      "bool", "meetsRanks", (ins), "", [{ return false; }]>,
    InterfaceMethod<"What it takes instead of the device, if it moves bytes alone.",
      "::std::optional<::hydra::support::Link>", "getLink", (ins), "", [{
        if ($_op.meetsRanks())
          return ::hydra::support::Link::Ranks;
        return std::nullopt;
      }]>,
    InterfaceMethod<"The format that it computes in, by which a target has its rates.",
      "::mlir::Type", "computedIn", (ins), "", [{
        if ($_op->getNumOperands() == 0)
          return ::mlir::Float32Type::get($_op->getContext());
        return ::llvm::cast<::mlir::MemRefType>($_op->getOperand(0).getType()).getElementType();
      }]>,
    InterfaceMethod<"The axis of the mesh along which ranks meet; -1 where they do not.", "int64_t",
      "getMeshAxis", (ins), "", [{ return -1; }]>,
    InterfaceMethod<"Bytes that each rank sends to others.", "uint64_t", "getSentBytes", (ins), "",
      [{ return 0; }]>,
    InterfaceMethod<"", "uint64_t", "getFlops", (ins), "", [{ return $_op.getFlops(); }]>,
    InterfaceMethod<"", "uint64_t", "getBytes", (ins), "", [{ return $_op.getBytes(); }]>,
    InterfaceMethod<"", "::hydra::OpClass", "getOpClass", (ins), "",
      [{ return $_op.getOpClass(); }]>,
    InterfaceMethod<"", "::llvm::StringRef", "getLabel", (ins), "", [{ return $_op.getLabel(); }]>,
  ];
  let extraClassDeclaration = [{
    /// How long a machine takes for it, at the limit: by its class, format, operations and bytes; of a
    /// collective by what it sends over the links that its axis of the mesh has, of a transfer by the link
    /// to the host.
    double seconds(const ::hydra::Roofline &rates);
    /// What most of that goes to.
    ::hydra::plan::Bound boundOf(const ::hydra::Roofline &rates);
    /// The ranks that it meets; alone where it meets none.
    ::hydra::RankGroup group();
  }];
  let extraSharedClassDeclaration = [{
    /// Arithmetic operations and bytes of traffic.
    void setWork(int64_t flops, int64_t bytes) {
      ::mlir::Builder b($_op->getContext());
      $_op->setAttr("flops", b.getI64IntegerAttr(flops));
      $_op->setAttr("bytes", b.getI64IntegerAttr(bytes));
    }
    void setReported(::hydra::OpClass opClass, ::llvm::StringRef label) {
      $_op->setAttr("op_class", ::hydra::OpClassAttr::get($_op->getContext(), opClass));
      $_op->setAttr("label", ::mlir::StringAttr::get($_op->getContext(), label));
    }
  }];
}

def PlanLoweringOpInterface : OpInterface<"PlanLoweringOpInterface"> {
  let cppNamespace = "::hydra::plan";
  let description = [{
    Turns an operation on values into steps on buffers, the same for every target. Implemented outside
    the dialect, as external models (compiler/lowering).
  }];
  let methods = [
    InterfaceMethod<"Writes the steps of this operation.", "::llvm::LogicalResult", "lowerToPlan",
      (ins "::hydra::plan::Lowering &":$lowering)>,
  ];
}

#endif // HYDRA_PLAN_INTERFACES_TD
