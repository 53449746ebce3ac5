// What operations do where each rank has a part of the batch. An operation without a rule here can
// only be computed from what is the same on all ranks.
#include "dialects/hydra/PartitionRules.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

namespace {

using Spreads = MutableArrayRef<Spread>;
using Along = SmallVector<std::pair<unsigned, int64_t>>;

/// The first operand of which ranks have rows, or null.
const Spread *firstRows(ArrayRef<Spread> in) {
  const auto *it = llvm::find_if(in, [](const Spread &s) { return s.isRows(); });
  return it == in.end() ? nullptr : it;
}

void fill(Spreads list, const Spread &spread) { llvm::fill(list, Spread(spread)); }

bool anyPart(ArrayRef<Spread> in) {
  return llvm::any_of(in, [](const Spread &s) { return s.isPart(); });
}

/// All ranks compute the same from the same.
void together(Spreads in, Spreads out) {
  fill(in, Spread::same());
  fill(out, Spread::same());
}

/// Within a loop ranks cannot meet: what is linear stays a part of a sum there, also where adding
/// up first would send less.
bool inLoop(Operation *op) { return !op->getParentOfType<EntryOp>().isProgram(); }

int64_t rankOf(Value v) { return build::typeOf(v).getRank(); }

template <typename Model, typename Op>
using RuleOf = PartitionOpInterface::ExternalModel<Model, Op>;

/// Of operations that need all of their operands.
template <typename Op> struct Together : RuleOf<Together<Op>, Op> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const { together(in, out); }
};

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
};

struct Broadcasts : RuleOf<Broadcasts, BroadcastOp> {
  static int64_t missing(BroadcastOp op) { return rankOf(op.getY()) - rankOf(op.getX()); }
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (in[0].isRows())
      out[0] = in[0].along(in[0].dim + missing(cast<BroadcastOp>(op)));
    else if (in[0].isPart() && inLoop(op))
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
    const bool all = llvm::all_of(in, [](const Spread &s) { return s.isPart(); });
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

//===-- Products and tables -----------------------------------------------------------------===//

/// Rows of x [..., K] give rows of the results.
template <typename Op> struct Linears : RuleOf<Linears<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (!in[0].isRows() || in[0].dim == rankOf(op->getOperand(0)) - 1)
      return together(in, out);
    fill(in.drop_front(), Spread::same());
    fill(out, in[0]);
  }
};

struct Matmuls : RuleOf<Matmuls, MatmulOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    auto matmul = cast<MatmulOp>(op);
    const int64_t rank = rankOf(matmul.getC());
    // The dimension that is summed, and the one of the result, of both factors.
    const int64_t inner[] = {rank - (matmul.getTransposeA() ? 2 : 1),
                             rank - (matmul.getTransposeB() ? 1 : 2)};
    const int64_t outer[] = {rank - 2, rank - 1};
    auto take = [&](const Spread &a, const Spread &b, const Spread &result) {
      in[0] = a;
      in[1] = b;
      if (in.size() > 2)
        in[2] = result;
      out[0] = result;
    };
    for (unsigned i : {0, 1}) {
      if (!in[i].isRows())
        continue;
      const Spread own = in[i];
      if (own.dim < rank - 2)
        return take(own, own, own);
      Spread other = Spread::same(), result = own.along(outer[i]);
      if (own.dim == inner[i]) {
        other = own.along(inner[1 - i]);
        result = Spread::part();
      }
      return i == 0 ? take(own, other, result) : take(other, own, result);
    }
    if (inLoop(op) && anyPart(in)) {
      const bool first = in[0].isPart(), second = !first && in[1].isPart();
      if (first || second)
        return take(first ? Spread::part() : Spread::same(),
                    second ? Spread::part() : Spread::same(), Spread::part());
    }
    together(in, out);
  }
};

struct Embeddings : RuleOf<Embeddings, EmbeddingOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    if (!in[0].isRows())
      return together(in, out);
    in[1] = Spread::same();
    out[0] = in[0];
  }
};

