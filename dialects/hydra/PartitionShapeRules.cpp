// What operations that work element by element, move elements or reduce do where each rank has a
// part of the batch.
#include "dialects/hydra/PartitionRule.h"

#include "dialects/hydra/NumberFormats.h"

using namespace mlir;

namespace hydra::partition {

namespace {

//===-- Element by element ------------------------------------------------------------------===//

/// In what an elementwise operation is linear.
enum class Linear { No, All, Product, First };

void elementwise(Operation *op, Spreads in, Spreads out, Linear linear) {
  auto rowWise = cast<RowWiseOpInterface>(op);
  if (const Spread *found = firstRows(in)) {
    const Spread rows = *found;
    for (auto [i, spread] : llvm::enumerate(in))
      spread = rowWise.operandForm(i) == RowForm::Scalar ? Spread::same() : rows;
    return fill(out, rows);
  }
  if (!anyPart(in))
    return together(in, out);
  switch (linear) {
  case Linear::No:
    return together(in, out);
  case Linear::All:
    fill(in, Spread::part());
    break;
  case Linear::Product: {
    if (in[0].isPart() && in[1].isPart() && !inLoop(op))
      return together(in, out);
    const unsigned part = in[0].isPart() ? 0 : 1;
    fill(in, Spread::same());
    in[part] = Spread::part();
    break;
  }
  case Linear::First:
    if (!in[0].isPart())
      return together(in, out);
    fill(in.drop_front(), Spread::same());
    break;
  }
  fill(out, Spread::part());
}

template <typename Op, Linear linear> struct Elements : RuleOf<Elements<Op, linear>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    elementwise(op, in, out, linear);
  }
  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    Along along;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (cast<RowWiseOpInterface>(op).operandForm(i) != RowForm::Scalar)
        along.push_back({i, dim});
    return along;
  }
};

struct Casts : RuleOf<Casts, CastOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    // Sums of ranks are added up before they are rounded.
    auto cast = llvm::cast<CastOp>(op);
    Type from = build::typeOf(cast.getX()).getElementType(), to = cast.getTo();
    const bool exact = isa<FloatType>(from) && isa<FloatType>(to) &&
                       (to == from || to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth());
    elementwise(op, in, out, exact ? Linear::First : Linear::No);
  }
  std::optional<Along> operandsAlong(Operation *, int64_t dim) const { return Along{{0, dim}}; }
};

//===-- Sources and shapes ------------------------------------------------------------------===//

template <typename Op> struct Source : RuleOf<Source<Op>, Op> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const { together(in, out); }
  void takeShape(Operation *op, ArrayRef<int64_t> shape) const {
    cast<Op>(op).setShapeAttr(Builder(op->getContext()).getI64ArrayAttr(shape));
  }
  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    if (auto iota = dyn_cast<IotaOp>(op); iota && iota.getAxis() == dim)
      return std::nullopt;
    return Along{};
  }
  /// Along its axis an iota counts on from the rows of the ranks before.
  Value ownRows(Operation *op, OpBuilder &b, int64_t dim, StringAttr over, int64_t ranks) const {
    auto iota = dyn_cast<IotaOp>(op);
    if (!iota || iota.getAxis() != dim)
      return {};
    Location loc = op->getLoc();
    const RankedTensorType whole = build::typeOf(iota.getResult());
    constexpr int64_t mostOfFloats = 1 << 24; // beyond, not all whole numbers are some
    if (isNarrowFloat(whole.getElementType()) ||
        (isa<FloatType>(whole.getElementType()) && whole.getDimSize(dim) > mostOfFloats))
      return {};
    SmallVector<int64_t> shape(whole.getShape());
    shape[dim] /= ranks;
    Value rank = RankOp::create(b, loc, RankedTensorType::get({}, b.getI32Type()), over,
                                b.getI64IntegerAttr(ranks));
    rank = build::cast(b, loc, rank, whole.getElementType());
    Value before = MulOp::create(
        b, loc, rank, build::constant(b, loc, rank.getType(), static_cast<double>(shape[dim])));
    Value own = IotaOp::create(b, loc, whole.clone(shape), b.getI64ArrayAttr(shape),
                               iota.getAxisAttr(), iota.getDtypeAttr(), iota.getPositionsAttr());
    return AddOp::create(b, loc, own, build::broadcast(b, loc, before, shape));
  }
};

