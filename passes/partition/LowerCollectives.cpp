// hydra-lower-collectives: sums over ranks become exchanges and adds in the order of ranks.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-lower-collectives";

/// Of the pieces that ranks add up: a kernel works on rows, so a long piece is many of them.
constexpr int64_t kRow = 1024;

/// Dimensions of a value, to which those that lower a collective add one for the ranks.
constexpr int64_t kMostDimensions = 7;

/// A shape as what is in front of an axis, the axis, and what is behind it.
SmallVector<int64_t> aroundAxis(ArrayRef<int64_t> shape, int64_t axis) {
  return {productOf(shape.take_front(axis)), shape[axis], productOf(shape.drop_front(axis + 1))};
}

/// Gives a collective of more dimensions than that fewer: in front of its axis and behind it they
/// are one.
Operation *withFewerDimensions(Operation *op) {
  if (op->getNumOperands() == 0 || build::typeOf(op->getOperand(0)).getRank() <= kMostDimensions)
    return op;
  auto given = op->getAttrOfType<IntegerAttr>("axis"); // sums have none
  const int64_t axis = given ? given.getInt() : 0;
  if (isa<AllGatherOp, AllToAllOp>(op) && axis == 0)
    return op; // it stays
  OpBuilder b(op);
  const Location loc = madeBy(kPass, op->getLoc());
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(build::reshape(b, loc, operand, aroundAxis(build::shapeOf(operand), axis)));
  Operation *fewer = b.clone(*op);
  fewer->setOperands(operands);
  const RankedTensorType type = build::typeOf(op->getResult(0));
  fewer->getResult(0).setType(type.clone(aroundAxis(type.getShape(), axis)));
  if (given)
    fewer->setAttr("axis", b.getI64IntegerAttr(1));
  op->replaceAllUsesWith(ValueRange(build::reshape(b, loc, fewer->getResult(0), type.getShape())));
  op->erase();
  return fewer;
}

/// Elements of a value that lie one behind the other: a slice or reshape of it, or all of it.
struct Part {
  Value value;
  int64_t start = 0; ///< the first, of those of the whole
  int64_t size() const { return build::typeOf(value).getNumElements(); }
};

/// Adds what is read of a part: neighbouring elements of it where nothing else is read, else
/// itself.
void addParts(const Part &part, SmallVector<Part> &parts) {
  SmallVector<Part> inner;
  for (Operation *user : part.value.getUsers()) {
    if (auto reshape = dyn_cast<ReshapeOp>(user)) {
      inner.push_back({reshape.getResult(), part.start});
      continue;
    }
    auto slice = dyn_cast<SliceOp>(user);
    ArrayRef<int64_t> shape = build::shapeOf(part.value);
    if (!slice || productOf(shape.take_front(slice.getAxis())) != 1) {
      parts.push_back(part);
      return;
    }
    const int64_t row = productOf(shape.drop_front(slice.getAxis() + 1));
    inner.push_back({slice.getResult(), part.start + static_cast<int64_t>(slice.getStart()) * row});
  }
  for (const Part &one : inner)
    addParts(one, parts);
}

/// What is read of a value, as parts of it that share nothing; the value itself where parts do.
SmallVector<Part> partsOf(Value whole) {
  SmallVector<Part> parts;
  addParts({whole}, parts);
  llvm::sort(parts, [](const Part &a, const Part &b) { return a.start < b.start; });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].start < parts[i - 1].start + parts[i - 1].size())
      return {{whole}};
  return parts;
}

/// Slices and reshapes of a value that nothing reads.
void eraseUnread(Value value) {
  for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
    if (isa<SliceOp, ReshapeOp>(user)) {
      eraseUnread(user->getResult(0));
      if (user->use_empty())
        user->erase();
    }
}

/// Writes one collective by those that only move whole rows of the first axis.
class CollectiveWriter {
public:
  /// `sliceBytes`: what a rank gets at most by one exchange of pieces of a sum; 0: no bound.
  template <typename Op>
  CollectiveWriter(Op op, int64_t &number, uint64_t sliceBytes)
      : b(op), loc(madeBy(kPass, op.getLoc())), over(op.getOverAttr()), ranks(op.getRanks()),
        number(number), element(build::typeOf(op->getResult(0)).getElementType()),
        sliceBytes(sliceBytes) {}

  /// Exchanges beyond the first that a sum is made by.
  unsigned slices = 0;