struct EmbeddingGrads : RuleOf<EmbeddingGrads, EmbeddingGradOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    const Spread *found = firstRows(in);
    if (!found || found->dim >= rankOf(op->getOperand(0)))
      return together(in, out);
    fill(in, Spread(*found));
    out[0] = Spread::part();
  }
};

//===-- Row-wise operations -----------------------------------------------------------------===//

/// By what an operation says of its rows: those of tiles and of numbers of rows are cut, sums over
/// rows are parts.
template <typename Op> struct RowWise : RuleOf<RowWise<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    auto rowWise = cast<RowWiseOpInterface>(op);
    const int64_t rowDims = *rowWise.rowDimensions();
    auto hasRows = [](RowForm form) { return form == RowForm::Tile || form == RowForm::Row; };
    const Spread *found = nullptr;
    for (auto [i, spread] : llvm::enumerate(in))
      if (!found && spread.isRows() && spread.dim < rowDims && hasRows(rowWise.operandForm(i)))
        found = &spread;
    if (!found)
      return together(in, out);
    const Spread rows = *found;
    for (auto [i, spread] : llvm::enumerate(in))
      spread = hasRows(rowWise.operandForm(i)) ? rows : Spread::same();
    for (auto [i, spread] : llvm::enumerate(out))
      spread = rowWise.sumsOverRows(i) ? Spread::part() : rows;
  }
};

/// Of operations on whole sequences [B, ...]: of all operands and results the first dimension is
/// that of sequences.
template <typename Op> struct Sequences : RuleOf<Sequences<Op>, Op> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    const Spread *found = firstRows(in);
    if (!found || found->dim != 0)
      return together(in, out);
    const Spread rows = *found;
    fill(in, rows);
    fill(out, rows);
  }
};

//===-- Losses ------------------------------------------------------------------------------===//

/// Of losses over rows with labels, which divide by a count of all ranks.
template <typename Op> struct Losses : RuleOf<Losses<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    auto loss = cast<Op>(op);
    const int64_t rowDims = rankOf(loss.getLabels());
    const Spread *found = nullptr;
    for (const Spread &spread : in)
      if (!found && spread.isRows() && spread.dim < rowDims)
        found = &spread;
    if (!found)
      return together(in, out);
    const Spread rows = *found;
    // What has the rows of the labels is cut with them: not the weight, the count, the loss.
    auto hasRows = [&](Value v) { return rankOf(v) >= rowDims && rankOf(v) > 0; };
    for (OpOperand &operand : op->getOpOperands())
      in[operand.getOperandNumber()] =
          hasRows(operand.get()) && !isWeight(loss, operand) ? rows : Spread::same();
    for (auto [v, spread] : llvm::zip(op->getResults(), out))
      spread = hasRows(v) && v != weightGradient(loss) ? rows : Spread::part();
  }

private:
  static bool isWeight(LinearCrossEntropyOp op, OpOperand &operand) {
    return &op.getWMutable() == &operand;
  }
  template <typename Other> static bool isWeight(Other, OpOperand &) { return false; }
  static Value weightGradient(LinearCrossEntropyOp op) {
    return op.getSaved().empty() ? Value() : Value(op.getSaved().back());
  }
  template <typename Other> static Value weightGradient(Other) { return {}; }
};

//===-- Routing -----------------------------------------------------------------------------===//

struct TopKs : RuleOf<TopKs, TopKOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (in[0].isRows() && in[0].dim < rankOf(op->getOperand(0)) - 1)
      out[0] = in[0];
    else
      together(in, out);
  }
};

/// Every rank brings its own rows together; their numbers mean something to `hydra.take_rows`
/// alone.
struct Compacts : RuleOf<Compacts, CompactOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (!in[0].isRows() || in[0].order || in[0].blocks != 1)
      return together(in, out);
    auto compact = cast<CompactOp>(op);
    out[0] = out[1] = in[0];
    out[0].order = compact.getIndex();
    out[1].order = compact.getPlace();
    out[2] = Spread::part();
  }
};

