// What programs that read on keep of earlier tokens: what rules of operations build it from.
#pragma once

#include "dialects/hydra/Build.h"

#include <map>

namespace hydra {

/// One program of the role `decode`: `tokens` of each of `batch` sequences a call. Its argument
/// `position [B]` (f32) is the number of tokens that were read before, or -1 where a call is not
/// for the sequence: what is kept of it stays as it is.
class SequenceCache {
public:
  /// The name of the argument.
  static constexpr llvm::StringLiteral kPosition = "position";

  /// `context`: the most tokens of a sequence. `longest`: of a call of any program of the plan.
  /// `narrow`: what keys and values are rounded to; null: nothing.
  SequenceCache(EntryOp entry, int64_t context, int64_t longest, mlir::Type narrow);

  /// From here on rules build in front of `op`, whose state is named by `number`, the same in all
  /// programs. `sequences`: the dimension of what it keeps that is the batch.
  void startAt(mlir::Operation *op, unsigned number, int64_t sequences);
  mlir::OpBuilder &builder() { return b; }
  mlir::Location loc() const { return where; }

  int64_t batch() const { return sequences; }
  int64_t tokens() const { return perCall; }

  /// Where the tokens of the call stand in their sequences: [B, C] f32.
  mlir::Value positions();

  /// The value as the last call left it, or `initial` at the beginning of a sequence. `keep` says
  /// what the next call is to find. Fails, with a line, where another program keeps another type.
  llvm::FailureOr<mlir::Value> earlier(llvm::StringRef what, mlir::Value initial);
  void keep(llvm::StringRef what, mlir::Value next);

  /// The argument: where the call begins in each sequence, or -1.
  mlir::Value position() const { return given; }
  int64_t mostTokens() const { return context; }
  mlir::Type narrow() const { return format; }

  /// How many slots hold at least the `reach` tokens up to every one of a call, if a token's is its
  /// position modulo their number: a call fills its own before it reads.
  int64_t slots(int64_t reach) const { return std::min(context, reach + longest - 1); }
  /// What the last call left, which operations that know of positions read on from; `replace` says
  /// what the next one finds, of all sequences.
  llvm::FailureOr<mlir::Value> kept(llvm::StringRef what, mlir::RankedTensorType type);
  void replace(llvm::StringRef what, mlir::Value next);

  /// Adds to the program what it keeps.
  void finish();

private:
  struct Kept {
    StateOp state;
    mlir::Value old;
    int64_t dim; ///< of the batch
  };

  mlir::Value atHead(llvm::function_ref<mlir::Value()> build);
  /// Numbers [B] of sequences in every element of their part.
  mlir::Value spread(mlir::Value numbers, llvm::ArrayRef<int64_t> shape, int64_t dim);
  mlir::Value compare(mlir::Value a, Predicate is, double value);
  mlir::Value number(llvm::ArrayRef<int64_t> shape, double value);
  llvm::FailureOr<Kept *> state(llvm::StringRef what, mlir::RankedTensorType type);

  EntryOp entry;
  int64_t context, longest, sequences, perCall;
  mlir::Type format;
  mlir::OpBuilder b;
  mlir::Operation *head; ///< the last of the operations that all others share
  mlir::Location where;
  mlir::Value given, begin; ///< the argument, and the same without -1
  mlir::Value tokenPositions;
  unsigned current = 0;
  int64_t currentDim = 0;
  std::map<std::string, Kept> states; ///< of the operation
  llvm::SmallVector<std::pair<StateOp, mlir::Value>> updates;
};

/// Attaches the cache interface to the operations that need earlier tokens.
void attachCacheRules(mlir::MLIRContext &context);

} // namespace hydra