  /// `x [n, ...]` of all ranks as `[ranks n, ...]`.
  Value gather(Value x) {
    return AllGatherOp::create(b, loc, x, integer(0), over, integer(ranks), integer(number++));
  }
  Value exchange(Value x) {
    return AllToAllOp::create(b, loc, x, integer(0), over, integer(ranks), integer(number++));
  }

  /// The sum of what all ranks have, each of which sends all of it to all. Rounded numbers are
  /// added to `start` when they are a sum, as they are by pieces and in buckets.
  Value sumOfAll(Value x, Value start) {
    SmallVector<int64_t> shape(build::shapeOf(x));
    SmallVector<int64_t> one(shape);
    one.insert(one.begin(), 1);
    Value all = gather(build::reshape(b, loc, x, one));
    if (!start || !isRounded(x))
      return sumOfRows(all, shape, start);
    return AddOp::create(b, loc, start, sumOfRows(all, shape, Value()));
  }

  /// The same where only parts of the sum are read (a bucket of gradients): each is added up by
  /// itself, in its shape, so that the adds can become a piece of the kernel that reads it.
  void sumOfAll(Value x, ArrayRef<Part> parts) {
    const int64_t elements = build::typeOf(x).getNumElements();
    Value all = gather(build::reshape(b, loc, x, {1, elements}));
    for (Part part : parts) {
      Value sum;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        Value own = build::slice(b, loc, all, 0, rank, 1);
        own = build::slice(b, loc, own, 1, part.start, part.size());
        own = build::cast(b, loc, build::reshape(b, loc, own, build::shapeOf(part.value)), element);
        sum = sum ? AddOp::create(b, loc, sum, own).getResult() : own;
      }
      part.value.replaceAllUsesWith(sum);
    }
  }

  /// The same, where each rank sums up one piece, slice by slice. `across`, if given, goes on with
  /// a piece: the sum over the ranks of another axis.
  Value sumByPieces(Value x, Value start, llvm::function_ref<Value(Value)> across) {
    const int64_t elements = build::typeOf(x).getNumElements();
    const int64_t most = mostOfPiece(x, llvm::divideCeil(elements, ranks)) * ranks;
    if (most >= elements)
      return sumOfSlice(x, start, across);
    Value flat = build::reshape(b, loc, x, {elements});
    Value begin = start ? build::reshape(b, loc, start, {elements}) : Value();
    SmallVector<Value> sums;
    for (int64_t at = 0; at < elements; at += most) {
      const int64_t size = std::min(most, elements - at);
      sums.push_back(sumOfSlice(build::slice(b, loc, flat, 0, at, size),
                                begin ? build::slice(b, loc, begin, 0, at, size) : Value(),
                                across));
    }
    return joined(sums, build::shapeOf(x));
  }

  /// This rank's piece, along an axis, of the sum, slice by slice.
  Value sumOfPiece(Value x, int64_t axis, ArrayRef<int64_t> result, Value start) {
    const int64_t piece = productOf(result), most = mostOfPiece(x, piece);
    Value pieces = piecesFirst(x, axis);
    if (most >= piece)
      return sumOfRows(exchange(pieces), result, start);
    // Of each rank's piece the same elements, whole rows of them if there are any.
    const int64_t row = piece % kRow == 0 && most % kRow == 0 ? kRow : 1;
    pieces = build::reshape(b, loc, pieces, {ranks, piece});
    Value begin = start ? build::reshape(b, loc, start, {piece}) : Value();
    SmallVector<Value> sums;
    for (int64_t at = 0; at < piece; at += most) {
      const int64_t size = std::min(most, piece - at);
      SmallVector<int64_t> shape{size};
      if (row > 1)
        shape = {size / row, row};
      Value own =
          begin ? build::reshape(b, loc, build::slice(b, loc, begin, 0, at, size), shape) : Value();
      sums.push_back(sumOfRows(exchange(build::slice(b, loc, pieces, 1, at, size)), shape, own));
    }
    return joined(sums, result);
  }

  Value gatherAlong(Value x, int64_t axis, ArrayRef<int64_t> result) {
    SmallVector<int64_t> one(build::shapeOf(x));
    one.insert(one.begin(), 1);
    return piecesBack(gather(build::reshape(b, loc, x, one)), axis, result);
  }

  Value exchangeAlong(Value x, int64_t axis) {
    return piecesBack(exchange(piecesFirst(x, axis)), axis, build::shapeOf(x));
  }

