// The dialect itself, its placeholder type, its attributes and the base classes of its operations.
#ifndef HYDRA_BASE_TD
#define HYDRA_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/hydra/HydraEnums.td"
include "dialects/hydra/HydraInterfaces.td"

def Hydra_Dialect : Dialect {
  let name = "hydra";
  let cppNamespace = "::hydra";
  let summary = "Models and training steps as static programs over tensor values";
  let description = [{
    ```
     model.mlir ──► hydra (template) ──hydra-bind──► hydra (static) ──passes──► plan ──► plan.fb
                    symbols, presets                 forward, backward,
                    no types                         update as one SSA graph
    ```

    A model is a *template* over symbols (dimensions, reals, flags, choices). Before binding every
    value has the type `!hydra.any` and no type is written. `hydra-bind` substitutes the symbols and
    infers static tensor types; all shape checks live in the type inference of the operations.
    Operations take and return values only: nothing aliases, nothing is written in place.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===-- Types -------------------------------------------------------------------------------===//

def Hydra_AnyType : TypeDef<Hydra_Dialect, "Any"> {
  let mnemonic = "any";
  let summary = "the type of every value before binding";
}

/// A value of the dialect: untyped before binding, a static tensor after.
def Hydra_Value : AnyTypeOf<[Hydra_AnyType, AnyStaticShapeTensor],
                            "unbound value or static tensor">;

//===-- Attributes --------------------------------------------------------------------------===//

def Hydra_ExprAttr : AttrDef<Hydra_Dialect, "Expr"> {
  let mnemonic = "expr";
  let summary = "an expression over the symbols of a model";
  let description = [{
    Without arguments: the symbol `head`. With arguments: the operator or function `head` applied to
    them. Arguments are expressions, integers (i64), reals (f64) or booleans. Written as usual
    arithmetic: `#hydra.expr<256 * ceil(D * ratio / 256)>`; only comparisons are functions here
    (`lt`, `le`, `gt`, `ge`), for `<` and `>` must pair. See Expr.h for grammar and evaluation.
  }];
  let parameters = (ins StringRefParameter<>:$head, OptionalArrayRefParameter<"::mlir::Attribute">:$args);
  let hasCustomAssemblyFormat = 1;
}

def Hydra_InitAttr : AttrDef<Hydra_Dialect, "Init"> {
  let mnemonic = "init";
  let summary = "how a parameter or state starts";
  let description = [{
    `zeros`, `ones`, `constant(v)`, `normal(std)`, `trunc_normal(std, cut)` (cut in units of std),
    `uniform(limit)`, and `shuffle(f)`: the values of `f`, an expression of `index`, in an order
    drawn at random. Arguments are expressions and may use `layer` inside a stack.
  }];
  let parameters = (ins EnumParameter<Hydra_InitKind>:$kind, OptionalArrayRefParameter<"::mlir::Attribute">:$args);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Hydra_OpClassAttr : EnumAttr<Hydra_Dialect, Hydra_OpClass, "op_class"> {
  let assemblyFormat = "`<` $value `>`";
}

def Hydra_ScopeAttr : AttrDef<Hydra_Dialect, "Scope"> {
  let mnemonic = "scope";
  let summary = "where in the model and the step an operation came from; for reports only";
  let description = [{
    Carried as the metadata of a fused location: `<"layers.3.mlp.down", backward, grad by
    "hydra-differentiate">`. `path` leads to it through elements of stacks, sections and definitions to
    the parameter that it reads, if any. `category` is what its result is, and `pass` what made it, where
    the model's text did not.
  }];
  let parameters = (ins StringRefParameter<>:$path, EnumParameter<Hydra_Phase>:$phase,
                        "::std::optional<::hydra::Category>":$category,
                        StringRefParameter<>:$pass);
  let hasCustomAssemblyFormat = 1;
}

def Hydra_ScanAttr : AttrDef<Hydra_Dialect, "Scan"> {
  let mnemonic = "scan";
  let summary = "how a loop iterates: what its body takes in every iteration, and what becomes of its results";
  let description = [{
    The body runs `count` times, from the first chunk to the last or, with `reverse`, from the last to
    the first. Its first arguments are chunks of sequences, cut along the axes `over`; then come
    `carried` values that the iteration before left; the rest are the same in every iteration. Its
    first results are chunks of whole results, joined along the axes `stacked`; the others are
    carried on.
  }];
  let parameters = (ins "int64_t":$count, OptionalArrayRefParameter<"int64_t">:$over,
                        DefaultValuedParameter<"int64_t", "0">:$carried,
                        OptionalArrayRefParameter<"int64_t">:$stacked,
                        DefaultValuedParameter<"bool", "false">:$reverse);
  let assemblyFormat = [{
    `<` $count (`over` `[` $over^ `]`)? (`carried` $carried^)? (`stacked` `[` $stacked^ `]`)?
    (`reverse` $reverse^)? `>`
  }];
}

def Hydra_MeshAttr : AttrDef<Hydra_Dialect, "Mesh"> {
  let mnemonic = "mesh";
  let summary = "how the ranks of a run are arranged";
  let description = [{
    `<["replica", "data"], [16, 8]>`: axes by name, outermost first, and their sizes. Rank r has the
    coordinates of r in row-major order.

    Several axes can be taken as one, `data*data.node`: a rank then is where it is along all of them, those
    named first counting most. With `<["data.node", "data"], [2, 4]>` rank 5, which is at 1 along both, is
    at 3 along `data*data.node`, and at 5 along `data.node*data`.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes,
                        ArrayRefParameter<"int64_t">:$sizes);
  let assemblyFormat = "`<` `[` $axes `]` `,` `[` $sizes `]` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// All ranks.
    int64_t ranks() const;
    /// The axes that a text names, in its order.
    static ::llvm::SmallVector<::llvm::StringRef, 2> axesOf(::llvm::StringRef over);
    /// The text that names several axes.
    static std::string joined(::llvm::ArrayRef<::llvm::StringRef> axes);
    /// Along an axis, or several; 0 where the mesh has none of that name.
    int64_t size(::llvm::StringRef over) const;
    /// From one rank to the next along a single axis.
    int64_t stride(::llvm::StringRef axis) const;
    /// Where a rank is along an axis, or several.
    int64_t coordinate(::llvm::StringRef over, int64_t rank) const;
    /// From the rank at 0 along an axis, or several, to the one at `coordinate` that is elsewhere
    /// along no other.
    int64_t distance(::llvm::StringRef over, int64_t coordinate) const;
  }];
}

def Hydra_RowsAttr : AttrDef<Hydra_Dialect, "Rows"> {
  let mnemonic = "rows";
  let summary = "which dimension of arguments and outputs is that of the batch, of which each rank has a part";
  let description = [{
    `<2 arguments [0, 0, -1] results [-1]>`: the first two arguments are a half of the batch along their
    dimension 0; -1 is what is the same on all ranks. Before `hydra-partition` a rank has all rows (1),
    and of results nothing is known.
  }];
  let parameters = (ins "int64_t":$ranks, OptionalArrayRefParameter<"int64_t">:$arguments,
                        OptionalArrayRefParameter<"int64_t">:$results);
  let assemblyFormat = [{
    `<` $ranks (`arguments` `[` $arguments^ `]`)? (`results` `[` $results^ `]`)? `>`
  }];
}

def Hydra_AdapterAttr : AttrDef<Hydra_Dialect, "Adapter"> {
  let mnemonic = "adapter";
  let summary = "that a parameter is one of two matrices whose product is added to another one";
  let description = [{
    `<"base_model.model.layers.0.q.lora_A.weight", 3.2e+01 : f64>`: the name of its tensor in files of
    adapters, and alpha: the product is multiplied by alpha / R, where R is the rank. Made by `hydra-lora`.
  }];
  let parameters = (ins "::mlir::StringAttr":$tensor, "::mlir::FloatAttr":$alpha);
  let assemblyFormat = "`<` $tensor `,` $alpha `>`";
}

def Hydra_MemberAttr : AttrDef<Hydra_Dialect, "Member"> {
  let mnemonic = "member";
  let summary = "a parameter that lies with others in one vector";
  let description = [{
    `<"wq", [64, 64], 4096, init>`: its name, shape, the elements of the vector before it, and how it
    starts; of an adapter, behind that, `#hydra.adapter<…>`.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, ArrayRefParameter<"int64_t">:$shape,
                        "int64_t":$offset, "::hydra::InitAttr":$init,
                        OptionalParameter<"::hydra::AdapterAttr">:$adapter);
  let assemblyFormat = "`<` $name `,` `[` $shape `]` `,` $offset `,` $init (`,` $adapter^)? `>`";
  let extraClassDeclaration = [{
    int64_t elements() const;
  }];
}

def Hydra_FlatUnitAttr : AttrDef<Hydra_Dialect, "FlatUnit"> {
  let mnemonic = "unit";
  let summary = "the parameters that one vector holds, and the axes of the mesh along which it is cut";
  let description = [{
    `<"data", 2, [members]>`: each of two ranks along the axis has a half of the rows, in their order.
    `<"data*data.node", 8, [members]>`: along several axes (`MeshAttr`), those named first cut it into the
    larger pieces. Before `hydra-partition` they are not cut (1). What belongs to no member is zero.
  }];
  let parameters = (ins "::mlir::StringAttr":$over, "int64_t":$pieces,
                        ArrayRefParameter<"::hydra::MemberAttr">:$members);
  let assemblyFormat = "`<` $over `,` $pieces `,` `[` $members `]` `>`";
  let extraClassDeclaration = [{
    FlatUnitAttr withPieces(int64_t count) const {
      return get(getContext(), getOver(), count, getMembers());
    }
  }];
}

def Hydra_TargetAttr : AttrDef<Hydra_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "the machine that a module is compiled for: what passes may decide by";
  let description = [{
    On the module as `hydra.target`, made from a description of compiler/targets; a module without one is
    for a CPU. `backend` is the folder of compiler/targets that implements it, `architecture` what its
    code is for. `multiprocessors`, which cut sums over rows (0 on CPUs: threads share grains of rows),
    `block_shared` and `multiprocessor_shared` (bytes of shared memory that a block can have, and that the
    blocks of a multiprocessor share), `quantized_multiple`, of which its library wants the dimensions of
    matmuls of 8-bit operands (0: it has none), and `features` shape code; `rates` (Target.h has their names) only
    choose between forms of the same results, and when they are ready. `tiles` and `required_tiles` are texts of
    KernelTiles.h, sizes of kernels instead of those that hydra-expand-kernels chooses by itself; of each that is required there
    must be a kernel.
  }];
  let parameters = (ins
    StringRefParameter<>:$name, StringRefParameter<>:$backend, StringRefParameter<>:$architecture,
    DefaultValuedParameter<"int64_t", "0">:$multiprocessors,
    DefaultValuedParameter<"int64_t", "0">:$block_shared,
    DefaultValuedParameter<"int64_t", "0">:$multiprocessor_shared,
    DefaultValuedParameter<"int64_t", "1">:$quantized_multiple,
    OptionalParameter<"::mlir::ArrayAttr">:$features,
    OptionalParameter<"::mlir::DictionaryAttr">:$rates,
    OptionalParameter<"::mlir::ArrayAttr">:$tiles,
    OptionalParameter<"::mlir::ArrayAttr">:$required_tiles);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    bool has(::llvm::StringRef feature);
    /// A rate, or 0.
    double rate(::llvm::StringRef name);
  }];
}

// Numbers that may still be expressions. The accessors are for bound operations.
def Hydra_Int : Attr<CPred<"::hydra::isIntOrExpr($_self)">, "integer or expression"> {
  let storageType = "::mlir::Attribute";
  let returnType = "int64_t";
  let convertFromStorage = "::hydra::intValue($_self)";
  let constBuilderCall = "$_builder.getI64IntegerAttr($0)";
}
def Hydra_Real : Attr<CPred<"::hydra::isRealOrExpr($_self)">, "number or expression"> {
  let storageType = "::mlir::Attribute";
  let returnType = "double";
  let convertFromStorage = "::hydra::realValue($_self)";
  let constBuilderCall = "$_builder.getF64FloatAttr($0)";
}
def Hydra_IntList : Attr<CPred<"::hydra::isIntListOrExprs($_self)">,
                         "list of integers or expressions"> {
  let storageType = "::mlir::ArrayAttr";
  let returnType = "::llvm::SmallVector<int64_t>";
  let convertFromStorage = "::hydra::intList($_self)";
  let constBuilderCall = "$_builder.getI64ArrayAttr($0)";
}
def Hydra_Expression : Attr<CPred<"::hydra::isExpression($_self)">, "expression"> {
  let storageType = "::mlir::Attribute";
  let returnType = "::mlir::Attribute";
  let convertFromStorage = "$_self";
}
/// Optional numbers keep the null attribute visible: use get<Name>Attr().
class Hydra_Optional<Attr a> : OptionalAttr<a> {
  let storageType = a.storageType;
  let returnType = a.storageType;
  let convertFromStorage = "$_self";
}

//===-- Operations --------------------------------------------------------------------------===//

/// Checks common to all value operations: operands and results all unbound or all bound, no
/// unknown attribute, no expression left in a bound operation.
def ValueOpTrait : NativeOpTrait<"ValueOp"> { let cppNamespace = "::hydra"; }

/// Binding makes the operands of such an operation one shape by explicit broadcasts.
def ElementwiseTrait : NativeOpTrait<"Elementwise"> { let cppNamespace = "::hydra"; }

/// A reduction over `axes`; arithmetic writes `mean(%x, 3)` and keeps the dimensions as 1.
def ReductionTrait : NativeOpTrait<"Reduction"> { let cppNamespace = "::hydra"; }

/// Takes operands of 8 bits, floats or integers, and rests of 16; other operations compute on wider ones.
def EightBitOperandsTrait : NativeOpTrait<"EightBitOperands"> { let cppNamespace = "::hydra"; }

class Hydra_Op<string mnemonic, list<Trait> traits = []> : Op<Hydra_Dialect, mnemonic, traits>;

/// An operation on values. Its text is `name operands attribute = value… [: operand types]`; see
/// ValueSyntax.h. Each defines `inferTypes`, which holds its shape checks.
class Hydra_ValueOp<string mnemonic, list<Trait> traits = []>
    : Hydra_Op<mnemonic, traits # [Pure, ValueOpTrait,
                                   DeclareOpInterfaceMethods<InferTypeOpInterface>,
                                   DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let hasCustomAssemblyFormat = 1;
  /// How many results the operation has when a person writes it (before binding): C++ over its `attributes` and
  /// `properties`.
  string authoredResults = "1";
  code inferDeclaration = [{
    static ::llvm::LogicalResult inferTypes(::hydra::TypeInference &infer, Adaptor op,
                                            ::llvm::SmallVectorImpl<::mlir::Type> &types);
  }];
  let extraClassDeclaration = inferDeclaration;
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser,
                                         ::mlir::OperationState &state) {
      return ::hydra::parseInferredOp<$cppClass>(parser, state);
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) {
      ::hydra::printValueOp(printer, *this);
    }
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes,
        ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::hydra::inferValueTypes<$cppClass>(context, location, operands, attributes,
                                                 properties, regions, }] # authoredResults # [{, types);
    }
  }];
}

/// Of an operation that always has to be written as row-wise ones.
defvar Hydra_RowWiseForm = DeclareOpInterfaceMethods<RowWiseFormOpInterface, ["buildRowWiseForm"]>;

/// A value operation without operands: its type is not inferred but written once bound.
class Hydra_LeafOp<string mnemonic, list<Trait> traits = []>
    : Hydra_Op<mnemonic, traits # [Pure, ValueOpTrait,
                                   DeclareOpInterfaceMethods<LeafOpInterface>]>;

#endif // HYDRA_BASE_TD
