// Last uses in a program, through views: what proves that bytes may be written over.
#pragma once

#include "passes/place/Layouts.h"

namespace hydra {

class ProgramLiveness {
public:
  explicit ProgramLiveness(EntryOp entry);

  /// Whether operand `number` of `op` is the last use of all its bytes, and the only one in `op`.
  bool diesAt(mlir::Value operand, mlir::Operation *op, unsigned number) const;
  /// The same for the bytes of the operand's own elements, where it is a part of something else.
  bool partDiesAt(mlir::Value operand, mlir::Operation *op, unsigned number) const;
  /// Whether the bytes of what `value` is or is a view of are used at least as long as those of
  /// `other`.
  bool livesAsLong(mlir::Value value, mlir::Value other) const;

  /// Whether the operation that makes `result` may write it into the variable: every read of the
  /// variable's value comes before it, or is an operand it may overwrite with this result.
  bool canOverwriteVariable(mlir::StringAttr variable, mlir::OpResult result) const;
  /// The same for the bytes of one value, such as what a loop's body is given to carry on.
  bool canOverwrite(mlir::Value value, mlir::OpResult result) const;

  /// Makes two values, and what either was joined with, live as long as any of them: one lies in
  /// the bytes of the other.
  void join(mlir::Value part, mlir::Value whole);

private:
  struct Use {
    mlir::Operation *op;
    unsigned operand;
    bool view; ///< reads a view of the bytes, other than all of them in their order
  };
  /// Whether nothing uses the bytes of a root with or behind an operand of `op`, but what `spares`.
  bool isLastUse(mlir::Value root, mlir::Operation *op, unsigned number,
                 llvm::function_ref<bool(const Use &)> spares) const;
  /// Position of the last use of a root; -1 where there is none.
  int64_t lastUse(mlir::Value root) const;
  /// Where the bytes of what an operation makes are first written: the parts of a concatenation may
  /// be written into it as they are made.
  int64_t firstWrite(mlir::Operation *producer) const;

  llvm::DenseMap<mlir::Operation *, int64_t> position;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Use, 4>> uses; ///< by root, views followed
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 4>> joined;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<mlir::Value, 2>> variableValues;
};

} // namespace hydra
