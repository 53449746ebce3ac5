// hydra-reuse-norm-stats: the mean and the reciprocal deviation of a row are computed once.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_REUSENORMSTATS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-reuse-norm-stats";

/// Whether the value has one number for each row of `x`.
bool isOnePerRow(Value v, Value x) {
  return build::typeOf(v).getNumElements() == RefTensor::elements(build::shapeOf(x).drop_back());
}

/// Whether a broadcast repeats one number of each row of `x` along the row. Shapes align at the
/// end: a vector of as many numbers as there are rows would be repeated for every row instead.
bool repeatsAlongRows(BroadcastOp broadcast, Value x) {
  SmallVector<int64_t> row(build::shapeOf(x)), from(build::shapeOf(broadcast.getX()));
  row.back() = 1;
  from.insert(from.begin(), row.size() - std::min(row.size(), from.size()), 1);
  return build::shapeOf(broadcast.getY()) == build::shapeOf(x) && from == row;
}

/// A number for each row of `x`, in order, before it was given another shape or repeated along the
/// row.
Value rowValue(Value v, Value x) {
  while (Operation *op = v.getDefiningOp()) {
    // Without another number of elements, both only give another shape.
    const bool reshapes =
        isa<ReshapeOp, BroadcastOp>(op) && isOnePerRow(v, x) && isOnePerRow(op->getOperand(0), x);
    auto broadcast = dyn_cast<BroadcastOp>(op);
    if (!reshapes && !(broadcast && repeatsAlongRows(broadcast, x)))
      break;
    v = op->getOperand(0);
  }
  return v;
}

/// Whether the value is the mean over the rows of `x`, summed along rows as the norm sums: the mean
/// of a vector is one over its elements as rows, in another order.
bool isMeanOver(Value v, Value x) {
  auto mean = v.getDefiningOp<MeanOp>();
  if (!mean || mean.getX() != x || mean.sumsOverRows(0))
    return false;
  SmallVector<int64_t> axes = mean.getAxes();
  int64_t last = build::typeOf(x).getRank() - 1;
  return axes.size() == 1 && (axes[0] == last || axes[0] == -1);
}

/// What a norm saves, or would save.
struct Statistics {
  Operation *norm;
  double eps;
  bool centred; ///< the mean is taken off first

  Value x() const { return norm->getOperand(0); } // another norm's result may have been replaced

  Value mean() const { return centred ? norm->getResult(1) : Value(); }
  Value r() const { return norm->getResult(centred ? 2 : 1); }
};

/// Of a norm in f32; others would round what is written in their place.
std::optional<Statistics> statisticsOf(Operation &op) {
  for (Value operand : op.getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType());
        !type || !type.getElementType().isF32())
      return std::nullopt;
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return Statistics{&op, norm.getEps(), false};
  if (auto norm = dyn_cast<LayerNormOp>(op))
    return Statistics{&op, norm.getEps(), true};
  return std::nullopt;
}

struct ReuseNormStats : impl::ReuseNormStatsBase<ReuseNormStats> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      std::vector<Statistics> norms;
      for (Operation &op : entry.getBody().front())
        if (std::optional<Statistics> found = statisticsOf(op))
          norms.push_back(*found);
      for (size_t i = 0; i < norms.size(); ++i) {
        for (size_t j = norms.size() - 1; j > i; --j)
          if (norms[j].x() == norms[i].x() && norms[j].eps == norms[i].eps &&
              norms[j].centred == norms[i].centred) {
            apply(norms[i], norms[j].norm);
            norms.erase(norms.begin() + static_cast<ptrdiff_t>(j));
          }
        replaceFormulas(norms[i]);
      }
    }
  }

