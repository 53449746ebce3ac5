// The interfaces through which passes, the planner and the oracle know operations.
#ifndef HYDRA_INTERFACES_TD
#define HYDRA_INTERFACES_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    Builds its own vector-Jacobian product from operations of the dialect.
  }];
  let methods = [
    InterfaceMethod<[{
        Returns the form of this operation that also yields what its derivative wants to reuse
        (row statistics, log-sum-exp, …), built in front of it; this operation is then replaced and
        erased. The default needs nothing.
      }],
      "::mlir::Operation *", "saveForBackward", (ins "::mlir::OpBuilder &":$builder), "",
      [{ (void)builder; return $_op.getOperation(); }]>,
    InterfaceMethod<[{
        Given the gradient of each result (null where none flows), sets the gradient of each
        operand that has one. Gradients have the type of the value they belong to.
      }],
      "void", "vjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGrads)>,
  ];
}

def ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{ Evaluates itself in float64, as simply as possible: the oracle. }];
  let methods = [
    InterfaceMethod<[{
        Computes the results from the operands. Results arrive with their shape and zeros. Bad data
        (a token id out of range) is reported as an error of the operation.
      }],
      "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<const ::hydra::RefTensor *>":$operands,
           "::llvm::MutableArrayRef<::hydra::RefTensor>":$results)>,
    InterfaceMethod<[{
        The same where numbers are rounded to their types: so is what it keeps for itself.
      }],
      "::llvm::LogicalResult", "evaluateRounded",
      (ins "::llvm::ArrayRef<const ::hydra::RefTensor *>":$operands,
           "::llvm::MutableArrayRef<::hydra::RefTensor>":$results), "",
      [{ return $_op.evaluate(operands, results); }]>,
    InterfaceMethod<"Which results an executor has without error if their type can hold them.",
      "::hydra::Exactness", "exactness", (ins), "",
      [{ return ::hydra::exactnessByFlops($_op); }]>,
  ];
}

def LeafOpInterface : OpInterface<"LeafOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{ An operation without operands, whose type comes from its attributes. }];
  let methods = [
    InterfaceMethod<"The static type, once all attributes are numbers; reports what is wrong.",
      "::llvm::FailureOr<::mlir::RankedTensorType>", "boundType", (ins)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{ Predicts work: the base of every roofline figure that is printed. }];
  let methods = [
    InterfaceMethod<"Arithmetic operations of one execution; a multiply-add counts 2.",
      "int64_t", "flops", (ins), "", [{ return ::hydra::resultElements($_op); }]>,
    InterfaceMethod<"Bytes read and written by one execution that starts and ends in memory.",
      "int64_t", "bytes", (ins), "", [{ return ::hydra::operandAndResultBytes($_op); }]>,
    InterfaceMethod<"The class of models.md section 7 under which reports count it.",
      "::hydra::OpClass", "costClass", (ins), "", [{ return ::hydra::OpClass::elementwise; }]>,
  ];
}

