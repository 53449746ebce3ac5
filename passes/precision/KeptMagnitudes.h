// The largest magnitudes of kept weights as a program finds them: part of hydra-keep-quantized.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "passes/precision/UnitScales.h"

#include <optional>

namespace hydra {

/// The largest magnitudes along the last axis of what has two axes or more, [rows].
mlir::Value magnitudesOfRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// Whether `max` is the magnitudes of the elements of `x`.
bool isMagnitudeOf(MaxOp max, mlir::Value x);

/// The largest magnitudes of kept weights as a program finds them.
class KeptMagnitudes {
public:
  /// Of a weight that is whole, of its rows [rows]; `number` among all weights.
  void addWhole(int64_t number, mlir::Value magnitudes);
  /// Of what a rank has of the weights of a unit, [weights].
  void addPieces(const UnitScales &unit, llvm::ArrayRef<int64_t> numbers, mlir::Value magnitudes);

  /// That of each weight, [weights] f32, in the order of their numbers.
  mlir::Value ofAll(mlir::OpBuilder &b, mlir::Location loc) const;

private:
  llvm::SmallVector<mlir::Value> whole, pieces;
  llvm::SmallVector<int64_t> wholeNumbers, pieceNumbers;
  std::optional<UnitScales> layout; ///< of any unit: all are cut along one axis
};

} // namespace hydra
