// Operations that make up a model file: symbols, parameters, stacks, entries and their control.
#ifndef HYDRA_MODEL_OPS_TD
#define HYDRA_MODEL_OPS_TD

include "dialects/hydra/HydraBase.td"

def ModelOp : Hydra_Op<"model", [IsolatedFromAbove, Symbol, SymbolTable, NoTerminator, SingleBlock,
                                 NoRegionArguments]> {
  let summary = "a model: template before binding, static program after";
  let description = [{
    `bound`, set by `hydra-bind`, holds the value of every symbol (`symbols`) and the name of the
    preset, if one was chosen (`preset`); `mesh`, if several ranks are to run it together, how they are
    arranged.

    ```mlir
    hydra.model @cs336 version 1 {
      hydra.symbols dims(D, L) reals(eps = 1.0e-5)
      hydra.preset @small {D = 768, L = 12}
      …
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$version,
                       OptionalAttr<Hydra_MeshAttr>:$mesh, OptionalAttr<DictionaryAttr>:$bound);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "$sym_name `version` $version (`mesh` $mesh^)? (`bound` $bound^)? $body attr-dict";
  let extraClassDeclaration = [{
    bool isBound() { return static_cast<bool>(getBoundAttr()); }
    /// The symbol's bound value; null before binding or when there is no such symbol.
    ::mlir::Attribute getSymbolValue(::llvm::StringRef name);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def SymbolsOp : Hydra_Op<"symbols", [HasParent<"ModelOp">]> {
  let summary = "declares the symbols of a model, some with defaults";
  let description = [{
    ```mlir
    hydra.symbols dims(D, F, C = 4) reals(eps = 1.0e-5) flags(tied = false)
                  choices(mor = dynamic of (fixed, dynamic, static))
    ```
    `defaults[i]` is a unit attribute where a
    preset or `--set` must give the value; `options[i]` lists what a choice can be.
  }];
  let arguments = (ins StrArrayAttr:$names, Hydra_SymbolKinds:$kinds, ArrayAttr:$defaults,
                       ArrayAttr:$options);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def DeriveOp : Hydra_Op<"derive", [HasParent<"ModelOp">]> {
  let summary = "a value computed from symbols, exact in the integers";
  let description = [{
    `hydra.derive hd = D / H`: a division of integers must leave no remainder.
  }];
  let arguments = (ins StrAttr:$symbol, Hydra_Expression:$value);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def PresetOp : Hydra_Op<"preset", [HasParent<"ModelOp">]> {
  let summary = "named values for symbols, and how a model of these is trained";
  let description = [{
    `hydra.preset @small {D = 768, L = 12, mor = static} settings {batch = 8, accum = 4, lr = 3.0e-4}`.
    The settings, which may be missing, are defaults of flags of hydrac: `PresetSetting` lists them.
  }];
  let arguments = (ins StrAttr:$preset, DictionaryAttr:$values, OptionalAttr<DictionaryAttr>:$settings);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def GroupOp : Hydra_Op<"group", [HasParent<"ModelOp">]> {
  let summary = "an optimizer group: how the parameters that name it are updated";
  let description = [{
    `hydra.group @decay adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = wd, lr_scale = 0.1)`.
    The word is an operation with the optimizer interface, which says what its settings are. A
    parameter without a group belongs to `@default`.
  }];
  let arguments = (ins StrAttr:$group, StrAttr:$optimizer, StrArrayAttr:$names, ArrayAttr:$values);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// All settings by name, also those that the text leaves to their defaults.
    ::mlir::DictionaryAttr getSettings();
    /// A bound number among them.
    double getNumber(::llvm::StringRef name);
    /// The operation that it names, or null.
    static const OptimizerOpInterface::Concept *lookupOptimizer(::mlir::MLIRContext *context,
                                                                ::llvm::StringRef name);
  }];
}

class Hydra_VariableOp<string mnemonic> : Hydra_Op<mnemonic, [Symbol]> {
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$shape, TypeAttr:$dtype,
                       Hydra_InitAttr:$init, OptionalAttr<StrAttr>:$group,
                       OptionalAttr<Hydra_Expression>:$condition);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The static type once bound; null while the shape holds expressions.
    ::mlir::RankedTensorType getBoundType();
  }];
}

def ParamOp : Hydra_VariableOp<"param"> {
  let summary = "a parameter, trained unless it is frozen";
  let description = [{
    `hydra.param @wq [D, D] init = normal(0.02) group = @decay when layer >= 1`. The element type
    (default f32) follows the shape. `when` drops the parameter where the condition is false.

    `from "model.layers.{layer}.self_attn.q_proj.weight"` is the name of the tensor in files of other
    programs; in a stack, `{layer}` stands for the number of the element. With `{row}` the slices along the
    first dimension are tensors of their own there, and it stands for the number of the slice. Of a matrix
    that they store as `[columns, rows]` it says `from "…" transposed`. `hydra-import` and `hydra-export`
    go by it.

    `frozen` behind all that says that it is not trained: it has no gradient, no moments and no update.
    `hydra-freeze` writes it for `--freeze`, and `hydra-lora` for `--lora`, whose own parameters have
    `adapter = #hydra.adapter<…>`.

    `hydra-unroll-layers` notes the element of the stack that a parameter is of (`in "layers.3"`). With
    `unit = #hydra.unit<…>` it is the rows of a vector that holds several parameters, made by
    `hydra-shard`; files know its members alone.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$shape, TypeAttr:$dtype,
                       Hydra_InitAttr:$init, OptionalAttr<StrAttr>:$group,
                       OptionalAttr<Hydra_Expression>:$condition, OptionalAttr<StrAttr>:$origin,
                       UnitAttr:$transposed, UnitAttr:$frozen, OptionalAttr<StrAttr>:$element,
                       OptionalAttr<Hydra_FlatUnitAttr>:$unit,
                       OptionalAttr<Hydra_AdapterAttr>:$adapter);
}

