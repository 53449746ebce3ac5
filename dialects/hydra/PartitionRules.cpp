// What operations do where each rank has a part of the batch. An operation without a rule, here or
// in PartitionShapeRules.cpp, can only be computed from what is the same on all ranks.
#include "dialects/hydra/PartitionRules.h"

#include "dialects/hydra/PartitionRule.h"

using namespace mlir;

namespace hydra {

namespace partition {
namespace {

/// Of operations that need all of their operands.
template <typename Op> struct Together : RuleOf<Together<Op>, Op> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const { together(in, out); }
};

//===-- Matmuls and tables ------------------------------------------------------------------===//

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
    if (anyPart(in)) { // linear in each factor
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

/// Every rank gathers its own rows; their numbers mean something to `hydra.take_rows`
/// alone.
struct Compacts : RuleOf<Compacts, CompactOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (!in[0].isRows() || in[0].order)
      return together(in, out);
    auto compact = cast<CompactOp>(op);
    out[0] = out[1] = in[0];
    out[0].order = compact.getIndex();
    out[1].order = compact.getPlace();
    out[2] = Spread::part();
  }
};

/// The same for rows sorted by groups.
struct Routes : RuleOf<Routes, RouteOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    if (!in[0].isRows() || in[0].dim != 0 || in[0].order)
      return together(in, out);
    auto route = cast<RouteOp>(op);
    out[0] = out[1] = out[2] = in[0];
    out[0].order = out[1].order = route.getIndex();
    out[2].order = route.getPlace();
    out[3] = Spread::own(route.getIndex());
  }
};

struct TakeRows : RuleOf<TakeRows, TakeRowsOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    Spread inOrder = in[1]; // of the batch
    inOrder.order = {};
    if (isIndexOf(in[1], in[2])) {
      in[0] = inOrder;
      out[0] = in[1];
    } else if (isIndexOf(in[2], in[1])) {
      in[0] = in[2];
      out[0] = inOrder;
    } else {
      together(in, out);
    }
  }

private:
  /// Whether two values are the numbers of rows that an operation has gathered, and their places.
  static bool isIndexOf(const Spread &index, const Spread &place) {
    if (!index.isRows() || !place.isRows() || !index.order)
      return false;
    Operation *op = index.order.getDefiningOp();
    auto are = [&](Value numbers, Value places) {
      return index.order == numbers && place.order == places;
    };
    if (auto compact = dyn_cast<CompactOp>(op))
      return are(compact.getIndex(), compact.getPlace());
    auto route = dyn_cast<RouteOp>(op);
    return route && are(route.getIndex(), route.getPlace());
  }
};

/// Sorted rows of each rank, with where its groups begin.
struct GroupedLinears : RuleOf<GroupedLinears, GroupedLinearOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    if (!in[0].isRows() || in[0].dim != 0 || !in[0].order)
      return together(in, out);
    in[1] = Spread::same();
    in[2] = Spread::own(in[0].order);
    out[0] = in[0];
  }
};

struct GroupedOuters : RuleOf<GroupedOuters, GroupedOuterOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    const Spread *found = firstRows(in.take_front(2));
    if (!found || found->dim != 0 || !found->order)
      return together(in, out);
    in[0] = in[1] = Spread(*found);
    in[2] = Spread::own(in[0].order);
    out[0] = Spread::part();
  }
};

//===-- Counts ------------------------------------------------------------------------------===//

/// Each rank counts its rows, whatever their order.
struct ExponentCounts : RuleOf<ExponentCounts, CountExponentsOp> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    const unsigned before = cast<CountExponentsOp>(op).getScaled() ? 1 : 0;
    if (!llvm::all_of(in.drop_front(before), [](const Spread &s) { return s.isRows(); }))
      return together(in, out);
    fill(in.take_front(before), Spread::same());
    out[0] = Spread::part();
  }
};

//===-- Transforms --------------------------------------------------------------------------===//

/// Each row by itself; they are linear.
template <typename Op> struct Transforms : RuleOf<Transforms<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    const int64_t spectrum = std::max(rankOf(op->getOperand(0)), rankOf(op->getResult(0)));
    if (in[0].isRows() && in[0].dim < spectrum - 2)
      out[0] = in[0];
    else if (in[0].isPart())
      out[0] = Spread::part();
    else
      together(in, out);
  }
};

//===-- Recurrences -------------------------------------------------------------------------===//

/// Sequences by themselves; gradients of parameters are sums over them.
template <typename Op> struct Recurrences : RuleOf<Recurrences<Op>, Op> {
  void partition(Operation *op, int64_t, Spreads in, Spreads out) const {
    const Spread *found = firstRows(in);
    if (!found || found->dim != 0)
      return together(in, out);
    const Spread rows = *found;
    for (auto [v, spread] : llvm::zip(op->getOperands(), in))
      spread = isOfSequences(v) ? rows : Spread::same();
    for (auto [v, spread] : llvm::zip(op->getResults(), out))
      spread = isOfSequences(v) ? rows : Spread::part();
  }

private:
  static bool isOfSequences(Value v) { return rankOf(v) == 3; }
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

/// Along other axes than its own.
struct Shards : RuleOf<Shards, ShardOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const { out[0] = in[0]; }
};

/// Positions count from the first row, unless they are an operand, which has one for each row.
struct Rotations : RuleOf<Rotations, RopeOp> {
  void partition(Operation *, int64_t, Spreads in, Spreads out) const {
    constexpr int64_t kRows = 1, kHeads = 2, kWidth = 3;
    const Spread *found = firstRows(in);
    const bool counts = in.size() == 1;
    if (!found || found->dim == kWidth || (counts && found->dim == kRows))
      return together(in, out);
    const Spread rows = *found;
    in[0] = out[0] = rows;
    if (!counts)
      in[1] = rows.dim == kHeads ? Spread::same() : rows;
  }
};

} // namespace
} // namespace partition

void attachPartitionRules(MLIRContext &context) {
  using namespace partition;
  attachShapeRules(context);
  attach<Linears, LinearOp, LinearGeluOp>(context);
  attach<RowWise, RmsNormOp, RmsNormGradOp, LayerNormOp, LayerNormGradOp, SoftmaxOp, SoftmaxGradOp>(
      context);
  attach<Sequences, AttentionOp, AttentionGradOp>(context);
  attach<Transforms, RfftOp, IrfftOp>(context);
  attach<Recurrences, LinearRecurrenceOp, LinearRecurrenceGradOp>(context);
  attach<Losses, CrossEntropyOp, CrossEntropyGradOp, LinearCrossEntropyOp>(context);
  attach<Collectives, AllGatherOp, AllToAllOp, AllReduceOp, ReduceScatterOp>(context);
  attach<Together, GlobalNormOp, AdamW8bitOp>(context);
  MatmulOp::attachInterface<Matmuls>(context);
  CountExponentsOp::attachInterface<ExponentCounts>(context);
  EmbeddingOp::attachInterface<Embeddings>(context);
  EmbeddingGradOp::attachInterface<EmbeddingGrads>(context);
  RopeOp::attachInterface<Rotations>(context);
  ShardOp::attachInterface<Shards>(context);
  TopKOp::attachInterface<TopKs>(context);
  CompactOp::attachInterface<Compacts>(context);
  RouteOp::attachInterface<Routes>(context);
  TakeRowsOp::attachInterface<TakeRows>(context);
  GroupedLinearOp::attachInterface<GroupedLinears>(context);
  GroupedOuterOp::attachInterface<GroupedOuters>(context);
}

} // namespace hydra
