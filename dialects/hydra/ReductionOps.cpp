// Reductions over axes.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "dialects/hydra/RowMath.h"

#include <limits>

using namespace mlir;

namespace hydra {

/// The axes without negative numbers, as a mask over the dimensions.
static SmallVector<bool> reducedMask(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<bool> mask(rank, false);
  for (int64_t axis : axes)
    mask[axis < 0 ? axis + rank : axis] = true;
  return mask;
}

/// The shape of the operand with every reduced dimension 1.
static SmallVector<int64_t> keptShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> kept(shape);
  for (auto [i, reduced] : llvm::enumerate(reducedMask(axes, shape.size())))
    if (reduced)
      kept[i] = 1;
  return kept;
}

static LogicalResult inferReduction(TypeInference &infer, Value x, ArrayRef<int64_t> axes,
                                    bool keep, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(x, "operand")))
    return failure();
  ArrayRef<int64_t> shape = infer.shape(x);
  if (axes.empty())
    return infer.fail("reduces no axis");
  SmallVector<bool> seen(shape.size(), false);
  for (int64_t axis : axes) {
    if (failed(infer.wantAxis(axis, shape.size())))
      return failure();
    if (std::exchange(seen[axis], true))
      return infer.fail("reduces axis " + Twine(axis) + " twice");
  }
  SmallVector<int64_t> out;
  for (auto [d, reduced] : llvm::zip(shape, seen))
    if (!reduced || keep)
      out.push_back(reduced ? 1 : d);
  types.push_back(infer.tensor(out, infer.element(x)));
  return success();
}

/// Folds every element into its place of the result, in row-major order.
template <typename F>
static void reduce(const RefTensor &in, ArrayRef<int64_t> axes, RefTensor &out, F fold) {
  SmallVector<int64_t> kept = keptShape(in.shape, axes), strides = denseStrides(kept);
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i] == 1)
      strides[i] = 0;
  const double *from = in.data.data();
  forEachIndex(in.shape, [&](ArrayRef<int64_t> i) {
    double &to = out.data[at(i, strides)];
    to = fold(to, *from++);
  });
}

//===-- Row-wise form -----------------------------------------------------------------------===//

namespace {

/// How a reduction divides the dimensions of its operand into rows and columns, and over which of
/// the two it goes.
struct Extent {
  enum Kind { Columns, Rows, Both, Neither } kind = Neither;
  unsigned split = 0; ///< dimensions that are rows
};

} // namespace

static Extent extentOf(Value x, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> shape = build::shapeOf(x);
  SmallVector<bool> mask = reducedMask(axes, shape.size());
  unsigned rank = shape.size();
  for (bool anyUnit : {false, true}) { // at second sight dimensions of 1 count as either
    auto all = [&](unsigned begin, unsigned end, bool reduced) {
      return llvm::all_of(llvm::seq(begin, end), [&](unsigned i) {
        return mask[i] == reduced || (anyUnit && shape[i] == 1);
      });
    };
    // A vector is one number a row; of more dimensions the last one makes the columns.
    if (all(0, rank, true))
      return rank == 1 ? Extent{Extent::Rows, 1} : Extent{Extent::Both, rank - 1};
    for (unsigned split = 0; split <= rank; ++split) {
      if (rank - split > kMaxInnerDimensions)
        continue;
      if (all(0, split, false) && all(split, rank, true))
        return {Extent::Columns, split};
      if (all(0, split, true) && all(split, rank, false))
        return {Extent::Rows, split};
    }
  }
  return {};
}

/// A maximum of everything goes over columns, because only sums can go over rows.
static Extent extentOfMax(Value x, ArrayRef<int64_t> axes) {
  Extent extent = extentOf(x, axes);
  if (extent.kind == Extent::Columns)
    return extent;
  bool everything = axes.size() == build::shapeOf(x).size();
  return everything && axes.size() <= kMaxInnerDimensions ? Extent{Extent::Columns, 0} : Extent{};
}

static RowForm reducedForm(Extent extent, unsigned rank) {
  switch (extent.kind) {
  case Extent::Columns:
    return RowForm::Row;
  case Extent::Rows:
    return extent.split == rank ? RowForm::Scalar : RowForm::Column;
  default:
    return RowForm::Scalar;
  }
}

/// The sum of `x * factor`, where x has `rank` dimensions.
static RowTerm emitSum(RowTerm x, unsigned rank, double factor, Extent extent) {
  auto scaled = [&](RowTerm v) { return factor == 1.0 ? v : v * factor; };
  switch (extent.kind) {
  case Extent::Columns: // none of them: another operation's columns are not summed
    return scaled(extent.split == rank ? x : sum(x));
  case Extent::Rows:
    return sumRows(scaled(x), extent.split == rank ? RowForm::Row : RowForm::Tile);
  default:
    return sumRows(scaled(sum(x)), RowForm::Row);
  }
}

//===-- Inference and evaluation ------------------------------------------------------------===//

static double plus(double a, double b) { return a + b; }

