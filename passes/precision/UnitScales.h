// Scales of weights that lie in a unit, of which each rank has a piece.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// How the weights of a unit (see `hydra-shard`) share its elements: each has a scale, and those
/// from its start on, counted over the pieces of all ranks, up to the start of the next one. What
/// lies between two weights is zero.
///
/// A piece begins and ends anywhere in a weight, so which scale an element has depends on the rank.
/// Elements are taken in *blocks*, which share a scale because starts are multiples of them: a
/// number of the block says which one, and all that is computed for that is of one row of a kernel.
struct UnitScales {
  mlir::StringAttr over; ///< the axis of the mesh along which ranks have pieces
  int64_t ranks;
  llvm::SmallVector<int64_t> starts; ///< of weights, in elements; the first is 0

  UnitScales(FlatUnitAttr unit, llvm::ArrayRef<int64_t> starts)
      : over(unit.getOver()), ranks(unit.getPieces()), starts(starts) {}

  /// Elements of the largest blocks, by which `most` can be divided.
  int64_t block(int64_t most) const;
  /// Elements of a piece in blocks of that size, `[blocks, block]`.
  static mlir::Value inBlocks(mlir::OpBuilder &b, mlir::Location loc, mlir::Value piece,
                              int64_t block);
  /// Moves what makes a piece to where operations are written, if it stands behind: a variable, or
  /// what is made of one alone.
  static void moveHere(mlir::OpBuilder &b, mlir::Operation *piece);

  /// What a rank's blocks `[blocks, block]` are divided by, of the scales `[]` f32 of all weights:
  /// `[]` of a single one, else `[blocks, block]`.
  mlir::Value ofElements(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> scales,
                         llvm::ArrayRef<int64_t> blocks) const;
  /// The largest magnitude of what a rank has of each weight, `[weights]`, of its blocks
  /// `[blocks, block]`; 0 of one of which it has nothing.
  mlir::Value largestOfEach(mlir::OpBuilder &b, mlir::Location loc, mlir::Value blocks) const;
  /// The same `[weights]` of all ranks. A largest number has no order, so it is that of the whole.
  mlir::Value overRanks(mlir::OpBuilder &b, mlir::Location loc, mlir::Value largest) const;

  /// Where weights begin, and the scale `[]` of each.
  using Parts = llvm::SmallVector<std::pair<int64_t, mlir::Value>>;
  /// Of what `ofElements` has made; a scale `[]` is that of a single weight. Empty for any other.
  static Parts partsOf(mlir::Value ofElements);

private:
  mlir::Value numbers(mlir::OpBuilder &b, mlir::Location loc, int64_t blocks) const;
};

} // namespace hydra