private:
  IntegerAttr integer(int64_t value) { return b.getI64IntegerAttr(value); }

  /// Elements of a piece that go into one exchange with those of all other pieces: equal parts of
  /// it, whole rows if it has some.
  int64_t mostOfPiece(Value x, int64_t piece) const {
    const int64_t bytes = bytesOf(x.getType()) / build::typeOf(x).getNumElements() * ranks;
    const int64_t row = piece > kRow ? kRow : 1;
    if (sliceBytes == 0 || piece * bytes <= static_cast<int64_t>(sliceBytes))
      return piece;
    const int64_t most =
        std::max<int64_t>(static_cast<int64_t>(sliceBytes) / bytes / row * row, row);
    const int64_t count = llvm::divideCeil(piece, most);
    return llvm::alignTo(llvm::divideCeil(piece, count), row);
  }

  bool isRounded(Value x) const { return build::typeOf(x).getElementType() != element; }

  /// What slices have become, one behind the other.
  Value joined(ArrayRef<Value> sums, ArrayRef<int64_t> shape) {
    slices += sums.size() - 1;
    return build::reshape(b, loc, ConcatOp::create(b, loc, sums, integer(0)), shape);
  }

  /// The sum of what all ranks have, each of which sums up one piece.
  Value sumOfSlice(Value x, Value start, llvm::function_ref<Value(Value)> across) {
    const int64_t elements = build::typeOf(x).getNumElements();
    const bool rounded = isRounded(x);
    if (start && !rounded)
      x = build::onFirstRank(b, loc, over, ranks, AddOp::create(b, loc, start, x), x);
    int64_t piece = llvm::divideCeil(elements, ranks);
    if (piece > kRow)
      piece = llvm::alignTo(piece, kRow);
    Value flat = build::reshape(b, loc, x, {elements});
    if (const int64_t rest = piece * ranks - elements; rest > 0) {
      // As a part of its own, so that what makes x can write it where it is sent from.
      Value zeros = build::constant(
          b, loc, RankedTensorType::get({rest}, build::typeOf(x).getElementType()), 0.0);
      flat = ConcatOp::create(b, loc, ValueRange{flat, zeros}, integer(0));
    }
    SmallVector<int64_t> shape = rowsOf(piece);
    Value sum = sumOfRows(exchange(flat), shape, Value());
    if (across)
      sum = across(sum);
    Value all = gather(build::reshape(b, loc, sum, {piece}));
    if (piece * ranks > elements)
      all = build::slice(b, loc, all, 0, 0, elements);
    all = build::reshape(b, loc, all, build::typeOf(x).getShape());
    // Rounded it would lose what it has gathered so far.
    return start && rounded ? AddOp::create(b, loc, start, all).getResult() : all;
  }

  /// A piece as rows of kRow elements, if it is so many.
  static SmallVector<int64_t> rowsOf(int64_t piece) {
    return piece % kRow == 0 && piece > kRow ? SmallVector<int64_t>{piece / kRow, kRow}
                                             : SmallVector<int64_t>{piece};
  }

  /// The values of all ranks lie one after the other in `all`; their sum, from `start` or from that
  /// of rank 0, from left to right.
  Value sumOfRows(Value all, ArrayRef<int64_t> shape, Value start) {
    SmallVector<int64_t> rows(shape);
    rows.insert(rows.begin(), ranks);
    all = build::reshape(b, loc, all, rows);
    Value sum = start;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      Value part = build::slice(b, loc, all, 0, rank, 1);
      part = build::cast(b, loc, build::reshape(b, loc, part, shape), element);
      sum = sum ? AddOp::create(b, loc, sum, part).getResult() : part;
    }
    return sum;
  }

  /// `[..., ranks n, ...]` as `[ranks, ..., n, ...]`; nothing moves where it is the first axis that
  /// has more than one.
  Value piecesFirst(Value x, int64_t axis) {
    SmallVector<int64_t> shape(build::shapeOf(x));
    if (productOf(ArrayRef(shape).take_front(axis)) == 1)
      return build::reshape(b, loc, x, ArrayRef(shape).drop_front(axis));
    shape[axis] /= ranks;
    shape.insert(shape.begin() + axis, ranks);
    SmallVector<int64_t> order = {axis};
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
      if (d != axis)
        order.push_back(d);
    return TransposeOp::create(b, loc, build::reshape(b, loc, x, shape), b.getI64ArrayAttr(order));
  }

  /// The other way, into that shape.
  Value piecesBack(Value pieces, int64_t axis, ArrayRef<int64_t> shape) {
    if (productOf(shape.take_front(axis)) == 1)
      return build::reshape(b, loc, pieces, shape);
    SmallVector<int64_t> split(shape);
    split[axis] /= ranks;
    split.insert(split.begin(), ranks);
    SmallVector<int64_t> order;
    for (int64_t d = 1; d <= axis; ++d)
      order.push_back(d);
    order.push_back(0);
    for (int64_t d = axis + 1; d < static_cast<int64_t>(split.size()); ++d)
      order.push_back(d);
    Value moved = TransposeOp::create(b, loc, build::reshape(b, loc, pieces, split),
                                      b.getI64ArrayAttr(order));
    return build::reshape(b, loc, moved, shape);
  }

  OpBuilder b;
  Location loc;
  StringAttr over;
  int64_t ranks;
  int64_t &number; ///< of the next gather or exchange
  Type element;    ///< of the result: sums are in it
  uint64_t sliceBytes;
};