def StorageOpInterface : OpInterface<"StorageOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    What an operation accepts and offers when values become buffers. The default is dense operands,
    fresh results.
  }];
  let methods = [
    InterfaceMethod<"The layouts of the operand that need no copy before this operation.",
      "::hydra::OperandLayout", "operandLayout", (ins "unsigned":$operand), "",
      [{ (void)operand; return ::hydra::OperandLayout{}; }]>,
    InterfaceMethod<"The layouts in which the operation can write the result.",
      "::hydra::OperandLayout", "resultLayout", (ins "unsigned":$result), "",
      [{ (void)result; return ::hydra::OperandLayout{}; }]>,
    InterfaceMethod<[{
        If the first result can be a strided view of an operand: that operand's number.
      }],
      "std::optional<unsigned>", "viewedOperand", (ins), "", [{ return std::nullopt; }]>,
    InterfaceMethod<[{
        The view of `viewedOperand` that is the result, given the strides (in elements) of that
        operand; fails when these strides allow none.
      }],
      "::llvm::FailureOr<::hydra::StridedView>", "view",
      (ins "::llvm::ArrayRef<int64_t>":$strides), "",
      [{ (void)strides; return ::mlir::failure(); }]>,
    InterfaceMethod<[{
        The operands whose buffer the result may take over when this is their last use: element i
        of the result depends on no other element of that operand, or on those of its pair, 2j and
        2j + 1 of an even number of columns.
      }],
      "::llvm::SmallVector<unsigned>", "overwritableOperands", (ins "unsigned":$result), "",
      [{ (void)result; return {}; }]>,
  ];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{ What mixed precision may do with an operation. }];
  let methods = [
    InterfaceMethod<"The precision class.", "::hydra::Precision", "precisionClass", (ins), "",
      [{ return ::hydra::Precision::Follow; }]>,
    InterfaceMethod<[{
        Whether an operand may come rounded to fewer bits than f32 has. Not so: row statistics, biases,
        whatever is f32 by definition. Only asked of floating-point operands.
      }],
      "bool", "takesRounded", (ins "unsigned":$operand), "", [{ (void)operand; return true; }]>,
    InterfaceMethod<[{
        Makes an operation of class Matmul write its sums in a format: the one in which they are added
        up, whatever its operands become, or rounded to the one that its operands have; false if it
        cannot. The caller sets the type of the result.
      }],
      "bool", "yieldIn", (ins "::mlir::Type":$format), "", [{ (void)format; return false; }]>,
    InterfaceMethod<[{
        The format that an operand is rounded to before it is multiplied; null: its own.
      }],
      "::mlir::Type", "multipliedIn", (ins "unsigned":$operand), "",
      [{ (void)operand; return {}; }]>,
    InterfaceMethod<[{
        Makes an operation of class Matmul read its operands in f32 under mixed precision too, and multiply
        them in a format: f32, or one that no tensor holds and they are rounded to; false if it cannot.
      }],
      "bool", "multiplyIn", (ins "::mlir::Type":$format), "",
      [{ (void)format; return false; }]>,
    InterfaceMethod<[{
        Lets an operation of class Matmul round partial sums to the type of its operands, where it has
        a say in them.
      }],
      "void", "allowReducedReduction", (ins), "", [{ return; }]>,
    InterfaceMethod<[{
        Lets an operation of class Matmul that makes logits for itself alone round them to the type of its
        operands.
      }],
      "void", "roundLogits", (ins), "", [{ return; }]>,
  ];
}

def QuantizableOpInterface : OpInterface<"QuantizableOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    A matmul whose operands can be quantized to 8 bits (`hydra-select-quantized`, `hydra-quantize-matmuls`).
  }];
  let methods =
      [InterfaceMethod<"The operand that is a weight; null where none is known to be.",
                       "::mlir::Value", "getWeight", (ins), "", [{ return {}; }]>,
       InterfaceMethod<[{
        Says to which formats its operands, and the gradient that its derivative multiplies, are to be
        quantized. Only asked of what has a weight.
      }],
                       "void", "quantizeTo",
                       (ins "::mlir::Type":$operands, "::mlir::Type":$gradient), "",
                       [{ (void)operands; (void)gradient; }]>,
       InterfaceMethod<
           "What it multiplies, and in which formats; nullopt where nothing is to be quantized.",
           "::std::optional<::hydra::MatmulToQuantize>", "matmulToQuantize", (ins)>,
  ];
}

def RowUseOpInterface : OpInterface<"RowUseOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    Says which rows of an operand its results need, for rows that are not active (`hydra-skip-rows`).
    Rows are the elements of the first dimension. An operation without the interface needs all.
  }];
  let methods = [
    InterfaceMethod<"What is needed of an operand.", "::hydra::RowUse", "rowUse",
      (ins "unsigned":$operand)>,
    InterfaceMethod<[{
        Whether rows left out save more than it costs to decide on the device how many there are: a
        matmul, whose arithmetic is in proportion to its rows.
      }],
      "bool", "paysToSkipRows", (ins), "", [{ return false; }]>,
  ];
}

def ZeroOpInterface : OpInterface<"ZeroOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{ Says where its result is zero, from where its operands are. }];
  let methods = [
    InterfaceMethod<[{
        Whether the result is zero wherever those operands are of which `isZero` says so. The default:
        if all are.
      }],
      "bool", "givesZero", (ins "::llvm::function_ref<bool(unsigned)>":$isZero), "",
      [{ return ::llvm::all_of(::llvm::seq($_op->getNumOperands()), isZero); }]>,
  ];
}

def IdOpInterface : OpInterface<"IdOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{ Uses integers as rows of a table or classes; bounds inputs of programs. }];
  let methods = [
    InterfaceMethod<"The range that the ids in an operand must keep; nullopt for other operands.",
      "std::optional<::hydra::IdRange>", "idRange", (ins "unsigned":$operand)>,
  ];
}

