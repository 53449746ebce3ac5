// Expressions over the symbols of a model: grammar, printing, evaluation.
//
//   or    := and ('or' and)*            cmp   := sum (('==' | '<' | '<=' | '>' | '>=') sum)?
//   and   := not ('and' not)*           sum   := term (('+' | '-') term)*
//   not   := 'not' not | cmp            term  := unary (('*' | '/') unary)*
//   unary := '-' unary | number | 'true' | 'false' | symbol | function '(' or, … ')' | '(' or ')'
//
// Integers are exact: `/` of two integers must leave no remainder. One real operand makes the
// operation real. Functions: ceil floor round (to an integer, half to even), real, sqrt exp log
// logit sigmoid, pow(x, y), min(…) max(…), clamp(x, low, high), select(condition, a, b).
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace hydra {

/// Values of symbols: i64 or f64 numbers, BoolAttr flags, StringAttr choices.
struct Environment {
  llvm::StringMap<mlir::Attribute> values;
  /// For every choice symbol: what it can be. An identifier compared with it is such an option.
  llvm::StringMap<llvm::SmallVector<std::string>> options;
  /// Symbols that stay symbolic for now (`layer` and `index` until their range is unrolled).
  llvm::StringSet<> deferred;
};

/// Evaluates as far as `deferred` allows: the result is a number, truth value or choice, or an
/// expression over deferred symbols. `emitError` receives one line per problem.
mlir::FailureOr<mlir::Attribute>
evaluate(mlir::Attribute expr, const Environment &environment,
         llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Calls `visit` with every symbol name in the expression, option names of choices included.
void forEachSymbol(mlir::Attribute expr, llvm::function_ref<void(llvm::StringRef)> visit);

/// The expression, or list of them, with what `value` gives instead of symbols; null keeps one.
mlir::Attribute substitute(mlir::Attribute expr,
                           llvm::function_ref<mlir::Attribute(llvm::StringRef)> value);

/// Whether the attribute is, or contains in arrays, an expression.
bool hasExpr(mlir::Attribute attribute);

mlir::ParseResult parseExpr(mlir::AsmParser &parser, mlir::Attribute &expr);
void printExpr(mlir::AsmPrinter &printer, mlir::Attribute expr);

/// `[D, hd]`.
mlir::ParseResult parseExprList(mlir::AsmParser &parser, mlir::ArrayAttr &list);
void printExprList(mlir::AsmPrinter &printer, mlir::ArrayAttr list);

/// Parses a literal given on a command line (`128`, `1e-5`, `true`, `static`); null if it is none.
mlir::Attribute parseLiteral(mlir::MLIRContext *context, llvm::StringRef text);

// Accessors behind the attribute constraints; the values need a bound attribute.
bool isIntOrExpr(mlir::Attribute attribute);
bool isRealOrExpr(mlir::Attribute attribute);
bool isIntListOrExprs(mlir::Attribute attribute);
/// A number, a truth value or an expression.
bool isExpression(mlir::Attribute attribute);
int64_t intValue(mlir::Attribute attribute);
double realValue(mlir::Attribute attribute);
llvm::SmallVector<int64_t> intList(mlir::ArrayAttr attribute);

} // namespace hydra