struct Broadcasts : RuleOf<Broadcasts, BroadcastOp> {
  static int64_t missing(BroadcastOp op) { return rankOf(op.getY()) - rankOf(op.getX()); }
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (in[0].isRows())
      out[0] = in[0].along(in[0].dim + missing(cast<BroadcastOp>(op)));
    else if (in[0].isPart())
      out[0] = Spread::part();
    else
      together(in, out);
  }
  void takeShape(Operation *op, ArrayRef<int64_t> shape) const {
    cast<BroadcastOp>(op).setShapeAttr(Builder(op->getContext()).getI64ArrayAttr(shape));
  }
  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    auto broadcast = cast<BroadcastOp>(op);
    const int64_t own = dim - missing(broadcast);
    if (own < 0 || build::shapeOf(broadcast.getX())[own] == 1)
      return Along{};
    return Along{{0, own}};
  }
};

/// Rows of `from` as rows of `to`, in row-major order; nullopt if they are none of one dimension.
/// Both are a part of every run of elements with the same indices before.
std::optional<Spread> reshaped(ArrayRef<int64_t> from, ArrayRef<int64_t> to, const Spread &rows,
                               int64_t ranks) {
  const int64_t runs = productOf(from.take_front(rows.dim)) * rows.blocks;
  std::optional<Spread> found;
  for (int64_t before = 1, j = 0; j < static_cast<int64_t>(to.size()); before *= to[j++]) {
    const int64_t blocks = runs / before;
    if (runs % before != 0 || to[j] % blocks != 0 || to[j] / blocks % ranks != 0)
      continue;
    found = rows.along(j);
    found->blocks = blocks;
    if (blocks == 1)
      break;
  }
  return found;
}

struct Reshapes : RuleOf<Reshapes, ReshapeOp> {
  void partition(Operation *op, int64_t ranks, Spreads in, Spreads out) const {
    auto reshape = cast<ReshapeOp>(op);
    if (in[0].isPart()) {
      out[0] = Spread::part();
      return;
    }
    if (in[0].isRows()) {
      ArrayRef<int64_t> from = build::shapeOf(reshape.getX()), to = build::shapeOf(reshape.getY());
      std::optional<Spread> rows = reshaped(from, to, in[0], ranks);
      // Rows in an order of their own belong to nothing but themselves.
      if (rows && (!in[0].order || to[rows->dim] == from[in[0].dim])) {
        out[0] = *rows;
        return;
      }
    }
    together(in, out);
  }
  void takeShape(Operation *op, ArrayRef<int64_t> shape) const {
    cast<ReshapeOp>(op).setShapeAttr(Builder(op->getContext()).getI64ArrayAttr(shape));
  }
  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    auto reshape = cast<ReshapeOp>(op);
    ArrayRef<int64_t> from = build::shapeOf(reshape.getX()), to = build::shapeOf(reshape.getY());
    const int64_t before = productOf(to.take_front(dim));
    for (int64_t product = 1, j = 0; j < static_cast<int64_t>(from.size()); product *= from[j++])
      if (product == before && from[j] == to[dim])
        return Along{{0, j}};
    return std::nullopt;
  }
};

struct Transposes : RuleOf<Transposes, TransposeOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    out[0] = in[0];
    const SmallVector<int64_t> order = cast<TransposeOp>(op).getOrder();
    if (in[0].isRows())
      out[0].dim = llvm::find(order, in[0].dim) - order.begin();
  }
  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    return Along{{0, cast<TransposeOp>(op).getOrder()[dim]}};
  }
};

