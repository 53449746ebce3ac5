// hydra-quantize-parts: what is joined to be rounded to 8 bits is rounded before it is joined.
#include "dialects/hydra/Build.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_QUANTIZEPARTS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-quantize-parts";

/// Whether each element of the result is made of the elements at its place alone, wherever that is.
bool isByElements(Operation *op) {
  return op && op->hasTrait<Elementwise>() && op->getNumResults() == 1 &&
         !isa<RandomOp, DropoutOp>(op);
}

/// A value that is joined of parts, and what comes of it element by element.
class Joined {
public:
  explicit Joined(ConcatOp concat) : concat(concat) {
    parts[concat.getResult()].assign(concat.getParts().begin(), concat.getParts().end());
  }

  /// Operations that reduce the value to bytes or to its largest numbers, in the end, and can take
  /// its parts.
  SmallVector<Operation *> findEnds() {
    SmallVector<Operation *> ends;
    llvm::SetVector<Value> values;
    values.insert(concat.getResult());
    for (size_t i = 0; i < values.size(); ++i)
      for (Operation *user : values[i].getUsers()) {
        if (isEnd(user) && split(user->getOperand(0)))
          ends.push_back(user);
        else if (isByElements(user))
          values.insert(user->getResult(0));
      }
    return ends;
  }

  /// Has the parts quantized, and joins their bytes; or the largest of their largest numbers found.
  void replace(Operation *end) {
    OpBuilder b(end);
    const Location loc = madeBy(kPass, end->getLoc());
    const SmallVector<Value> results = llvm::map_to_vector(
        parts.lookup(end->getOperand(0)), [&](Value part) { return ofPart(b, loc, end, part); });
    Value all = results.front();
    if (isa<QuantizeOp>(end))
      all = build::concat(b, loc, results, axis());
    else
      for (Value other : ArrayRef(results).drop_front())
        all = MaxOp::create(b, loc, all, other);
    end->getResult(0).replaceAllUsesWith(all);
    end->erase();
  }

private:
  int64_t axis() { return concat.getAxis(); }

  /// Of a scale for all that is known before the parts are joined; of a maximum along the axis of
  /// the parts.
  bool isEnd(Operation *op) {
    if (auto quantize = dyn_cast<QuantizeOp>(op)) {
      Operation *scale = quantize.getScale().getDefiningOp();
      return build::shapeOf(quantize.getScale()).empty() &&
             (!scale || scale->isBeforeInBlock(concat));
    }
    auto largest = dyn_cast<ReduceMaxOp>(op);
    const int64_t fromEnd = axis() - build::typeOf(concat.getResult()).getRank();
    return largest && llvm::any_of(largest.getAxes(), [&](int64_t reduced) {
             return reduced == axis() || reduced == fromEnd;
           });
  }

  /// Makes the parts of a value; false where it is made of more than the joined one and constants.
  bool split(Value value) {
    if (parts.count(value))
      return true;
    Operation *op = value.getDefiningOp();
    if (!isByElements(op) || !llvm::all_of(op->getOperands(), [&](Value operand) {
          return build::constantValue(operand) || split(operand);
        }))
      return false;
    OpBuilder b(op);
    const Location loc = madeBy(kPass, op->getLoc());
    SmallVector<Value> made;
    for (auto [i, first] : llvm::enumerate(concat.getParts())) {
      const ArrayRef<int64_t> shape = build::shapeOf(first);
      IRMapping mapping;
      for (Value operand : op->getOperands())
        mapping.map(operand, parts.count(operand)
                                 ? parts.lookup(operand)[i]
                                 : build::constant(b, loc, build::typeOf(operand).clone(shape),
                                                   *build::constantValue(operand)));
      Operation *copy = b.clone(*op, mapping);
      copy->setLoc(loc);
      copy->getResult(0).setType(build::typeOf(value).clone(shape));
      made.push_back(copy->getResult(0));
    }
    parts[value] = std::move(made);
    return true;
  }

  static Value ofPart(OpBuilder &b, Location loc, Operation *end, Value part) {
    if (auto quantize = dyn_cast<QuantizeOp>(end))
      return QuantizeOp::create(b, loc, part, quantize.getScale(), quantize.getFormat(),
                                quantize.getAgain());
    auto largest = cast<ReduceMaxOp>(end);
    return ReduceMaxOp::create(b, loc, part, largest.getAxesAttr(), largest.getKeepAttr());
  }

  ConcatOp concat;
  DenseMap<Value, SmallVector<Value>> parts;
};

struct QuantizeParts : impl::QuantizePartsBase<QuantizeParts> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      Block &block = entry.getBody().front();
      for (ConcatOp concat : llvm::to_vector(block.getOps<ConcatOp>()))
        if (llvm::all_of(concat.getParts(), [](Value part) {
              return isByElements(part.getDefiningOp()) && !castParameterOf(part);
            }))
          split(concat);
      eraseDead(block);
    }
  }

private:
  void split(ConcatOp concat) {
    Joined joined(concat);
    const SmallVector<Operation *> ends = joined.findEnds();
    for (Operation *end : ends)
      joined.replace(end);
    values += !ends.empty();
  }
};

} // namespace
} // namespace hydra
