// The hydra dialect: its types, attributes, operations and helpers to build them.
#pragma once

#include "dialects/hydra/Expr.h"
#include "dialects/hydra/Interfaces.h"
#include "dialects/hydra/ValueSyntax.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/hydra/HydraDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/hydra/HydraTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/hydra/HydraAttributes.h.inc"

namespace hydra {

bool isUnbound(mlir::Type type);

/// Says what a value for a symbol of that kind (`dim`, `real`, `flag`, `choice`) should be; empty
/// when it is.
std::string checkSymbolValue(mlir::Attribute value, SymbolKind kind, mlir::ArrayAttr options);

/// The values of `shuffle(…)` for a tensor of so many elements, in the order of the formula.
/// Reports one that is no finite number.
mlir::FailureOr<std::vector<double>>
shuffledValues(InitAttr init, int64_t elements,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Whether a name can go into files and reports: some UTF-8 text without control characters.
llvm::LogicalResult verifyName(mlir::Operation *op, llvm::StringRef name);

/// Whether expressions can read the name as that of a symbol.
llvm::LogicalResult verifySymbolName(mlir::Operation *op, llvm::StringRef name);

/// The checks behind ValueOpTrait; see HydraBase.td.
llvm::LogicalResult verifyValueOp(mlir::Operation *op);

template <typename ConcreteOp>
class ValueOp : public mlir::OpTrait::TraitBase<ConcreteOp, ValueOp> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyValueOp(op); }
};

template <typename ConcreteOp>
class Elementwise : public mlir::OpTrait::TraitBase<ConcreteOp, Elementwise> {};

template <typename ConcreteOp>
class EightBitOperands : public mlir::OpTrait::TraitBase<ConcreteOp, EightBitOperands> {};

template <typename ConcreteOp>
class Reduction : public mlir::OpTrait::TraitBase<ConcreteOp, Reduction> {};

class ReturnOp;

/// The type of a leaf, if need be in the first of the layers that it is in.
mlir::FailureOr<mlir::RankedTensorType> boundTypeOf(LeafOpInterface leaf);

/// The number of operands an operation has at least, from its traits.
template <typename Op, size_t... N> constexpr unsigned leastOperands(std::index_sequence<N...>) {
  unsigned least = Op::template hasTrait<mlir::OpTrait::OneOperand>() ? 1 : 0;
  ((Op::template hasTrait<mlir::OpTrait::NOperands<N + 2>::template Impl>() ||
            Op::template hasTrait<mlir::OpTrait::AtLeastNOperands<N + 1>::template Impl>()
        ? (void)(least = Op::template hasTrait<mlir::OpTrait::NOperands<N + 2>::template Impl>()
                             ? N + 2
                             : N + 1)
        : (void)0),
   ...);
  return least;
}
template <typename Op> constexpr unsigned leastOperands() {
  return leastOperands<Op>(std::make_index_sequence<8>());
}

/// `Op::inferReturnTypes` of every value operation: `results` unbound results when an operand is
/// unbound, else the operation's own `inferTypes` once its operands are complete. What attributes
/// say of `layer`, in layers that are not unrolled yet, they say of the first here.
template <typename Op>
llvm::LogicalResult inferValueTypes(mlir::MLIRContext *context,
                                    std::optional<mlir::Location> location,
                                    mlir::ValueRange operands, mlir::DictionaryAttr attributes,
                                    mlir::OpaqueProperties properties, mlir::RegionRange regions,
                                    unsigned results, llvm::SmallVectorImpl<mlir::Type> &types) {
  TypeInference infer(context, location, Op::getOperationName(), operands);
  if (infer.anyUnbound()) {
    types.assign(results, AnyType::get(context));
    return llvm::success();
  }
  typename Op::Adaptor op(operands, attributes, properties, regions);
  if (failed(infer.checkOperands(leastOperands<Op>(), Op::template hasTrait<EightBitOperands>())) ||
      failed(op.verify(location.value_or(mlir::UnknownLoc::get(context)))))
    return llvm::failure();
  const mlir::Attribute given = Op::getPropertiesAsAttr(context, op.getProperties());
  const mlir::FailureOr<mlir::Attribute> first = infer.inFirstLayer(given);
  if (failed(first))
    return llvm::failure();
  if (*first == given)
    return Op::inferTypes(infer, op, types);
  typename Op::Properties own;
  auto emitError = [&] {
    return mlir::emitError(location.value_or(mlir::UnknownLoc::get(context)));
  };
  if (failed(Op::setPropertiesFromAttr(own, *first, emitError)))
    return llvm::failure();
  return Op::inferTypes(infer, typename Op::Adaptor(operands, attributes, &own, regions), types);
}