def StateOp : Hydra_VariableOp<"state"> {
  let summary = "a tensor that lives across steps, checkpointed but not differentiated";
  let description = [{
    `hydra.state @ema [] f32 init = zeros`. State that passes add says what it is for, and what it
    belongs to: `hydra.state @w.m [4] init = zeros of @w as moment`. The roles: `moment`, kept by the
    optimizer for a parameter; `average`, of the values that updates gave it; `gradient`, the sum of its
    gradients over micro-batches; `gradient_part`, what each rank has of that sum from its own rows, so that
    the value is the sum over ranks; `copy`, the same
    values as its owner, which it starts as and follows, in another element type or for later: it is in
    no checkpoint; `scale`, f32 and one for each row of a parameter of i8, which stands for numbers that its integers
    times this are, or bf16 and one for each 32 numbers of the rows of a parameter of i4, whose value is its bytes, of i8 with two
    numbers each: files have the numbers, and whoever reads or draws them rounds them; `rest`, what a
    parameter of bf16 leaves out of numbers of f32, which files have (`hydra.split_master`); without an owner `update_count`, the number of the next update, and `step_sum`, which
    is summed over the micro-batches of a step and then cleared.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$shape, TypeAttr:$dtype,
                       Hydra_InitAttr:$init, OptionalAttr<StrAttr>:$group,
                       OptionalAttr<Hydra_Expression>:$condition, OptionalAttr<StrAttr>:$owner,
                       DefaultValuedAttr<Hydra_VariableRole, "::hydra::VariableRole::state">:$role);
  let extraClassDeclaration = [{
    /// The static type once bound; null while the shape holds expressions.
    ::mlir::RankedTensorType getBoundType();
    /// Whether it is a parameter in another element type, its scale or rest, or what is derived from one.
    bool followsParameter();
    /// Whether ranks have a part each, of which the sum is its value.
    bool isPart() { return getRole() == VariableRole::gradient_part; }
  }];
}

def StackOp : Hydra_Op<"stack", [HasParent<"ModelOp">, Symbol, SymbolTable, NoTerminator,
                                 SingleBlock, NoRegionArguments]> {
  let summary = "parameters that every element of a stack of layers has its own copy of";
  let description = [{
    `hydra.stack @layers[L] { hydra.param @ln1 [D] init = ones … }`. Expressions inside may use
    `layer`, the number of the element from 0. Element i of `@ln1` is the tensor `layers.i.ln1`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Hydra_Int:$count);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def EntryOp : Hydra_Op<"entry", [HasParent<"ModelOp">, IsolatedFromAbove, Symbol,
                                 SingleBlockImplicitTerminator<"ReturnOp">,
                                 DeclareOpInterfaceMethods<OpAsmOpInterface,
                                                           ["getAsmBlockArgumentNames"]>]> {
  let summary = "something a model can be asked to compute";
  let description = [{
    `hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) { … }`. `dims` are
    symbols of the entry alone, bound per program. Bound arguments show their tensor type.
    `%s: [] f32 = 1.0` is a number that a run gives anew to every step, 1.0 unless it has a schedule. All
    parameters and state are read at entry; `hydra.return` names new values for them. `stage` is
    set by the passes that turn a forward entry into a `grad`, `train`, `count`, `accumulate` or `apply`
    program, or of one (`derive`) that makes derived state of what something else has written; `role(eval)` and `role(generate)` say what a run uses another one for. `ids(97, -97)`, set by `hydra-bind`, bounds integer arguments: ids below a positive number
    are rows of a table, a negative one bounds labels (which may also be -100), 0 says nothing.
    `rows`, where the model has a mesh, says which dimensions are those of the batch.

    An entry with `scan` is no program but the body of `hydra.loop`s: all that a pass does to the
    operations of a program it does to them as well, once for all loops that share the body.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arg_names, ArrayAttr:$arg_shapes,
                       TypeArrayAttr:$arg_dtypes, ArrayAttr:$arg_defaults, StrArrayAttr:$dims,
                       OptionalAttr<Hydra_ProgramStage>:$stage,
                       OptionalAttr<Hydra_ProgramRole>:$role,
                       OptionalAttr<DenseI64ArrayAttr>:$ids,
                       OptionalAttr<Hydra_ScanAttr>:$scan,
                       OptionalAttr<Hydra_RowsAttr>:$rows);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ReturnOp getReturn();
    /// Whether it can be run by itself: all but bodies of loops.
    bool isProgram() { return !getScan(); }
    /// What a run uses it for: said by its stage, or else by its role.
    ProgramRole programRole();
    /// Adds an argument with a bound type, and the default that a number has; returns its value.
    ::mlir::BlockArgument addArgument(::llvm::StringRef name, ::mlir::RankedTensorType type,
                                      ::mlir::Location loc, ::mlir::Attribute value = {});
    /// The number that an argument is unless a run says otherwise, if it has one.
    ::std::optional<double> getDefault(unsigned number);
    /// Removes an argument that nothing uses.
    void eraseArgument(unsigned number);
    /// Gives an argument another bound type.
    void setArgumentType(unsigned number, ::mlir::RankedTensorType type);
    /// The type of the whole sequence of which an argument is a chunk; of others, their own.
    ::mlir::RankedTensorType wholeType(::mlir::BlockArgument argument);
    /// The same for a result.
    ::mlir::RankedTensorType wholeResultType(unsigned result);
    /// The ranks that have a part of the batch each; 1 where every rank has all of it.
    int64_t ranks() { return getRows() ? getRows()->getRanks() : 1; }
    /// The dimension of the batch of an argument; -1 if it has none.
    int64_t batchDimension(unsigned argument) {
      return getRows() ? getRows()->getArguments()[argument] : -1;
    }
    /// The type of an argument of which the ranks have the parts.
    ::mlir::RankedTensorType batchType(unsigned argument);
  }];
}

def SectionOp : Hydra_Op<"section"> {
  let summary = "names a part of a model, for reports";
  let description = [{
    `hydra.section @mlp`: what follows in the block, up to the next section, is at `mlp` in paths such as
    `layers.3.mlp.down`. It computes nothing; `hydra-bind` removes it.
  }];
  let arguments = (ins SymbolNameAttr:$section);
  let assemblyFormat = "$section attr-dict";
  let hasVerifier = 1;
}

def BoundaryOp : Hydra_Op<"boundary", [MemoryEffects<[MemWrite]>]> {
  let summary = "where a layer begins, or the last one has ended, or the forward pass has";
  let description = [{
    `hydra.boundary layer = 3`, and without a layer the end of the forward pass: made by
    `hydra-unroll-layers` and removed by `hydra-recompute`. It marks a place and touches no value: what
    is simplified, and in which order gradients are summed, is the same with marks and without.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$layer);
  let assemblyFormat = "(`layer` `=` $layer^)? attr-dict";
}

def ReturnOp : Hydra_Op<"return", [Terminator, HasParent<"EntryOp">, ValueOpTrait, Pure,
                                   DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "names the results of an entry and the new values of parameters and state";
  let description = [{
    `hydra.return loss = %loss, grad @wq = %dw updates(@ema = %new)`. The first `output_names.size()`
    operands are outputs, of which the last `gradients.size()` are the gradients of parameters (in
    files `grad.<parameter>`), the rest updates. A template may say of an output when there is one,
    `tax = %tax when taxed`: `conditions` has as many as there are outputs, of those without one
    `unit`, and is absent where none has one.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$values, StrArrayAttr:$output_names,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "symbols">:$updated,
                       OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "symbols">>:$gradients,
                       OptionalAttr<ArrayAttr>:$conditions);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::OperandRange getOutputs() { return getValues().take_front(getOutputNames().size()); }
    ::mlir::OperandRange getUpdates() { return getValues().drop_front(getOutputNames().size()); }
    /// The output of that name, or null.
    ::mlir::Value getOutput(::llvm::StringRef name);
    /// The parameter of which an output is the gradient, or null.
    ::mlir::FlatSymbolRefAttr gradientOf(unsigned output);
    /// The gradient of a parameter, or null.
    ::mlir::Value getGradient(::mlir::StringAttr parameter);
    /// How files name the gradient of a parameter.
    static std::string gradientName(::llvm::StringRef parameter);
  }];
}

def UseOp : Hydra_LeafOp<"use", [DeclareOpInterfaceMethods<OpAsmOpInterface,
                                                           ["getAsmResultNames"]>]> {
  let summary = "the value of a parameter or state";
  let description = [{
    `%w = hydra.use @wq`. Inside `hydra.for` over a stack, the parameters of the stack come first.
    Printed, the value has the name of the parameter.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Hydra_Value:$value);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The parameter or state meant, or null; `symbols` finds many in one model faster.
    ::mlir::Operation *lookup(::mlir::SymbolTableCollection *symbols = nullptr);
    /// As `boundType`, with what finds many in one model faster.
    ::llvm::FailureOr<::mlir::RankedTensorType> boundType(::mlir::SymbolTableCollection *symbols);
  }];
}

def ForOp : Hydra_Op<"for", [ValueOpTrait, Pure, RecursiveMemoryEffects, AttrSizedOperandSegments,
                             SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "repeats its body over the elements of a stack";
  let description = [{
    ```mlir
    %after, %y = hydra.for @layers over(%s = %before) carry(%h = %x) {
      %g = hydra.use @ln1
      …
      hydra.yield %s_next, %out
    }
    ```
    `over`: element i of the stack has row i of the sequence `[L, ...]`, as `[...]`. What is yielded in
    front of the carried values is joined to sequences of that kind. Carried values keep their type from
    one element to the next. Bound, it shows the types of its operands, then of the sequences it yields.
  }];
  let arguments = (ins FlatSymbolRefAttr:$stack, Variadic<Hydra_Value>:$sequences,
                       Variadic<Hydra_Value>:$inits);
  let results = (outs Variadic<Hydra_Value>:$values);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block::BlockArgListType getCarried() {
      return getBody().getArguments().drop_front(getSequences().size());
    }
    /// The sequences that rows are joined to; the carried values stand behind them.
    ::mlir::ResultRange getJoined() {
      return getValues().drop_back(getInits().size());
    }
  }];
}

