// Scales of weights that lie in a unit, of which each rank has a piece.
#include "passes/precision/UnitScales.h"

#include "dialects/hydra/Build.h"

#include <numeric>

using namespace mlir;

namespace hydra {

int64_t UnitScales::block(int64_t most) const {
  int64_t block = most;
  for (int64_t start : starts)
    block = std::gcd(block, start);
  return block;
}

Value UnitScales::inBlocks(OpBuilder &b, Location loc, Value piece, int64_t block) {
  return build::reshape(b, loc, piece, {build::typeOf(piece).getNumElements() / block, block});
}

void UnitScales::moveHere(OpBuilder &b, Operation *piece) {
  if (piece->getNumOperands() > 0)
    moveHere(b, piece->getOperand(0).getDefiningOp());
  if (b.getInsertionPoint() == Block::iterator(piece)) {
    b.setInsertionPointAfter(piece);
    return;
  }
  Block &block = *b.getInsertionBlock();
  if (b.getInsertionPoint() == block.end() || !piece->isBeforeInBlock(&*b.getInsertionPoint()))
    piece->moveBefore(&block, b.getInsertionPoint());
}

/// Which blocks a rank has, [blocks] i32.
Value UnitScales::numbers(OpBuilder &b, Location loc, int64_t blocks) const {
  auto own = RankedTensorType::get({blocks}, b.getI32Type());
  auto scalar = RankedTensorType::get({}, b.getI32Type());
  Value rank = RankOp::create(b, loc, scalar, over, b.getI64IntegerAttr(ranks));
  Value before = build::scale(b, loc, rank, static_cast<double>(blocks));
  Value number = IotaOp::create(b, loc, own, b.getI64ArrayAttr({blocks}), b.getI64IntegerAttr(0),
                                TypeAttr(), UnitAttr());
  return AddOp::create(b, loc, number, build::broadcast(b, loc, before, {blocks}));
}

Value UnitScales::ofElements(OpBuilder &b, Location loc, ArrayRef<Value> scales,
                             ArrayRef<int64_t> blocks) const {
  if (scales.size() == 1)
    return scales.front();
  const int64_t count = blocks[0], size = blocks[1];
  Value number = numbers(b, loc, count);
  Value own = build::broadcast(b, loc, scales.front(), {count});
  for (auto [start, scale] : llvm::drop_begin(llvm::zip_equal(starts, scales))) {
    Value first = build::constant(b, loc, number.getType(), static_cast<double>(start / size));
    Value reached = CompareOp::create(b, loc, number, first, Predicate::ge);
    own = SelectOp::create(b, loc, reached, build::broadcast(b, loc, scale, {count}), own);
  }
  return build::broadcast(b, loc, build::reshape(b, loc, own, {count, 1}), {count, size});
}

Value UnitScales::largestOfEach(OpBuilder &b, Location loc, Value blocks) const {
  const int64_t count = build::shapeOf(blocks)[0], size = build::shapeOf(blocks)[1];
  const auto weights = static_cast<int64_t>(starts.size());
  Value largest = MaxOp::create(b, loc, blocks, NegOp::create(b, loc, blocks));
  largest = build::largest(b, loc, largest, {1});
  if (weights == 1)
    return build::reshape(b, loc, build::largest(b, loc, largest, {0}), {1});
  // Of which weight each block is, against the number of a weight: all of them in one pass.
  Value number = numbers(b, loc, count);
  Value zero = build::constant(b, loc, number.getType(), 0.0);
  Value one = build::constant(b, loc, number.getType(), 1.0);
  Value weight = zero;
  for (int64_t start : llvm::drop_begin(starts)) {
    Value first = build::constant(b, loc, number.getType(), static_cast<double>(start / size));
    Value reached = CompareOp::create(b, loc, number, first, Predicate::ge);
    weight = AddOp::create(b, loc, weight, SelectOp::create(b, loc, reached, one, zero));
  }
  const SmallVector<int64_t> all{weights, count};
  Value each =
      IotaOp::create(b, loc, RankedTensorType::get(all, b.getI32Type()), b.getI64ArrayAttr(all),
                     b.getI64IntegerAttr(0), TypeAttr(), UnitAttr());
  Value own = CompareOp::create(b, loc, build::broadcast(b, loc, weight, all), each, Predicate::eq);
  Value spread = build::broadcast(b, loc, largest, all);
  Value nothing = build::constant(b, loc, spread.getType(), 0.0);
  return build::largest(b, loc, SelectOp::create(b, loc, own, spread, nothing), {1});
}

Value UnitScales::overRanks(OpBuilder &b, Location loc, Value largest) const {
  if (ranks == 1)
    return largest;
  const int64_t weights = build::shapeOf(largest)[0];
  Value all = AllGatherOp::create(b, loc, build::reshape(b, loc, largest, {1, weights}),
                                  b.getI64IntegerAttr(0), over, b.getI64IntegerAttr(ranks),
                                  b.getI64IntegerAttr(0));
  return build::largest(b, loc, all, {0});
}

/// The number [] that a broadcast repeats.
static Value repeated(Value v) {
  while (!build::shapeOf(v).empty()) {
    Operation *op = v.getDefiningOp();
    if (!isa_and_present<BroadcastOp, ReshapeOp>(op))
      return {};
    v = op->getOperand(0);
  }
  return v;
}

UnitScales::Parts UnitScales::partsOf(Value ofElements) {
  if (build::shapeOf(ofElements).empty())
    return {{0, ofElements}};
  if (build::typeOf(ofElements).getRank() != 2)
    return {};
  const int64_t block = build::shapeOf(ofElements)[1];
  Value own = ofElements;
  while (isa_and_present<BroadcastOp, ReshapeOp>(own.getDefiningOp()))
    own = own.getDefiningOp()->getOperand(0);
  Parts parts;
  while (auto select = own.getDefiningOp<SelectOp>()) {
    auto reached = select.getC().getDefiningOp<CompareOp>();
    const std::optional<double> first = reached && reached.getPredicate() == Predicate::ge
                                            ? build::constantValue(reached.getB())
                                            : std::nullopt;
    Value scale = repeated(select.getA());
    if (!first || !scale)
      return {};
    parts.emplace_back(static_cast<int64_t>(*first) * block, scale);
    own = select.getB();
  }
  Value scale = repeated(own);
  if (parts.empty() || !scale)
    return {};
  parts.emplace_back(0, scale);
  return Parts(llvm::reverse(parts));
}

} // namespace hydra