/// The same reduction over neighbouring dimensions: at the end, or with `sumsRows` where they are,
/// if that is at the start.
template <typename Op> static Value buildOverNeighbours(OpBuilder &b, Op op, bool sumsRows) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> shape = build::shapeOf(op.getX());
  SmallVector<int64_t> order, kept, last;
  int64_t reduced = 1;
  for (auto [i, isReduced] : llvm::enumerate(reducedMask(op.getAxes(), shape.size()))) {
    (isReduced ? last : order).push_back(i);
    if (isReduced)
      reduced *= shape[i];
    else
      kept.push_back(shape[i]);
  }
  Value x = op.getX(), y;
  if (sumsRows && last.back() + 1 == static_cast<int64_t>(last.size())) {
    x = build::reshape(b, loc, x, {reduced, RefTensor::elements(kept)});
    y = Op::create(b, loc, x, b.getI64ArrayAttr({0}), UnitAttr());
  } else {
    int64_t axis = kept.size();
    llvm::append_range(order, last);
    if (!llvm::is_sorted(order))
      x = TransposeOp::create(b, loc, x, b.getI64ArrayAttr(order));
    kept.push_back(reduced);
    x = build::reshape(b, loc, x, kept);
    y = Op::create(b, loc, x, b.getI64ArrayAttr({axis}), UnitAttr());
  }
  return build::reshape(b, loc, y, build::shapeOf(op.getY()));
}

#define REDUCTION_OP(Op, extentOf, sumsRows)                                                       \
  bool Op::isRowWise() { return extentOf(getX(), getAxes()).kind != Extent::Neither; }             \
  SmallVector<int64_t> Op::rowWiseShape() { return SmallVector<int64_t>(build::shapeOf(getX())); } \
  std::optional<unsigned> Op::rowDimensions() { return extentOf(getX(), getAxes()).split; }        \
  RowForm Op::operandForm(unsigned) { return RowForm::Tile; }                                      \
  RowForm Op::resultForm(unsigned) {                                                               \
    return reducedForm(extentOf(getX(), getAxes()), build::typeOf(getX()).getRank());              \
  }                                                                                                \
  bool Op::sumsOverRows(unsigned) { return extentOf(getX(), getAxes()).kind != Extent::Columns; }  \
  LogicalResult Op::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {   \
    return inferReduction(infer, op.getX(), op.getAxes(), op.getKeep(), types);                    \
  }                                                                                                \
  int64_t Op::flops() { return build::typeOf(getX()).getNumElements(); }                           \
  OpClass Op::costClass() { return OpClass::reduce; }                                              \
  Precision Op::precisionClass() { return Precision::Full; }                                       \
  bool Op::takesRounded(unsigned) { return false; } /* sums stay f32 */                            \
  bool Op::needsRowWiseForm() { return !isRowWise(); }                                             \
  SmallVector<Value> Op::buildRowWiseForm(OpBuilder &b) {                                          \
    return {buildOverNeighbours(b, *this, sumsRows)};                                              \
  }

REDUCTION_OP(SumOp, extentOf, true)
REDUCTION_OP(MeanOp, extentOf, true)
REDUCTION_OP(ReduceMaxOp, extentOfMax, false)
#undef REDUCTION_OP

void SumOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                     MutableArrayRef<RowValue> out) {
  out[0] = emitSum({&e, in[0]}, build::typeOf(getX()).getRank(), 1.0, extentOf(getX(), getAxes()));
}

void MeanOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                      MutableArrayRef<RowValue> out) {
  double count = static_cast<double>(build::typeOf(getX()).getNumElements()) /
                 build::typeOf(getY()).getNumElements();
  out[0] = emitSum({&e, in[0]}, build::typeOf(getX()).getRank(), 1.0 / count,
                   extentOf(getX(), getAxes()));
}

void ReduceMaxOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                           MutableArrayRef<RowValue> out) {
  out[0] = max(RowTerm{&e, in[0]});
}

LogicalResult SumOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  reduce(*in[0], getAxes(), out[0], plus);
  return success();
}

LogicalResult MeanOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  reduce(*in[0], getAxes(), out[0], plus);
  double count = static_cast<double>(in[0]->size()) / out[0].size();
  for (double &v : out[0].data)
    v /= count;
  return success();
}

LogicalResult ReduceMaxOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  llvm::fill(out[0].data, -std::numeric_limits<double>::infinity());
  reduce(*in[0], getAxes(), out[0], [](double a, double b) { return a >= b || a != a ? a : b; });
  return success();
}

/// A gradient of the result, repeated over what was reduced.
static Value spread(OpBuilder &b, Location loc, Value g, Value x, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> shape = build::shapeOf(x);
  return build::broadcast(b, loc, build::reshape(b, loc, g, keptShape(shape, axes)), shape);
}

void SumOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = spread(b, getLoc(), g[0], getX(), getAxes());
}

void MeanOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  double count = static_cast<double>(build::typeOf(getX()).getNumElements()) /
                 build::typeOf(getY()).getNumElements();
  Value scaled = build::scale(b, getLoc(), g[0], 1.0 / count);
  grads[0] = spread(b, getLoc(), scaled, getX(), getAxes());
}

void ReduceMaxOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Location loc = getLoc();
  Value isMax =
      CompareOp::create(b, loc, getX(), spread(b, loc, getY(), getX(), getAxes()), Predicate::eq);
  Value ones = SelectOp::create(b, loc, isMax, build::constant(b, loc, getX().getType(), 1.0),
                                build::constant(b, loc, getX().getType(), 0.0));
  Value count = SumOp::create(b, loc, ones, getAxesAttr(), getKeepAttr());
  Value share = DivOp::create(b, loc, g[0], count);
  grads[0] = MulOp::create(b, loc, ones, spread(b, loc, share, getX(), getAxes()));
}

} // namespace hydra