def ScanOp : Hydra_Op<"scan", [ValueOpTrait, Pure, RecursiveMemoryEffects, AttrSizedOperandSegments,
                               SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "loops over the chunks of a sequence and hands values from one chunk to the next";
  let description = [{
    ```mlir
    %z, %end = hydra.scan axis = 2 chunk = 16 over(%k = %keys, %v = %values) carry(%w = %start) {
      …
      hydra.yield %zc, %next
    }
    ```
    `%k` and `%v` are rows [16 i, 16 (i + 1)) of the sequences along `axis`, the last chunk what is left;
    `rows` in expressions is their number. The first yielded values are chunks of results, joined
    along `axis`; the last, as many as are carried, are the next chunk's carried values and in the end
    results, and keep their type. The body may read everything outside of it. Exists only before
    binding: `hydra-bind` makes a `hydra.loop` of the chunks that are whole, and writes out a last one
    that is short.
  }];
  let arguments = (ins Hydra_Int:$axis, Hydra_Int:$chunk, Variadic<Hydra_Value>:$sequences,
                       Variadic<Hydra_Value>:$inits);
  let results = (outs Variadic<Hydra_Value>:$values);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// How many of the yielded values are chunks of results.
    unsigned stackedCount() { return getNumResults() - getInits().size(); }
  }];
}

