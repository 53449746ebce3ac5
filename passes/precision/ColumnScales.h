// Scales of columns of weights that lie in a unit, of which each rank has a piece.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// How the columns of the weights of a unit lie in pieces. Which weight and which column an element
/// of a piece is of depends on the rank, since pieces begin anywhere; but where weights begin and
/// end in pieces cuts these into few *intervals*, in which every rank has one weight alone. Along
/// an interval columns come again after a *period*, whatever rank has it: the least common multiple
/// of the columns of its weights. So a rank looks for the largest magnitudes of a period, as if the
/// interval began with a column, and who knows what the others have found puts them in order.
class ColumnScales {
public:
  /// Elements of a unit `[start, end)`, in rows of so many columns.
  struct Weight {
    int64_t start, end, columns;
  };
  /// `piece`: elements that a rank has; `weights`: one behind the other.
  ColumnScales(int64_t piece, int64_t ranks, llvm::ArrayRef<Weight> weights);

  /// How many magnitudes a rank finds: of a period of all intervals.
  int64_t found() const;
  /// How often a rank has something of a weight in an interval, counted over ranks.
  int64_t parts() const;

  /// The magnitudes `[found]` of a `piece [elements]`.
  mlir::Value largest(mlir::OpBuilder &b, mlir::Location loc, mlir::Value piece) const;
  /// Of those of all ranks, `all [ranks found]`, the magnitudes of the columns of a weight,
  /// `[columns]`. A largest number has no order, so they are those of the whole.
  mlir::Value ofColumns(mlir::OpBuilder &b, mlir::Location loc, mlir::Value all,
                        size_t weight) const;
  /// What each rank divides its periods by, `[ranks, found]`, of the scales `[columns]` of all
  /// weights.
  mlir::Value ofRanks(mlir::OpBuilder &b, mlir::Location loc,
                      llvm::ArrayRef<mlir::Value> scales) const;
  /// A piece `[elements]` in 8 bits, by what its rank divides periods by, `scale [found]`.
  mlir::Value quantize(mlir::OpBuilder &b, mlir::Location loc, mlir::Value piece, mlir::Value scale,
                       mlir::Type format) const;

private:
  struct Interval {
    int64_t first, size; ///< of a piece
    int64_t period;      ///< at most all of it; 0 where no rank has a weight
    int64_t offset;      ///< of its period in what is found
  };

  void addInterval(int64_t first, int64_t end);
  /// Which weight a rank has in an interval; nullopt: none.
  std::optional<size_t> weightOf(int64_t rank, int64_t first) const;
  /// The column with which an interval begins on a rank.
  int64_t columnOf(int64_t rank, int64_t first, const Weight &weight) const;

  int64_t piece, ranks;
  llvm::SmallVector<Weight> weights;
  llvm::SmallVector<Interval> intervals;
};

} // namespace hydra
