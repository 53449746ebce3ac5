// Units whose weights have a scale for each row or block: part of hydra-gather-quantized.
#pragma once

#include "dialects/hydra/Hydra.h"

#include <optional>

namespace hydra {

/// Which elements of a weight `[rows, columns]` share a scale.
enum class ScaleGroups {
  Rows,
  Blocks, ///< of 128 rows and 128 columns
};

/// Elements of a unit, counted over all ranks, that a program reads as one operand in 8 bits.
struct GroupedWeight {
  int64_t start, rows, columns;
  ScaleGroups groups;
  mlir::Type format;
  mlir::Value scale;                        ///< `[rows]`, or of blocks `[down, across]`
  llvm::SmallVector<mlir::Value, 2> bits{}; ///< the elements in 8 bits, in any shape

  int64_t size() const { return rows * columns; }
  int64_t end() const { return start + size(); }
};

/// A gather of a unit, and its weights, one behind the other.
struct GroupedUnit {
  AllGatherOp gather;
  FlatUnitAttr unit;
  llvm::SmallVector<GroupedWeight> weights{};

  mlir::RankedTensorType pieceType();
  /// Neighbouring elements of a piece that share a scale, whatever rank has it: of a *segment* a
  /// rank tells the others the largest magnitude.
  int64_t segment();
};

/// What a program gathers of a unit, if that is nothing but weights in 8 bits with scales of rows
/// or blocks of their present magnitudes, and if 8 bits with magnitudes of segments are fewer bytes
/// than what is gathered.
std::optional<GroupedUnit> findGroupedUnit(AllGatherOp gather, FlatUnitAttr unit);

/// Lets a program gather these in 8 bits. Where pieces begin and end, rows and blocks are cut:
/// ranks tell each other the largest magnitudes of all their segments, in one exchange where the
/// program begins, and each makes all scales of these, of which matmuls read them and its own
/// segments are rounded.
void gatherGroupedUnits(EntryOp entry, llvm::MutableArrayRef<GroupedUnit> units);

} // namespace hydra