def LoopOp : Hydra_Op<"loop", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                               DeclareOpInterfaceMethods<CostOpInterface, ["flops", "bytes", "costClass"]>,
                               DeclareOpInterfaceMethods<PrecisionOpInterface,
                                                         ["precisionClass", "takesRounded", "yieldIn"]>]> {
  let summary = "runs an entry once for every chunk of sequences";
  let description = [{
    ```mlir
    %z, %end = hydra.loop @scan_0(%keys, %values, %start, %g)
        : (tensor<4x64x8xf32>, …) -> (tensor<4x64x8xf32>, tensor<4x8x8xf32>)
    ```
    The entry @scan_0 and its `scan` (see `hydra.entry`) say which operands are cut into chunks, which are
    carried from one iteration to the next, and which stay. Results are whole tensors of joined
    chunks, then what was carried in the end. `hydra-to-plan` makes a loop of it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$body, Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$values);
  let assemblyFormat = "$body `(` $inputs `)` attr-dict `:` functional-type($inputs, $values)";
  let builders = [
    /// Of a body that is in the model already.
    OpBuilder<(ins "::hydra::EntryOp":$body, "::mlir::ValueRange":$inputs)>
  ];
  let extraClassDeclaration = [{
    ::hydra::EntryOp getEntry();
    ::hydra::ScanAttr getScan() { return *getEntry().getScan(); }
    ::mlir::OperandRange getSequences() { return getInputs().take_front(getScan().getOver().size()); }
    ::mlir::OperandRange getInits() {
      return getInputs().slice(getScan().getOver().size(), getScan().getCarried());
    }
    /// What every iteration reads.
    ::mlir::OperandRange getKept() {
      return getInputs().drop_front(getScan().getOver().size() + getScan().getCarried());
    }
  }];
}

def ScanBeginOp : Hydra_Op<"scan_begin", [ValueOpTrait, Pure]> {
  let summary = "where a scan of a program that reads on begins";
  let description = [{
    `%x1, %w1 = hydra.scan_begin %x, %w axis = 1 chunk = 1 sequences = 1`: its operands, sequences first, then what is
    carried into the first chunk. Made by `hydra-bind` in front of the chunks of a scan, together with `hydra.scan_end`
    behind them, for `hydra-cache`, which puts what an earlier call carried in the place of the latter.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$values, Hydra_Int:$axis, Hydra_Int:$chunk, Hydra_Int:$sequences);
  let results = (outs Variadic<Hydra_Value>:$results);
  let assemblyFormat = "$values attr-dict `:` type($values) `->` type($results)";
  let hasVerifier = 1;
}

def ScanEndOp : Hydra_Op<"scan_end", [ValueOpTrait, Pure]> {
  let summary = "where a scan of a program that reads on ends";
  let description = [{
    `%y1, %end1 = hydra.scan_end %y, %end axis = 1 sequences = 1`: its operands, results along the axis first, then what
    is carried out of the last chunk.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$values, Hydra_Int:$axis, Hydra_Int:$sequences);
  let results = (outs Variadic<Hydra_Value>:$results);
  let assemblyFormat = "$values attr-dict `:` type($values) `->` type($results)";
  let hasVerifier = 1;
}

def PrefixScanOp : Hydra_Op<"prefix_scan", [ValueOpTrait, Pure, RecursiveMemoryEffects,
                                            SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "everything up to each row of a sequence, combined";
  let description = [{
    ```mlir
    %sums = hydra.prefix_scan axis = 1 over(%here = %x) combine(%before) {
      %sum = hydra.let %before + %here
      hydra.yield %sum
    }
    ```
    Row i of a result is rows 0 to i of the sequence combined, as many values as there are sequences at
    once (a linear recurrence combines factors and terms). The combination must be associative; it is
    given many pairs at a time, `rows` of them along the axis, and works on each alone. The body may
    read everything outside of it. Exists only before binding: where the combination works number by
    number on rows of one size, and these are many, `hydra-bind` makes loops from row to row of it,
    within chunks and over what these combine to, both as long as the root of the sequence; else it
    combines rows 1, 2, 4, … apart, log2 of the length times, so every step works on the whole sequence.
  }];
  let arguments = (ins Hydra_Int:$axis, Variadic<Hydra_Value>:$sequences);
  let results = (outs Variadic<Hydra_Value>:$values);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def WhenOp : Hydra_Op<"when", [ValueOpTrait, Pure, RecursiveMemoryEffects,
                               SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments]> {
  let summary = "code that a configuration has or has not";
  let description = [{
    `%u = hydra.when swiglu { … hydra.yield %a } else { … hydra.yield %b }`. Resolved by
    `hydra-bind`, or by `hydra-unroll-layers` when the condition uses `layer`.
  }];
  let arguments = (ins Hydra_Expression:$condition);
  let results = (outs Variadic<Hydra_Value>:$values);
  let regions = (region SizedRegion<1>:$then_region, MaxSizedRegion<1>:$else_region);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def DefOp : Hydra_Op<"def", [HasParent<"ModelOp">, IsolatedFromAbove, Symbol,
                             SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a piece of model that several places call";
  let description = [{
    ```mlir
    hydra.def @trunk(%tokens) { … hydra.yield %hidden }
    hydra.def @convolve(%taps, %w) dims(heads, width) { … }
    hydra.def @unit(%x) = %x * rsqrt(sum(%x * %x, -1))
    ```
    Parameters are symbols of the definition alone, in the lists of `hydra.symbols`; a call gives values to
    those without a default. Other symbols mean what they mean to the caller's entry. The last form is
    short for a body of one `hydra.let` and its values. Exists only before binding: `hydra-bind` writes its
    body where a call stands.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedOptionalAttr<StrArrayAttr, "{}">:$param_names,
                       DefaultValuedOptionalAttr<Hydra_SymbolKinds, "{}">:$param_kinds,
                       DefaultValuedOptionalAttr<ArrayAttr, "{}">:$param_defaults);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def CallOp : Hydra_Op<"call", [ValueOpTrait, Pure]> {
  let summary = "the results of a definition";
  let description = [{
    `%hidden = hydra.call @trunk(%tokens)`, `%y = hydra.call @convolve(%x, %w, heads = H, width = hd)`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Hydra_Value>:$arguments,
                       DefaultValuedOptionalAttr<StrArrayAttr, "{}">:$param_names,
                       DefaultValuedOptionalAttr<ArrayAttr, "{}">:$param_values);
  let results = (outs Variadic<Hydra_Value>:$values);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def LetOp : Hydra_Op<"let", [ValueOpTrait, Pure, RecursiveMemoryEffects, NoRegionArguments,
                             SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "arithmetic as it is written";
  let description = [{
    ```mlir
    %n = hydra.let (%x - mean(%x, 3)) * rsqrt(var + eps)
    %a, %b = hydra.let linear(%n, @wq) * 0.5, %state.sum / (2 * S)
    ```
    Operators and functions are operations of the dialect, in a region that shows only where it is printed
    generically; each has the location of its word. `@wq` is a parameter or state, `@f(…)` the result of a
    definition, `%state.sum` a field of a bundle, `when(tied, @embed, @head)` what a configuration has. What
    holds no value is one number, as in every other expression. Exists only before binding.
  }];
  let results = (outs Variadic<Hydra_Value>:$values);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def BundleOp : Hydra_Op<"bundle", [ValueOpTrait, Pure]> {
  let summary = "several values under names, as one";
  let description = [{
    `%state = hydra.bundle sum = %sum, count = %n`. A bundle goes wherever definitions and control take values;
    arithmetic takes its fields, `%state.sum`. Exists only before binding.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$fields, StrArrayAttr:$names);
  let results = (outs Hydra_Value:$bundle);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def FieldOp : Hydra_Op<"field", [ValueOpTrait, Pure]> {
  let summary = "one value of a bundle";
  let description = [{ `%sum = hydra.field %state name = "sum"`, which arithmetic writes as `%state.sum`. }];
  let arguments = (ins Hydra_Value:$bundle, StrAttr:$name);
  let results = (outs Hydra_Value:$value);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def YieldOp : Hydra_Op<"yield", [Terminator, ValueOpTrait, Pure,
                                 ParentOneOf<["DefOp", "ForOp", "FusedOp", "LetOp", "PrefixScanOp", "ScanOp", "WhenOp"]>]> {
  let summary = "ends a region with its values";
  let arguments = (ins Variadic<Hydra_Value>:$values);
  let hasCustomAssemblyFormat = 1;
  let builders = [OpBuilder<(ins), [{ }]>];
}

#endif // HYDRA_MODEL_OPS_TD
