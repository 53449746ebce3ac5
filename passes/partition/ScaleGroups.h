// Units whose weights have a scale for each row or block: part of hydra-gather-quantized.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "passes/precision/ColumnScales.h"

#include <optional>

namespace hydra {

/// Which elements of a weight `[rows, columns]` share a scale.
enum class ScaleGroups {
  Rows,
  Blocks,  ///< of 128 rows and 128 columns
  Columns, ///< rows of what is read transposed
};

/// Elements of a unit, counted over all ranks, that a program reads as one operand in 8 bits.
struct GroupedWeight {
  int64_t start, rows, columns;
  ScaleGroups groups;
  mlir::Type format;
  mlir::Value scale; ///< `[rows]`, `[columns]`, or of blocks `[down, across]`
  /// The elements in 8 bits, in any shape; of columns transposed, `[columns, rows]`.
  llvm::SmallVector<mlir::Value, 2> bits{};

  int64_t size() const { return rows * columns; }
  int64_t end() const { return start + size(); }
};

/// A gather of a unit, and its weights, one behind the other.
struct GroupedUnit {
  AllGatherOp gather;
  FlatUnitAttr unit;
  llvm::SmallVector<GroupedWeight> weights{};

  mlir::RankedTensorType pieceType();
  /// Whether scales are of columns; then all are.
  bool isOfColumns() const { return weights.front().groups == ScaleGroups::Columns; }
  /// Neighbouring elements of a piece that share a scale of rows or blocks, whatever rank has it:
  /// of a *segment* a rank tells the others the largest magnitude.
  int64_t segment();
  /// How columns lie in pieces.
  ColumnScales columns();
};

/// What a program gathers of a unit, if that is nothing but weights in 8 bits with scales of rows,
/// blocks or columns of their present magnitudes, and if 8 bits with magnitudes that ranks tell
/// each other are fewer bytes than what is gathered.
std::optional<GroupedUnit> findGroupedUnit(AllGatherOp gather, FlatUnitAttr unit);

/// Of a gather that is read by rows in 8 bits first, and transposed in the backward pass, whose
/// scales are of columns: lets that read a gather of its own, numbered `number`, if `between` of
/// `others` (positive) lie between the two. hydra-reshard would gather again there. False where
/// nothing changes.
bool gatherRowsApart(AllGatherOp gather, llvm::ArrayRef<AllGatherOp> others, int64_t between,
                     int64_t number);

/// Lets a program gather these in 8 bits. Where pieces begin and end, rows, columns and blocks are
/// cut: ranks tell each other the largest magnitudes of all their segments, or of columns, in one
/// exchange where the program begins, and each makes all scales of these, of which matmuls read
/// them and its own elements are rounded.
void gatherGroupedUnits(EntryOp entry, llvm::MutableArrayRef<GroupedUnit> units);

} // namespace hydra
