// The plain types that the interfaces of the dialect speak in, and the interfaces themselves.
#pragma once

#include "dialects/hydra/RowEmitter.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

#include <limits>
#include <optional>
#include <vector>

namespace hydra {

/// The product of sizes or counts; at most the largest number.
inline int64_t productOf(llvm::ArrayRef<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product))
      return std::numeric_limits<int64_t>::max();
  return product;
}

/// A dense row-major tensor of the oracle. Integers and truth values are held as doubles (exact to
/// 2^53).
struct RefTensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  RefTensor() = default;
  explicit RefTensor(llvm::ArrayRef<int64_t> shape, double value = 0.0)
      : shape(shape), data(elements(shape), value) {}

  static int64_t elements(llvm::ArrayRef<int64_t> shape) { return productOf(shape); }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  /// Width of the last dimension (1 for a scalar), and the number of such rows.
  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return cols() ? size() / cols() : 0; }
};

/// Which layouts of an operand an operation takes as they are.
struct OperandLayout {
  /// Trailing dimensions that must lie densely; std::nullopt: all of them.
  std::optional<unsigned> denseInner;
  /// The dimensions before the last must merge into one with a single stride (rows of a matrix), of
  /// rows that do not overlap.
  bool mergedRows = false;
  /// The last two dimensions are a matrix whose rows do not overlap: no row is repeated.
  bool apartRows = false;
  /// Alignment of the first element, in bytes.
  unsigned alignment = 16;
  /// With one dense dimension: all of its elements may also be one, as in a broadcast.
  bool repeatedInner = false;
};

/// Any strides between rows; elements of the last dimension lie densely.
inline OperandLayout rowStrided() {
  return {/*denseInner=*/1, /*mergedRows=*/false, /*apartRows=*/false, /*alignment=*/4};
}

/// Ids that index a table: 0 <= id < limit, or for labels also -100.
struct IdRange {
  int64_t limit = 0;
  bool labels = false;
};

/// Strides of elements of shape `from` when they are seen as shape `to` in the same order; fails
/// when no strides do.
llvm::FailureOr<llvm::SmallVector<int64_t>> reshapedStrides(llvm::ArrayRef<int64_t> from,
                                                            llvm::ArrayRef<int64_t> strides,
                                                            llvm::ArrayRef<int64_t> to);

/// A view of a buffer, in elements of it.
struct StridedView {
  int64_t offset = 0;
  llvm::SmallVector<int64_t> strides;
};

enum class Precision {
  Move,   ///< moves elements: it may round before or after
  Follow, ///< computes in f32 and rounds once, to the type of its operands
  Matmul, ///< rounded operands, sums in f32
  Full,   ///< sums or exponentials in f32 (norms, softmax, reductions); rounded operands will do
  Exact,  ///< wants every bit of its operands (losses, optimizer)
};

/// What an operation needs of the rows of an operand.
enum class RowUse {
  All,   ///< any row for any result
  Each,  ///< row i of every result needs row i alone
  Sum,   ///< the result is a sum over rows of products with the other such operand
  Named, ///< rows whose numbers are in another operand (`hydra.take_rows`)
};

/// A matmul as `hydra-quantize-matmuls` sees it: `a bᵀ (+ bias)` of matrices `[rows, K]`.
struct MatmulToQuantize {
  struct Operand {
    mlir::Value value; ///< of more dimensions: all but the last are rows
    mlir::Type format;
    bool transposed; ///< it is `[K, rows]`
  };
  Operand a, b;
  mlir::Value bias; ///< added to every row; may be null
};

/// When `hydra-recompute` may compute a value again instead of keeping it.
enum class RecomputeWhen {
  Never,
  Always,  ///< its operand stays in memory anyway
  Rowwise, ///< with `rowwise`: for one more pass over what it reads
  Copies,  ///< with `copies`: a rounded parameter, for reading the parameter once more
};

/// Which results have no error if their type can hold them: all, those of operands that are whole
/// numbers (partial sums of others are rounded), or none (quotients by a count, which are
/// multiplied by a rounded reciprocal).
enum class Exactness { Always, OfWholeNumbers, Never };

/// Default of the reference interface: two operations or more for each element of a result may be a
/// sum.
Exactness exactnessByFlops(mlir::Operation *op);

/// How a value lies on the ranks along one axis of the mesh.
struct Spread {
  enum Kind {
    Same, ///< all ranks have all of it
    Rows, ///< each has as many rows of dimension `dim`, in the order of ranks
    Part, ///< its value is the sum over ranks of what they have
    Own,  ///< each has one that says something of its rows in `order` alone (where groups begin)
  };
  Kind kind = Same;
  int64_t dim = 0;
  /// Rows: the dimension is so many blocks behind one another, of each of which a rank has its
  /// rows.
  int64_t blocks = 1;
  /// Rows: null, or what has brought the rows of each rank into an order of its own
  /// (`hydra.compact`, `hydra.route`).
  mlir::Value order;
  /// Part, of a result: what the operation must be multiplied by (a mean of means).
  double factor = 1.0;

  static Spread same() { return {}; }
  static Spread rows(int64_t dim) { return {Rows, dim, 1, {}, 1.0}; }
  /// The same rows, along another dimension.
  Spread along(int64_t dimension) const {
    Spread moved = *this;
    moved.dim = dimension;
    return moved;
  }
  static Spread part(double factor = 1.0) { return {Part, 0, 1, {}, factor}; }
  static Spread own(mlir::Value order) { return {Own, 0, 1, order, 1.0}; }
  bool isSame() const { return kind == Same; }
  bool isRows() const { return kind == Rows; }
  bool isPart() const { return kind == Part; }
  bool isOwn() const { return kind == Own; }
  bool operator==(const Spread &other) const {
    return kind == other.kind && order == other.order &&
           (kind != Rows || (dim == other.dim && blocks == other.blocks));
  }
};

/// What `hydra-cache` offers to operations of a program that reads on: see passes/cache.
class SequenceCache;

/// Something that a group says about its optimizer.
struct OptimizerSetting {
  enum class Kind { Number, Flag };
  llvm::StringRef name;
  Kind kind = Kind::Number;
  std::optional<double> standard = std::nullopt; ///< when a group does not say; null: it must
};

/// State that an optimizer keeps for a parameter, in files `<parameter>.<name>`.
struct OptimizerState {
  llvm::StringRef name;
  mlir::RankedTensorType type;
  InitKind init = InitKind::zeros; ///< an initialiser without arguments
};

/// What the update of a parameter is computed from.
struct OptimizerInputs {
  mlir::Value parameter, gradient;
  llvm::SmallVector<mlir::Value> states;         ///< in the order of `states`
  mlir::Value rate;                              ///< the learning rate of the run: [] f32
  llvm::function_ref<mlir::Value()> updateCount; ///< the number of this update, from 1: [] i32
  mlir::Value scale;                             ///< of the gradient: [] f32; null: 1
  mlir::DictionaryAttr settings;                 ///< bound, all there
};

/// Defaults of the cost interface.
int64_t resultElements(mlir::Operation *op);
int64_t operandAndResultBytes(mlir::Operation *op);
/// Of a number in memory; a truth value takes a byte.
int64_t elementBytes(mlir::Type element);
/// Of a bound tensor in memory, or of what a buffer holds, where it is dense.
int64_t bytesOf(mlir::Type tensor);

/// Default of the row-wise interface: a rank-0 tensor is a scalar, others are tiles.
RowForm formByRank(mlir::Value v);

} // namespace hydra

#include "dialects/hydra/HydraInterfaces.h.inc"
