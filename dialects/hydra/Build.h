// Short forms for building operations of the dialect, as derivatives and passes need them.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra::build {

inline mlir::RankedTensorType typeOf(mlir::Value v) {
  return llvm::cast<mlir::RankedTensorType>(v.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value v) { return typeOf(v).getShape(); }

/// `value` in every element of a tensor of that type.
mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, double value);
/// x * value, element by element.
mlir::Value scale(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, double value);
mlir::Value reshape(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                    llvm::ArrayRef<int64_t> shape);
/// The value behind reshapes: the same elements as they were made.
mlir::Value behindReshapes(mlir::Value v);
mlir::Value broadcast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      llvm::ArrayRef<int64_t> shape);
mlir::Value cast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Type element);
mlir::Value sum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                llvm::ArrayRef<int64_t> axes);
/// The sum of `g` over all positions that a broadcast from `shape` repeated: its transpose.
mlir::Value sumTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value g,
                  llvm::ArrayRef<int64_t> shape);
/// The largest numbers along `axes`.
mlir::Value largest(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                    llvm::ArrayRef<int64_t> axes);
/// `size` of x along an axis, from `start` on.
mlir::Value slice(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, int64_t axis,
                  int64_t start, int64_t size);
/// The same; x itself where that is all of it.
mlir::Value partOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, int64_t axis,
                   int64_t start, int64_t size);
/// One behind the other along an axis; a single one is itself.
mlir::Value concat(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> parts,
                   int64_t axis);
/// All leading dimensions as one: `[..., K]` to `[T, K]`.
mlir::Value flattenRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// An entry in front of another that loops run as `scan` says, with arguments of these types, still
/// without operations; named `stem` and a number.
EntryOp loopBody(EntryOp before, llvm::StringRef stem, mlir::Location loc, ScanAttr scan,
                 llvm::ArrayRef<mlir::RankedTensorType> types);
/// Gives the body of a loop its results: first those that are joined, then those carried on.
void endLoopBody(EntryOp body, mlir::ValueRange results);

/// `value` on the first rank along an axis of the mesh, `other` on the rest.
mlir::Value onFirstRank(mlir::OpBuilder &b, mlir::Location loc, mlir::StringAttr over,
                        int64_t ranks, mlir::Value value, mlir::Value other);

/// The value of a `hydra.constant`, also behind broadcasts and reshapes; nullopt for others.
std::optional<double> constantValue(mlir::Value v);

} // namespace hydra::build