def RowWiseOpInterface : OpInterface<"RowWiseOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    Can be part of a group of row-wise operations (`hydra.fused`), which becomes one generated
    kernel. See RowEmitter.h.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether this very operation can be part of a group: a reduction over dimensions in the
        middle cannot.
      }],
      "bool", "isRowWise", (ins), "", [{ return true; }]>,
    InterfaceMethod<[{
        The shape over which the operation works.
      }],
      "::llvm::SmallVector<int64_t>", "rowWiseShape", (ins)>,
    InterfaceMethod<[{
        How many leading dimensions of that shape are rows; nullopt when any split does
        (elementwise operations).
      }],
      "std::optional<unsigned>", "rowDimensions", (ins), "", [{ return std::nullopt; }]>,
    InterfaceMethod<[{
        How an operand lies in rows × inner dimensions. The default: a tile, or a scalar when it has
        no dimensions.
      }],
      "::hydra::RowForm", "operandForm", (ins "unsigned":$operand), "",
      [{ return ::hydra::formByRank($_op->getOperand(operand)); }]>,
    InterfaceMethod<"The same for a result.",
      "::hydra::RowForm", "resultForm", (ins "unsigned":$result), "",
      [{ return ::hydra::formByRank($_op->getResult(result)); }]>,
    InterfaceMethod<[{
        Whether an operand must come from outside the group: a table whose rows are gathered, a
        tile of which other columns are read.
      }],
      "bool", "needsOuterOperand", (ins "unsigned":$operand), "",
      [{ (void)operand; return false; }]>,
    InterfaceMethod<[{
        Whether a result sums over rows and so can only be used outside the group.
      }],
      "bool", "sumsOverRows", (ins "unsigned":$result), "",
      [{ (void)result; return false; }]>,
    InterfaceMethod<[{
        Emits the results from the operands. `outer[i]` is the number of the group's operand that
        operand i is, where `needsOuterOperand(i)`.
      }],
      "void", "emitRows",
      (ins "::hydra::RowEmitter &":$emitter, "::llvm::ArrayRef<::hydra::RowValue>":$operands,
           "::llvm::ArrayRef<unsigned>":$outer,
           "::llvm::MutableArrayRef<::hydra::RowValue>":$results)>,
  ];
}

def RowWiseFormOpInterface : OpInterface<"RowWiseFormOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    Is not row-wise, but can be written as operations that are (`hydra-lower-losses`).
  }];
  let methods = [
    InterfaceMethod<"Whether this very operation must be: some reductions are row-wise themselves.",
      "bool", "needsRowWiseForm", (ins), "", [{ return true; }]>,
    InterfaceMethod<"Builds operations with the same results, which it returns.",
      "::llvm::SmallVector<::mlir::Value>", "buildRowWiseForm",
      (ins "::mlir::OpBuilder &":$builder)>,
  ];
}

def RecomputeOpInterface : OpInterface<"RecomputeOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    Is cheap enough to be computed again instead of kept (`hydra-recompute`): one pass over memory.
    What has not the interface is kept.
  }];
  let methods = [
    InterfaceMethod<"When its first result may be computed again.", "::hydra::RecomputeWhen",
      "recomputeWhen", (ins), "", [{ return ::hydra::RecomputeWhen::Rowwise; }]>,
  ];
}

def CacheOpInterface : OpInterface<"CacheOpInterface"> {
  let description = [{
    An operation that needs more of a sequence than the tokens of one call: what it keeps of earlier ones, for
    `hydra-cache`. What treats each position alone needs no such interface.
  }];
  let cppNamespace = "::hydra";
  let methods = [
    InterfaceMethod<[{
      Whether it needs earlier positions when dimension `axis` of operand 0 holds those of the call.
    }], "bool", "needsEarlier", (ins "int64_t":$axis)>,
    InterfaceMethod<[{
      Builds in front of the operation what has the same results for tokens behind those of earlier calls; reports what
      cannot be continued.
    }], "::llvm::FailureOr<::mlir::Value>", "readOn", (ins "::hydra::SequenceCache &":$cache, "int64_t":$axis)>,
  ];
}

def CountedLossOpInterface : OpInterface<"CountedLossOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    A loss over labels, or its gradient, which divides by the number of those that count unless it is
    told by what.
  }];
  let methods = [
    InterfaceMethod<"The labels, of which -100 do not count.", "::mlir::Value", "getLabels", (ins)>,
    InterfaceMethod<"What it is told to divide by, or null.", "::mlir::Value", "getCount", (ins)>,
    InterfaceMethod<"Tells it to divide by `count []` (f32).", "void", "divideBy",
      (ins "::mlir::Value":$count), "", [{ $_op.getCountMutable().assign(count); }]>,
  ];
}

def OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    The update of one parameter. A `hydra.group` names the operation and gives its settings;
    `hydra-optimizer` asks which state it keeps, and lets it build the new values.
  }];
  let methods = [
    StaticInterfaceMethod<"The settings that a group gives, in the order of its text.",
      "::llvm::SmallVector<::hydra::OptimizerSetting>", "settings", (ins)>,
    StaticInterfaceMethod<[{
        Says what is wrong with the settings, those that are no expressions; empty when nothing is.
        All are there, each of its kind.
      }],
      "std::string", "checkSettings", (ins "::mlir::DictionaryAttr":$settings)>,
    StaticInterfaceMethod<"Says why it updates no parameter of that type; empty if it does.",
      "std::string", "checkParameter", (ins "::mlir::RankedTensorType":$parameter), "",
      [{ return ""; }]>,
    StaticInterfaceMethod<[{
        Whether new values of an element depend on no other element: then parameters may lie behind one
        another in a vector, of which each rank updates a part.
      }],
      "bool", "worksByElement", (ins)>,
    StaticInterfaceMethod<"The state kept for a parameter of that type, by bound settings.",
      "::llvm::SmallVector<::hydra::OptimizerState>", "states",
      (ins "::mlir::RankedTensorType":$parameter, "::mlir::DictionaryAttr":$settings)>,
    StaticInterfaceMethod<"Builds the new values: of the parameter, then of each state.",
      "::llvm::SmallVector<::mlir::Value>", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "const ::hydra::OptimizerInputs &":$inputs)>,
  ];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    Computes from values of several ranks, or by which of them it runs on. The ranks that differ in
    their coordinate along one axis of the mesh alone are a group; its order is that of the coordinate.
  }];
  let methods = [
    InterfaceMethod<"The axis of the mesh that it goes along.", "::llvm::StringRef", "getOver", (ins)>,
    InterfaceMethod<"The ranks of a group.", "int64_t", "getRanks", (ins)>,
    InterfaceMethod<"Bytes that one rank sends to others.", "int64_t", "wireBytes", (ins)>,
    InterfaceMethod<[{
        Computes the result of every rank of a group, in its order, from the operands of all.
        Results arrive with their shape and zeros.
      }],
      "void", "evaluateOverRanks",
      (ins "::llvm::ArrayRef<::llvm::SmallVector<const ::hydra::RefTensor *>>":$operands,
           "::llvm::MutableArrayRef<::hydra::RefTensor>":$results)>,
  ];
}

def PartitionOpInterface : OpInterface<"PartitionOpInterface"> {
  let cppNamespace = "::hydra";
  let description = [{
    What an operation does where each rank has a part of the rows of the batch (`hydra-partition`).
    Implementations: PartitionRules.cpp, attached by the dialect.
  }];
  let methods = [
    InterfaceMethod<[{
        Given how the operands lie on the ranks, says how the operation takes them (in their place) so
        that it can be computed by every rank alone, and how its results then lie. What it takes in
        another form than it is given is exchanged between the ranks. `ranks`: how many there are.
      }],
      "void", "partition",
      (ins "int64_t":$ranks, "::llvm::MutableArrayRef<::hydra::Spread>":$operands,
           "::llvm::MutableArrayRef<::hydra::Spread>":$results)>,
    InterfaceMethod<[{
        Tells the operation the shape of its result where that is an attribute.
      }],
      "void", "takeShape", (ins "::llvm::ArrayRef<int64_t>":$shape), "", [{ (void)shape; }]>,
    InterfaceMethod<[{
        The rows of its only result along a dimension that a rank has can be computed from as many rows of
        these operands, along these dimensions, and all of the others. nullopt: they cannot.
      }],
      "::std::optional<::llvm::SmallVector<::std::pair<unsigned, int64_t>>>", "operandsAlong",
      (ins "int64_t":$dimension), "", [{ (void)dimension; return ::std::nullopt; }]>,
    InterfaceMethod<[{
        Builds the rows of its only result that a rank has along a dimension, where they follow from no rows
        of operands but from the number of the rank (`over`: the axis of the mesh, with so many ranks); null
        if they do not.
      }],
      "::mlir::Value", "ownRows",
      (ins "::mlir::OpBuilder &":$builder, "int64_t":$dimension, "::mlir::StringAttr":$over,
           "int64_t":$ranks), "",
      [{ (void)builder; (void)dimension; (void)over; (void)ranks; return {}; }]>,
  ];
}

#endif // HYDRA_INTERFACES_TD