/// Of operations that change one axis and move nothing along others.
template <typename Op> struct AlongAxis : RuleOf<AlongAxis<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (const Spread *found = firstRows(in); found && found->dim != cast<Op>(op).getAxis()) {
      const Spread rows = *found;
      fill(in, rows);
      return fill(out, rows);
    }
    // Zeros are a part of any sum.
    const bool all = llvm::all_of(llvm::seq<unsigned>(0, in.size()), [&](unsigned i) {
      return in[i].isPart() || build::constantValue(op->getOperand(i)) == 0.0;
    });
    if (firstRows(in) || !anyPart(in) || !(all || inLoop(op)))
      return together(in, out);
    fill(in, Spread::part());
    fill(out, Spread::part());
  }
  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    if (dim == cast<Op>(op).getAxis())
      return std::nullopt;
    Along along;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      along.push_back({i, dim});
    return along;
  }
};

struct Copies : RuleOf<Copies, CopyOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const { out[0] = in[0]; }
  std::optional<Along> operandsAlong(Operation *, int64_t dim) const { return Along{{0, dim}}; }
};

//===-- Reductions --------------------------------------------------------------------------===//

template <typename Op> struct Reductions : RuleOf<Reductions<Op>, Op> {
  static constexpr bool adds = !std::is_same_v<Op, ReduceMaxOp>;

  /// The dimension of the result that one of the operand becomes, if it is not reduced.
  static std::optional<int64_t> kept(Op op, int64_t dim) {
    const int64_t rank = rankOf(op.getX());
    int64_t left = dim;
    for (int64_t axis : op.getAxes()) {
      axis = axis < 0 ? axis + rank : axis;
      if (axis == dim)
        return std::nullopt;
      if (axis < dim && !op.getKeep())
        --left;
    }
    return left;
  }

  void partition(Operation *op, int64_t ranks, Spreads in, Spreads out) const {
    if (in[0].isRows()) {
      if (std::optional<int64_t> dim = kept(cast<Op>(op), in[0].dim)) {
        out[0] = in[0].along(*dim);
        return;
      }
      if (adds) { // a mean of means, for ranks have as many rows
        out[0] = Spread::part(std::is_same_v<Op, MeanOp> ? 1.0 / static_cast<double>(ranks) : 1.0);
        return;
      }
    } else if (in[0].isPart() && adds) {
      out[0] = Spread::part();
      return;
    }
    together(in, out);
  }

  std::optional<Along> operandsAlong(Operation *op, int64_t dim) const {
    auto reduction = cast<Op>(op);
    for (int64_t d = 0; d < rankOf(reduction.getX()); ++d)
      if (kept(reduction, d) == dim)
        return Along{{0, d}};
    return std::nullopt;
  }
};

template <typename Op> using Nonlinear = Elements<Op, Linear::No>;
template <typename Op> using LinearInAll = Elements<Op, Linear::All>;
template <typename Op> using LinearInEach = Elements<Op, Linear::Product>;
template <typename Op> using LinearInFirst = Elements<Op, Linear::First>;

} // namespace

void attachShapeRules(MLIRContext &context) {
  attach<Nonlinear, ExpOp, LogOp, SqrtOp, RsqrtOp, SinOp, CosOp, TanhOp, ErfOp, SigmoidOp, SiluOp,
         GeluOp, MaxOp, MinOp, CompareOp, SelectOp, RandomOp, GuardOp, AdafactorOp, AdamWOp, LionOp,
         MuonOp, SgdOp>(context);
  attach<LinearInAll, AddOp, SubOp>(context);
  attach<LinearInEach, MulOp>(context);
  attach<LinearInFirst, NegOp, DetachOp, DivOp, DropoutOp>(context);
  attach<Source, ConstantOp, IotaOp>(context);
  attach<AlongAxis, SliceOp, ConcatOp, PadOp>(context);
  attach<Reductions, SumOp, MeanOp, ReduceMaxOp>(context);
  CastOp::attachInterface<Casts>(context);
  BroadcastOp::attachInterface<Broadcasts>(context);
  ReshapeOp::attachInterface<Reshapes>(context);
  TransposeOp::attachInterface<Transposes>(context);
  CopyOp::attachInterface<Copies>(context);
}

} // namespace hydra::partition