struct TakeRows : RuleOf<TakeRows, TakeRowsOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    auto numbers = [&](unsigned operand, unsigned result) -> CompactOp {
      Value order = in[operand].isRows() ? in[operand].order : Value();
      auto compact = order ? order.getDefiningOp<CompactOp>() : CompactOp();
      return compact && compact->getResult(result) == order ? compact : CompactOp();
    };
    if (CompactOp there = numbers(1, 0); there && numbers(2, 1) == there) {
      in[0] = Spread::rows(0);
      out[0] = in[1];
    } else if (CompactOp back = numbers(1, 1); back && numbers(2, 0) == back) {
      in[0] = in[2];
      out[0] = Spread::rows(0);
    } else {
      together(in, out);
    }
  }
};

//===-- Other axes --------------------------------------------------------------------------===//

/// What goes over another axis does with rows what it does with all of them, but along its own
/// dimension; sums of ranks are added up first: those inside of a node before those across.
template <typename Op> struct Collectives : RuleOf<Collectives<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    const Spread *found = firstRows(in);
    if (!found || found->order || found->dim == axisOf(cast<Op>(op)))
      return together(in, out);
    const Spread rows = *found;
    fill(in, rows);
    fill(out, rows);
  }

private:
  static int64_t axisOf(AllReduceOp) { return -1; }
  template <typename Other> static int64_t axisOf(Other op) { return op.getAxis(); }
};

struct Rotations : RuleOf<Rotations, RopeOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    constexpr int64_t kSequences = 0, kHeads = 2; // positions count from the first row
    if (in[0].isRows() && (in[0].dim == kSequences || in[0].dim == kHeads))
      out[0] = in[0];
    else
      together(in, out);
  }
};

template <template <typename> typename Rule, typename... Ops> void attach(MLIRContext &context) {
  (Ops::template attachInterface<Rule<Ops>>(context), ...);
}
template <typename Op> using Nonlinear = Elements<Op, Linear::No>;
template <typename Op> using LinearInAll = Elements<Op, Linear::All>;
template <typename Op> using LinearInEach = Elements<Op, Linear::Product>;
template <typename Op> using LinearInFirst = Elements<Op, Linear::First>;

} // namespace

void attachPartitionRules(MLIRContext &context) {
  attach<Nonlinear, ExpOp, LogOp, SqrtOp, RsqrtOp, SinOp, CosOp, TanhOp, SigmoidOp, SiluOp, GeluOp,
         MaxOp, MinOp, CompareOp, SelectOp, GuardOp, AdamWOp, SgdOp>(context);
  attach<LinearInAll, AddOp, SubOp>(context);
  attach<LinearInEach, MulOp>(context);
  attach<LinearInFirst, NegOp, DetachOp, DivOp>(context);
  attach<Source, ConstantOp, IotaOp>(context);
  attach<AlongAxis, SliceOp, ConcatOp, PadOp>(context);
  attach<Reductions, SumOp, MeanOp, ReduceMaxOp>(context);
  attach<Linears, LinearOp, LinearGeluOp>(context);
  attach<RowWise, RmsNormOp, RmsNormGradOp, LayerNormOp, LayerNormGradOp, SoftmaxOp, SoftmaxGradOp>(
      context);
  attach<Sequences, AttentionOp, AttentionGradOp>(context);
  attach<Losses, CrossEntropyOp, CrossEntropyGradOp, LinearCrossEntropyOp>(context);
  attach<Collectives, AllGatherOp, AllToAllOp, AllReduceOp, ReduceScatterOp>(context);
  attach<Together, GlobalNormOp>(context);
  CastOp::attachInterface<Casts>(context);
  BroadcastOp::attachInterface<Broadcasts>(context);
  ReshapeOp::attachInterface<Reshapes>(context);
  TransposeOp::attachInterface<Transposes>(context);
  CopyOp::attachInterface<Copies>(context);
  MatmulOp::attachInterface<Matmuls>(context);
  EmbeddingOp::attachInterface<Embeddings>(context);
  EmbeddingGradOp::attachInterface<EmbeddingGrads>(context);
  RopeOp::attachInterface<Rotations>(context);
  TopKOp::attachInterface<TopKs>(context);
  CompactOp::attachInterface<Compacts>(context);
  TakeRowsOp::attachInterface<TakeRows>(context);
}

} // namespace hydra
