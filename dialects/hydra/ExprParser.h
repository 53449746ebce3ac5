// The parser of expressions, and how tightly they bind: of expressions over symbols, and, with
// hooks that make operations, of arithmetic on values.
#pragma once

#include "dialects/hydra/Expr.h"

namespace hydra {

/// The binding strength of functions, symbols and numbers; `strength` gives that of operators.
inline constexpr int kStrongest = 7;
/// Of an operator with so many operands, as in the grammar of Expr.h.
int strength(llvm::StringRef head, unsigned args);
inline bool isComparison(int strength) { return strength == 3; }

/// Writes an expression with parentheses if it binds less than `outer`.
void printExpr(mlir::AsmPrinter &printer, mlir::Attribute expr, int outer);

/// What an expression may have at most, so that no traversal of one exhausts the stack.
inline constexpr unsigned kMostOperators = 128;

/// The least and the largest number of arguments of a function over symbols; {0, 0}: there is none.
std::pair<unsigned, unsigned> symbolFunctionArity(llvm::StringRef name);

class ExprParser {
public:
  /// An expression over symbols or, where hooks make operations, a value; and where it stands.
  struct Term {
    mlir::OpFoldResult value;
    llvm::SMLoc loc;

    bool isSymbolic() const { return llvm::isa<mlir::Attribute>(value); }
    mlir::Attribute symbolic() const { return llvm::cast<mlir::Attribute>(value); }
  };

  explicit ExprParser(mlir::AsmParser &parser, bool inAngles = false)
      : parser(parser), inAngles(inAngles) {}
  virtual ~ExprParser() = default;

  mlir::ParseResult parse(Term &e);

protected:
  /// What begins neither a number nor a word.
  virtual mlir::OptionalParseResult parseValue(Term &) { return std::nullopt; }
  /// A function behind its opening parenthesis; `e` has its location.
  virtual mlir::ParseResult parseCall(llvm::StringRef name, Term &e);
  /// An operator or function applied to terms; `e` has its location.
  virtual mlir::ParseResult apply(llvm::StringRef head, llvm::ArrayRef<Term> args, Term &e);

  /// One argument of a function.
  mlir::ParseResult parseArgument(Term &e) { return nested(e, &ExprParser::parseOr); }
  /// Applies a function over symbols, of which there must be one of that name and arity.
  mlir::ParseResult applyFunction(llvm::StringRef name, llvm::ArrayRef<Term> args, Term &e);
  /// Counts an operator or function that was written.
  void count() { ++operators; }

  mlir::AsmParser &parser;

private:
  using Part = mlir::ParseResult (ExprParser::*)(Term &);

  mlir::ParseResult nested(Term &e, Part part);
  mlir::ParseResult parseBinary(Term &e, llvm::StringRef head, llvm::SMLoc loc, Part operand);
  mlir::ParseResult parseChain(Term &e, llvm::StringRef word, Part operand);
  mlir::ParseResult parseOr(Term &e);
  mlir::ParseResult parseAnd(Term &e);
  mlir::ParseResult parseNot(Term &e);
  mlir::ParseResult parseComparison(Term &e);
  mlir::ParseResult parseSum(Term &e);
  mlir::ParseResult parseTerm(Term &e);
  mlir::ParseResult parseUnary(Term &e);
  mlir::ParseResult parsePrimary(Term &e);
  mlir::ParseResult parseWord(llvm::StringRef word, Term &e);
  mlir::ParseResult parseNumber(Term &e);
  mlir::ParseResult checkNumberEnd(llvm::SMLoc start);

  /// Inside `#hydra.expr<…>`, where comparisons are functions.
  bool inAngles;
  unsigned operators = 0, nesting = 0;
};

} // namespace hydra