struct LowerCollectives : impl::LowerCollectivesBase<LowerCollectives> {
  using LowerCollectivesBase::LowerCollectivesBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    int64_t number = 0;
    SmallVector<Operation *> collectives;
    model.walk([&](CollectiveOpInterface op) {
      collectives.push_back(op);
      if (auto known = op->getAttrOfType<IntegerAttr>("number"))
        number = std::max(number, known.getInt() + 1);
    });
    for (Operation *&op : collectives)
      op = withFewerDimensions(op);
    for (Operation *op : collectives)
      if (Value lowered = taken.contains(op) ? Value() : lower(op, number)) {
        op->getResult(0).replaceAllUsesWith(lowered);
        op->erase();
      }
  }

private:
  /// What takes the place of the result; null where that has none, or the operation stays.
  Value lower(Operation *op, int64_t &number) {
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      return lower(reduce, number);
    if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
      ++exchanges;
      CollectiveWriter writer(scatter, number, sliceBytes);
      Value sum = writer.sumOfPiece(scatter.getX(), scatter.getAxis(),
                                    build::shapeOf(scatter.getY()), scatter.getStart());
      slices += writer.slices;
      return sum;
    }
    if (auto gather = dyn_cast<AllGatherOp>(op); gather && gather.getAxis() != 0)
      return CollectiveWriter(gather, number, sliceBytes)
          .gatherAlong(gather.getX(), gather.getAxis(), build::shapeOf(gather.getY()));
    if (auto exchange = dyn_cast<AllToAllOp>(op); exchange && exchange.getAxis() != 0)
      return CollectiveWriter(exchange, number, sliceBytes)
          .exchangeAlong(exchange.getX(), exchange.getAxis());
    return {};
  }

  Value lower(AllReduceOp reduce, int64_t &number) {
    CollectiveWriter writer(reduce, number, sliceBytes);
    const double bytes = static_cast<double>(bytesOf(reduce.getX().getType()));
    const auto ranks = static_cast<double>(reduce.getRanks());
    // Everything to all, or a piece to each and back.
    const double whole = (ranks - 1) * bytes, pieces = static_cast<double>(reduce.wireBytes());
    if (whole <= pieces + static_cast<double>(latencyBytes)) {
      ++gathers;
      SmallVector<Part> parts = partsOf(reduce.getY());
      if (reduce.getStart() || parts.empty() || parts.front().value == reduce.getY())
        return writer.sumOfAll(reduce.getX(), reduce.getStart());
      writer.sumOfAll(reduce.getX(), parts);
      eraseUnread(reduce.getY());
      reduce.erase();
      return {};
    }
    ++exchanges;
    AllReduceOp next = sumOfSum(reduce);
    if (!next) {
      Value sum = writer.sumByPieces(reduce.getX(), reduce.getStart(), nullptr);
      slices += writer.slices;
      return sum;
    }
    ++levels;
    Value sum = writer.sumByPieces(reduce.getX(), reduce.getStart(), [&](Value piece) -> Value {
      OpBuilder b(reduce);
      auto across = AllReduceOp::create(b, madeBy(kPass, next.getLoc()), piece, Value(),
                                        next.getOverAttr(), next.getRanksAttr(), TypeAttr());
      Value lowered = lower(across, number);
      across.erase();
      return lowered;
    });
    slices += writer.slices;
    next.getY().replaceAllUsesWith(sum);
    taken.insert(next);
    next.erase();
    return sum;
  }

  /// The sum over another axis of what is read for nothing else; null where there is none.
  static AllReduceOp sumOfSum(AllReduceOp reduce) {
    auto next = reduce.getY().hasOneUse() ? dyn_cast<AllReduceOp>(*reduce.getY().user_begin())
                                          : AllReduceOp();
    return next && !next.getStart() && !next.getSum() ? next : AllReduceOp();
  }

  DenseSet<Operation *> taken; ///< sums that became a part of another, and are erased
};

} // namespace
} // namespace hydra
