// How row-wise operations emit themselves: the interface that every code generator implements.
//
// A group of row-wise operations works on a domain of rows × an inner tile. Its code is written
// from the point of view of one row: a value is a tile (one number for every column of the row),
// one number for the row, one number for every column that is the same in all rows, or one number.
// An operation calls the methods below once; the generator turns them into loops over rows and
// columns (CPU: vectors over columns, a fixed partition of rows; GPU: rows over warps and blocks).
// Numbers are computed in f32 whatever they are stored in; nothing is contracted or reassociated
// behind the operation's back.
#pragma once

#include "dialects/hydra/Enums.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace hydra {

/// Dimensions that an inner tile has at most.
inline constexpr unsigned kMaxInnerDimensions = 3;

/// The domain of a group: rows (leading dimensions) × inner tile (trailing ones), row-major.
struct RowDomain {
  llvm::SmallVector<int64_t> rowShape;
  llvm::SmallVector<int64_t> innerShape;

  int64_t rows() const { return product(rowShape); }
  int64_t columns() const { return product(innerShape); }
  bool operator==(const RowDomain &) const = default;

private:
  static int64_t product(llvm::ArrayRef<int64_t> shape) {
    int64_t n = 1;
    for (int64_t d : shape)
      n *= d;
    return n;
  }
};

/// What a value of a group varies with.
enum class RowForm { Tile, Row, Column, Scalar };

/// A value of a group; made and understood by the emitter.
struct RowValue {
  unsigned id = ~0u;
};

/// PowerOfTwo: the largest power of two that is no larger than x >= 0; 0, infinity and NaN stay.
/// Bits: those of an f32, as i32; OfBits: the f32 that has them.
enum class RowUnary {
  Neg,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Tanh,
  Erf,
  Sigmoid,
  Sin,
  Cos,
  PowerOfTwo,
  Bits,
  OfBits
};
/// Add, Sub and Mul of i32 keep the low 32 bits. Of i32 alone, as words without sign: MulHigh, the
/// upper 32 bits of the product, and Xor.
enum class RowBinary { Add, Sub, Mul, Div, Max, Min, MulHigh, Xor };
enum class RowReduction { Sum, Max };

/// The rotation of `hydra.rope` over an inner tile [heads, width] of a tensor [B, S | H, hd].
struct Rotation {
  double base = 1.0e4;
  bool halfSplit = false; ///< pairs (i, i + hd/2) instead of (2i, 2i + 1)
  bool inverse = false;
  int64_t length = 1; ///< S: the position of a row is row % S % period
  int64_t period = 0; ///< 0: none
};

class RowEmitter {
public:
  virtual ~RowEmitter() = default;

  virtual const RowDomain &domain() const = 0;
  /// The form of a value, and its element type (f32 for anything computed).
  virtual RowForm form(RowValue v) const = 0;
  virtual mlir::Type elementType(RowValue v) const = 0;

  virtual RowValue constant(double value, mlir::Type element) = 0;
  /// The coordinate of the element along dimension `dim` of rowShape ++ innerShape (i32).
  virtual RowValue index(unsigned dim) = 0;

  virtual RowValue unary(RowUnary f, RowValue x) = 0;
  virtual RowValue binary(RowBinary f, RowValue a, RowValue b) = 0;
  virtual RowValue compare(Predicate p, RowValue a, RowValue b) = 0;
  virtual RowValue select(RowValue condition, RowValue a, RowValue b) = 0;
  /// To f32, to a narrower float (rounded to nearest even; of 8 bits: what is beyond the largest
  /// number becomes that), to i32 (towards zero) or from i32 to i16 (the lower 16 bits, of which
  /// the highest is the sign).
  virtual RowValue cast(RowValue x, mlir::Type to) = 0;

  /// Over all columns of the row, in a tree that depends on the domain and the target alone.
  virtual RowValue reduce(RowReduction r, RowValue tile) = 0;
  /// Over all rows: of a tile one number for each column, of a row value one number. `of` is Tile
  /// or Row: what is summed, which the form of `v` does not tell, since a tile that is the same in
  /// all columns or rows comes as less; each row counts all the same. Two-stage in an order fixed
  /// by the domain; can only be a result of the group.
  virtual RowValue sumRows(RowValue v, RowForm of) = 0;

  /// Row number `row` of a table [V, columns] that is operand `operand` of the group: a tile.
  virtual RowValue gather(unsigned operand, RowValue row) = 0;
  /// The rotated tile of operand `operand` of the group. `position`: null, or the number of each
  /// row (f32) that stands in the place of row % S.
  virtual RowValue rotate(unsigned operand, const Rotation &rotation,
                          std::optional<RowValue> position = std::nullopt) = 0;
};

/// Row number `id` (i32) of such a table of `rows`; no number, and of integers the least, where an
/// id that a program computes is none of [0, rows): those that it is given are checked before.
RowValue gatherChecked(RowEmitter &e, unsigned operand, RowValue id, int64_t rows);

} // namespace hydra
