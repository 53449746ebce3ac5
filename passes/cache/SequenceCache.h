// What programs that read on keep of earlier tokens: what rules of operations build it from.
#pragma once

#include "dialects/hydra/Build.h"

#include <map>

namespace hydra {

/// One program of the role `decode`: `tokens` of each of `batch` sequences a call. Its argument
/// `position [B]` (f32) is the number of tokens that were read before, or -1 where a call is not for
/// the sequence: what is kept of it stays as it is.
class SequenceCache {
public:
  /// The name of the argument.
  static constexpr llvm::StringLiteral kPosition = "position";

  /// `context`: the most tokens of a sequence. `longest`: of a call of any program of the plan.
  SequenceCache(EntryOp entry, int64_t context, int64_t longest);

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

  /// Rows of past tokens in slots: a token's is its position modulo their number.
  struct Ring {
    int64_t slots = 0;
    mlir::Value position; ///< [B, slots] f32, of the token in each behind this call; negative: none
    mlir::Value token;    ///< [B, slots] f32, the token of the call that goes there; -1: none
  };
  /// Of a ring that holds at least the `reach` tokens up to every one of the call.
  const Ring &ring(int64_t reach);
  /// Rows [B, H, C, w] of the call among those of earlier ones: [B, H, slots, w], zero where there
  /// is none.
  llvm::FailureOr<mlir::Value> remember(llvm::StringRef what, mlir::Value rows, const Ring &ring);

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
  mlir::Value compare(mlir::Value a, llvm::StringRef is, double value);
  mlir::Value number(llvm::ArrayRef<int64_t> shape, double value);
  mlir::Value whole(mlir::Value x); ///< towards zero
  llvm::FailureOr<Kept *> state(llvm::StringRef what, mlir::RankedTensorType type);
  void write(Kept &kept, mlir::Value next, bool masks);

  EntryOp entry;
  int64_t context, longest, sequences, perCall;
  mlir::OpBuilder b;
  mlir::Operation *head; ///< the last of the operations that all others share
  mlir::Location where;
  mlir::Value position, begin; ///< the argument, and the same without -1
  mlir::Value tokenPositions;
  unsigned current = 0;
  int64_t currentDim = 0;
  std::map<std::string, Kept> kept;
  std::map<int64_t, Ring> rings;
  llvm::SmallVector<std::pair<StateOp, mlir::Value>> updates;
};

/// Attaches the cache interface to the operations that need earlier tokens.
void attachCacheRules(mlir::MLIRContext &context);

} // namespace hydra
