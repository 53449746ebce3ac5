// The one text form of value operations, and what their type inference is given.
//
//   hydra.rms_norm %x, %w eps = 1.0e-5 saving            before binding (or without operands)
//   hydra.rms_norm %x, %w eps = 1.0e-5 : tensor<…>, …    after: the types of the operands
//
// An attribute is `name = value` (an expression, a list of expressions, a string or a type) or,
// for a flag, its name alone. What passes note about an operation follows as `{hydra.view}`.
#pragma once

#include "dialects/hydra/Interfaces.h"
#include "mlir/IR/OpImplementation.h"

namespace hydra {

mlir::ParseResult parseValueOp(mlir::OpAsmParser &parser, mlir::OperationState &state,
                               llvm::ArrayRef<llvm::StringRef> attributeNames);
void printValueOp(mlir::OpAsmPrinter &printer, mlir::Operation *op);

/// The same for operations without operands; a type, once bound, is that of the result.
mlir::ParseResult parseLeafOp(mlir::OpAsmParser &parser, mlir::OperationState &state,
                              llvm::ArrayRef<llvm::StringRef> attributeNames);
void printLeafOp(mlir::OpAsmPrinter &printer, mlir::Operation *op);

/// Whether the next word is the name of an operation (`hydra.yield`), which ends the attributes of
/// the one before it.
bool atOperation(mlir::OpAsmParser &parser);

/// Attributes of an operation in the form above.
mlir::ParseResult parseAttributes(mlir::OpAsmParser &parser, mlir::OperationState &state,
                                  llvm::ArrayRef<llvm::StringRef> attributeNames);

/// One attribute behind its name, which stands at `loc`: `= value`, or a flag.
mlir::ParseResult parseAttribute(mlir::OpAsmParser &parser, llvm::StringRef name, llvm::SMLoc loc,
                                 mlir::NamedAttrList &attributes);
void printAttribute(mlir::OpAsmPrinter &printer, llvm::StringRef name, mlir::Attribute value);

/// `over(%row = %rows, …)` or `carry(%x = %start, …)`, if it is there: what names mean in a body.
mlir::ParseResult
parseBindings(mlir::OpAsmParser &parser, llvm::StringRef word,
              llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &arguments,
              llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &operands);
void printBindings(mlir::OpAsmPrinter &printer, llvm::StringRef word, mlir::ValueRange arguments,
                   mlir::ValueRange operands);

/// Parses a region unless it lies too deep inside others.
mlir::ParseResult parseBody(mlir::OpAsmParser &parser, mlir::Region &body,
                            llvm::ArrayRef<mlir::OpAsmParser::Argument> arguments = {});

/// The number of results written before `=`, unless it is absurd.
mlir::FailureOr<size_t> parsedResults(mlir::OpAsmParser &parser);

/// `: type, type` when present; all `!hydra.any` when not.
mlir::ParseResult parseOperandTypes(mlir::OpAsmParser &parser, size_t count,
                                    llvm::SmallVectorImpl<mlir::Type> &types);
/// Prints nothing when a type is `!hydra.any`.
void printOperandTypes(mlir::OpAsmPrinter &printer, mlir::TypeRange types);

/// `[4, 16, 64]`, for messages.
std::string shapeText(llvm::ArrayRef<int64_t> shape);
/// `0.125`, for messages.
std::string numberText(double value);
/// Whether a number (infinities among them) is one of the element type, rounded if that is a float.
bool isNumberOf(mlir::Type element, double value);

/// Says what is wrong with a bound type for a value (element type, dimensions, a size that no
/// machine holds); empty when nothing is.
std::string checkTensorType(mlir::Type type);
/// The same for a shape alone.
std::string checkShape(llvm::ArrayRef<int64_t> shape);
/// Reports at the operation what is wrong with the types of its operands or results, as `what`
/// names them. Type inference does not look at sizes: an operation that a pass builds must always
/// come to be. So whoever reads a model asks here, and the verifier of the model after every pass.
llvm::LogicalResult checkTensors(std::optional<mlir::Location> location, llvm::StringRef opName,
                                 llvm::StringRef what, mlir::TypeRange types);

/// What an operation's `inferTypes` sees: bound operand types and a place for errors.
class TypeInference {
public:
  TypeInference(mlir::MLIRContext *context, std::optional<mlir::Location> location,
                llvm::StringRef opName, mlir::ValueRange operands)
      : context(context), location(location), opName(opName), operands(operands) {}

