// Where the elements of values lie: views and the dense values behind them.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Marks a shape operation whose result is a view of its operand; set by hydra-assign-layouts.
inline constexpr llvm::StringLiteral kViewAttr = "hydra.view";

/// Marks a concatenation of parameters that lie side by side in the arena, so that it needs no
/// bytes; set by hydra-assign-layouts.
inline constexpr llvm::StringLiteral kAdjacentAttr = "hydra.adjacent";

/// Marks a concatenation that is for parts to be made in its place, whoever else reads them and
/// however many there are; set by hydra-join-weight-gradients.
inline constexpr llvm::StringLiteral kPartsInPlaceAttr = "hydra.parts_in_place";

/// A value as elements of another that has bytes of its own (or, in a loop, lies in a sequence's):
/// `root` itself, or a view of it.
struct Layout {
  mlir::Value root;
  StridedView view;
};

/// The layout of a value before anything has a place, following operations marked as views: roots
/// are dense, or chunks of dense sequences.
Layout layoutOf(mlir::Value v);
/// The layout of a value whose root lies with the strides that `stridesOf` says.
Layout layoutOf(mlir::Value v,
                llvm::function_ref<llvm::SmallVector<int64_t>(mlir::Value)> stridesOf);

/// Which shape operations are taken for views: those that hydra-assign-layouts has marked, or,
/// before it has, all that can be views.
enum class Views { Marked, Possible };

/// The value itself, what it is a possible view of, and so on to what is none.
llvm::SmallVector<mlir::Value> possiblyViewed(mlir::Value v);
/// Where the elements of a value lie if what it is a possible view of is dense; fails where they
/// would have no strides.
llvm::FailureOr<llvm::SmallVector<int64_t>> possibleStridesOf(mlir::Value v);

/// Whether two values are parts of a third that have no element in common: slices of it along one
/// axis, or what views show of such slices.
bool areApart(mlir::Value a, mlir::Value b);

/// Whether elements of that shape lie densely in row-major order.
bool isDense(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// Whether the same elements come several times, as in a broadcast.
bool isRepeated(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// Whether an operation takes such an operand without copy.
bool accepts(const OperandLayout &wanted, llvm::ArrayRef<int64_t> shape,
             llvm::ArrayRef<int64_t> strides);

/// Whether everything that reads a value, itself or through views, takes it with these strides. Who
/// gives a value other strides than `layoutOf` says must ask: layouts were chosen for those.
bool readersAccept(mlir::Value v, llvm::ArrayRef<int64_t> strides, Views views = Views::Marked);

/// Whether elements lie in rows of so many bytes at least, at multiples of those that threads move
/// at once.
bool hasRows(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> strides, int64_t least);

/// Whether an operand is a sequence whose chunks a loop's body takes with these strides: for groups
/// any, for others those of a sequence that a copy would make larger, or of long rows. Bodies stand
/// in front of what runs them, so their views are known.
bool isCutWhereItLies(mlir::OpOperand &operand, llvm::ArrayRef<int64_t> strides);

/// Whether a loop's body is groups of row-wise operations alone, which read and write chunks
/// wherever these lie. (Matmuls in kernels of loops want whole chunks, or chunks of long rows.)
bool isOfGroups(LoopOp loop);

} // namespace hydra