private:
  /// Makes the norm one that saves, as early as its operands are there.
  static void save(Statistics &s) {
    if (s.norm->getNumResults() == 1) {
      OpBuilder b(s.norm);
      s.norm = cast<DifferentiableOpInterface>(s.norm).saveForBackward(b);
    }
    for (Value operand : s.norm->getOperands()) // reading a variable can be anywhere before
      if (auto use = operand.getDefiningOp<UseOp>())
        use->moveBefore(&use->getBlock()->front());
    Operation *last = nullptr;
    for (Value operand : s.norm->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && (!last || last->isBeforeInBlock(op)))
        last = op;
    if (last)
      s.norm->moveAfter(last);
    else
      s.norm->moveBefore(&s.norm->getBlock()->front());
  }

  /// Writes another norm of the same rows as (x - mean) r w + b, in the order in which it computes.
  void apply(Statistics &s, Operation *norm) {
    save(s);
    OpBuilder b(norm);
    Location loc = madeBy(kPass, norm->getLoc());
    ArrayRef<int64_t> shape = build::shapeOf(s.x());
    auto overRow = [&](Value row) {
      SmallVector<int64_t> unit(shape);
      unit.back() = 1;
      return build::broadcast(b, loc, build::reshape(b, loc, row, unit), shape);
    };
    auto overRows = [&](Value column) { return build::broadcast(b, loc, column, shape); };
    Value y = s.x();
    if (s.centred)
      y = SubOp::create(b, loc, y, overRow(s.mean()));
    y = MulOp::create(b, loc, y, overRow(s.r()));
    y = MulOp::create(b, loc, y, overRows(norm->getOperand(1)));
    if (s.centred)
      y = AddOp::create(b, loc, y, overRows(norm->getOperand(2)));
    norm->getResult(0).replaceAllUsesWith(y);
    for (unsigned i = 1; i < norm->getNumResults(); ++i)
      norm->getResult(i).replaceAllUsesWith(s.norm->getResult(i));
    norm->erase();
    ++reused;
  }

  /// Replaces what plain operations compute as the mean and the reciprocal deviation of the rows.
  void replaceFormulas(Statistics &s) {
    SmallVector<Operation *> means, deviations;
    for (Operation &op : *s.norm->getBlock()) {
      if (s.centred && op.getNumResults() == 1 && isMeanOver(op.getResult(0), s.x()))
        means.push_back(&op);
      else if (auto root = dyn_cast<RsqrtOp>(op); root && isDeviation(root, s))
        deviations.push_back(&op);
    }
    if (means.empty() && deviations.empty())
      return;
    save(s);
    for (Operation *op : means)
      replace(op, s.mean());
    for (Operation *op : deviations)
      replace(op, s.r());
  }

  /// Unless the norm needs something that is computed behind the operation.
  void replace(Operation *op, Value statistic) {
    if (!statistic.getDefiningOp()->isBeforeInBlock(op))
      return;
    OpBuilder b(op);
    Value result = op->getResult(0);
    result.replaceAllUsesWith(
        build::reshape(b, madeBy(kPass, op->getLoc()), statistic, build::shapeOf(result)));
    op->erase();
    ++reused;
  }

  /// (mean(c²) + eps)^(-1/2), with c = x, or x less its mean.
  static bool isDeviation(RsqrtOp root, const Statistics &s) {
    if (!isOnePerRow(root.getY(), s.x()))
      return false;
    auto sum = root.getX().getDefiningOp<AddOp>();
    if (!sum)
      return false;
    for (auto [moment, eps] :
         {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
      if (build::constantValue(eps) != s.eps)
        continue;
      auto mean = rowValue(moment, s.x()).getDefiningOp<MeanOp>();
      auto square = mean ? mean.getX().getDefiningOp<MulOp>() : MulOp();
      if (square && square.getA() == square.getB() && isMeanOver(mean.getY(), square.getY()) &&
          isCentred(square.getA(), s))
        return true;
    }
    return false;
  }

  static bool isCentred(Value c, const Statistics &s) {
    if (!s.centred)
      return c == s.x();
    auto difference = c.getDefiningOp<SubOp>();
    if (!difference || difference.getA() != s.x())
      return false;
    Value mean = rowValue(difference.getB(), s.x());
    return isMeanOver(mean, s.x()) || (s.norm->getNumResults() > 1 && mean == s.mean());
  }
};

} // namespace
} // namespace hydra