  bool anyUnbound() const;
  /// The dictionary (or null) with the values that its expressions have in layer 0. Fails with a
  /// message where one is of anything else.
  mlir::FailureOr<mlir::Attribute> inFirstLayer(mlir::Attribute properties) const;
  /// Fails unless there are that many operands, each a static tensor of elements that values have;
  /// `eightBit`: those of 8 bits among them.
  llvm::LogicalResult checkOperands(unsigned least, bool eightBit) const;

  mlir::RankedTensorType type(mlir::Value v) const {
    return llvm::cast<mlir::RankedTensorType>(v.getType());
  }
  llvm::ArrayRef<int64_t> shape(mlir::Value v) const { return type(v).getShape(); }
  mlir::Type element(mlir::Value v) const { return type(v).getElementType(); }
  mlir::Type f32() const { return mlir::Float32Type::get(context); }

  mlir::RankedTensorType tensor(llvm::ArrayRef<int64_t> shape, mlir::Type element) const {
    return mlir::RankedTensorType::get(shape, element);
  }

  /// Reports `message` at the operation, prefixed with its name; always fails.
  llvm::LogicalResult fail(const llvm::Twine &message) const;
  /// Each checks one thing and says what was found and expected.
  llvm::LogicalResult wantFloat(mlir::Value v, llvm::StringRef what) const;
  llvm::LogicalResult wantInteger(mlir::Value v, llvm::StringRef what) const;
  /// Of a weight that may be rounded: f32, bf16, f16 or i8.
  llvm::LogicalResult wantWeight(mlir::Value v, llvm::StringRef what) const;
  llvm::LogicalResult wantRank(mlir::Value v, llvm::StringRef what, int64_t rank) const;
  llvm::LogicalResult wantShape(mlir::Value v, llvm::StringRef what,
                                llvm::ArrayRef<int64_t> shape) const;
  /// The same, of f32: row statistics and other numbers that are never rounded.
  llvm::LogicalResult wantExact(mlir::Value v, llvm::StringRef what,
                                llvm::ArrayRef<int64_t> shape) const;
  llvm::LogicalResult wantSameType(mlir::Value a, llvm::StringRef aName, mlir::Value b,
                                   llvm::StringRef bName) const;
  /// Of a shape that is written in the operation.
  llvm::LogicalResult wantPositive(llvm::ArrayRef<int64_t> shape) const;
  /// Of a tensor that the operation needs on its way, which is none of its results.
  llvm::LogicalResult wantPossible(llvm::ArrayRef<int64_t> shape, llvm::StringRef what) const;
  /// The type of a matmul: elements of its operands, or of `dtype`; `compute` must suit them.
  llvm::LogicalResult pushMatmul(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                                 mlir::TypeAttr dtype, mlir::TypeAttr compute,
                                 llvm::SmallVectorImpl<mlir::Type> &types) const;
  /// An attribute: a number from `least` that f32 holds.
  llvm::LogicalResult wantFinite(double value, llvm::StringRef what, double least) const;
  /// The same without the least one.
  llvm::LogicalResult wantPositive(double value, llvm::StringRef what) const;
  /// What attention makes scores of products with, the cap null for none: positive, and by such a
  /// cap f32 can divide.
  llvm::LogicalResult wantScores(double scale, mlir::Attribute cap) const;
  /// 0 <= axis < rank, counting negative axes from the end; sets the normalised axis.
  llvm::LogicalResult wantAxis(int64_t &axis, int64_t rank) const;

  mlir::MLIRContext *context;

private:
  std::optional<mlir::Location> location;
  llvm::StringRef opName;
  mlir::ValueRange operands;
};

} // namespace hydra
