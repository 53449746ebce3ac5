// Arithmetic on values as people write it: the text of `hydra.let` and of definitions that are one
// expression. It has the grammar of Expr.h and, where a symbol or number can stand, also
//
//   %x                          a value                %x.sum    a field of a bundle
//   @w                          a parameter or state   @f(…)     the result of a definition
//   name(…, attribute = …)      the result of an operation
//   bundle(sum = …, n = …)      several values as one
//   when(tied, …, …)            one of two, as a configuration has it
//
// Reductions have their axes behind the operand, `mean(%x, 3)` or `sum(%x, [0, 1])`, and keep them
// as dimensions of 1; a list that is the only attribute needs no name, `reshape(%x, [B, S, D])`. A
// part without any value is one number: a constant.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Parses `expression, …`: operations at the end of `block`, their values into `values`. With
/// `argument`, values have the names that it knows (null: none) and no others.
mlir::ParseResult
parseArithmetic(mlir::OpAsmParser &parser, mlir::Block &block,
                llvm::SmallVectorImpl<mlir::Value> &values,
                llvm::function_ref<mlir::Value(llvm::StringRef)> argument = nullptr);

/// A body that is one `hydra.let` and yields its values, the short form of definitions: parses it
/// into an empty block; what a body is, null if it is more.
mlir::ParseResult parseLetBody(mlir::OpAsmParser &parser, mlir::Block &body,
                               mlir::Location location,
                               llvm::function_ref<mlir::Value(llvm::StringRef)> argument = nullptr);
LetOp letBody(mlir::Block &body);

/// Prints them, from operations that `verifyArithmetic` accepts.
void printArithmetic(mlir::OpAsmPrinter &printer, LetOp let);

/// Reports operations that arithmetic has no words for, and expressions that are too long.
llvm::LogicalResult verifyArithmetic(LetOp let);

/// `%x, %y, heads = H, causal = true)`: values and parameters of a call behind its parenthesis.
mlir::ParseResult parseCallArguments(mlir::OpAsmParser &parser, mlir::OperationState &state,
                                     llvm::function_ref<mlir::ParseResult()> parseValue);
void printCallArguments(mlir::OpAsmPrinter &printer, CallOp call,
                        llvm::function_ref<void(mlir::Value)> printValue);

} // namespace hydra