/// `Op::parse` of every value operation: its text, then the types of its results.
template <typename Op>
mlir::ParseResult parseInferredOp(mlir::OpAsmParser &parser, mlir::OperationState &state) {
  mlir::Location location = parser.getEncodedSourceLoc(parser.getNameLoc());
  if (parseValueOp(parser, state, Op::getAttributeNames()))
    return mlir::failure();
  auto &properties = state.getOrAddProperties<typename Op::Properties>();
  auto emitError = [&] { return parser.emitError(parser.getNameLoc()); };
  llvm::SmallVector<mlir::Type> types;
  llvm::StringRef name = Op::getOperationName();
  if (failed(Op::setPropertiesFromAttr(
          properties, state.attributes.getDictionary(state.getContext()), emitError)) ||
      failed(
          checkTensors(location, name, "operand", mlir::ValueRange(state.operands).getTypes())) ||
      failed(Op::inferReturnTypes(state.getContext(), location, state.operands,
                                  state.attributes.getDictionary(state.getContext()),
                                  state.getRawProperties(), state.regions, types)) ||
      failed(checkTensors(location, name, "result", types)))
    return mlir::failure();
  for (llvm::StringRef name : Op::getAttributeNames())
    state.attributes.erase(name);
  state.addTypes(types);
  return mlir::success();
}

mlir::ParseResult parseInit(mlir::AsmParser &parser, InitAttr &init);
void printInit(mlir::AsmPrinter &printer, InitAttr init);

} // namespace hydra

#define GET_OP_CLASSES
#include "dialects/hydra/HydraOps.h.inc"

namespace hydra {

/// The symbol that counts the elements of a stack, the one that counts the elements of a tensor in
/// `shuffle`, and the one that is the number of rows of a chunk in `hydra.scan`.
inline constexpr llvm::StringLiteral kLayerSymbol = "layer";
/// Where the name of a tensor elsewhere has the number of the element: `from "h.{layer}.w"`.
inline constexpr llvm::StringLiteral kLayerPlaceholder = "{layer}";
/// Where it has the number of a slice along the first dimension: `from "experts.{row}.w1"`.
inline constexpr llvm::StringLiteral kRowPlaceholder = "{row}";
inline constexpr llvm::StringLiteral kIndexSymbol = "index";
inline constexpr llvm::StringLiteral kRowsSymbol = "rows";
/// True in programs of the role `decode`, which read on behind tokens of earlier calls.
inline constexpr llvm::StringLiteral kContinuedSymbol = "continued";
inline constexpr llvm::StringLiteral kTokensSymbol =
    "S"; ///< of entries: tokens of a sequence, or of a call
/// The tokens of a whole sequence: `S`, or in programs that read on their context.
inline constexpr llvm::StringLiteral kLengthSymbol = "length";

/// The parameters that the vector of a variable holds: of a unit, or of state that belongs to one,
/// in as many pieces as that is; null for any other variable.
FlatUnitAttr unitOf(mlir::Operation *variable);

/// The state that rows of a parameter of i8 are multiplied by; null where none is.
StateOp scaleOf(ParamOp param);
/// The state that has what a parameter of bf16 leaves out of numbers of f32; null where none is.
StateOp restOf(ParamOp param);
/// What files call a member of such a variable: `wq`, or of state of the unit `wq.m`.
std::string memberName(mlir::Operation *variable, MemberAttr member);

/// `loc` tagged for reports (see ScopeAttr): with a path, with the phase, with what the result is,
/// or with the pass that made the operation; other tags that are there stay.
mlir::Location withPath(mlir::Location loc, llvm::StringRef path);
mlir::Location withPhase(mlir::Location loc, Phase phase);
mlir::Location withCategory(mlir::Location loc, Category category);
mlir::Location madeBy(llvm::StringRef pass, mlir::Location loc);
/// The tags of a location; null if it has none.
ScopeAttr scopeOf(mlir::Location loc);
/// The path among them; empty if it has none.
llvm::StringRef pathOf(mlir::Location loc);
/// A path within another; either may be empty.
std::string joinPaths(llvm::StringRef outer, llvm::StringRef inner);

} // namespace hydra
