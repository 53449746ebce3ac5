// What a program that reads on says of the next token.
#include "passes/cache/NextToken.h"

#include "dialects/hydra/Build.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

/// What it makes says so, for reports.
static constexpr StringLiteral kPass = "hydra-cache";

/// The last of the call's tokens alone, as early as it is computed alone.
static Value lastToken(OpBuilder &b, Value v, int64_t tokens) {
  constexpr int64_t kTokens = 1;
  if (tokens == 1)
    return v;
  Operation *op = v.getDefiningOp();
  SmallVector<int64_t> shape(build::shapeOf(v));
  shape[kTokens] = 1;
  const RankedTensorType type = build::typeOf(v).clone(shape);
  const bool alone = op && v.hasOneUse() && op->getNumResults() == 1;
  if (alone && (isa<LinearOp>(op) || op->hasTrait<Elementwise>())) {
    IRMapping mapping;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (i > 0 && isa<LinearOp>(op))
        break;
      if (std::optional<double> value = build::constantValue(operand))
        mapping.map(operand,
                    build::constant(b, op->getLoc(), build::typeOf(operand).clone(shape), *value));
      else
        mapping.map(operand, lastToken(b, operand, tokens));
    }
    Operation *fresh = b.clone(*op, mapping);
    fresh->getResult(0).setType(type);
    return fresh->getResult(0);
  }
  return SliceOp::create(b, madeBy(kPass, v.getLoc()), v, b.getI64IntegerAttr(kTokens),
                         b.getI64IntegerAttr(tokens - 1), b.getI64IntegerAttr(1));
}

/// The id with the highest score, and that score.
static void addBest(ReturnOp end) {
  constexpr int64_t kExact = 1 << 24; // whole numbers below it, in f32
  constexpr int64_t kClasses = 2;     // the dimension
  OpBuilder b(end);
  const Location loc = madeBy(kPass, end.getLoc());
  Value scores = build::cast(b, loc, end.getOutputs()[0], b.getF32Type());
  SmallVector<int64_t> shape(build::shapeOf(scores));
  const int64_t batch = shape[0], classes = shape[kClasses];
  if (classes >= kExact)
    return;
  auto largest = [&](Value x) {
    return ReduceMaxOp::create(b, loc, x, b.getI64ArrayAttr({kClasses}), b.getUnitAttr())
        .getResult();
  };
  auto number = [&](Value like, double value) {
    return build::constant(b, loc, like.getType(), value);
  };
  Value top = largest(scores);
  Value isTop = CompareOp::create(b, loc, scores, build::broadcast(b, loc, top, shape),
                                  b.getStringAttr("eq"));
  Value id =
      IotaOp::create(b, loc, build::typeOf(scores), b.getI64ArrayAttr(shape),
                     b.getI64IntegerAttr(kClasses), TypeAttr::get(b.getF32Type()), UnitAttr());
  // The first id is that with the most ids from it on.
  Value left = SubOp::create(b, loc, number(id, static_cast<double>(classes)), id);
  Value most = largest(SelectOp::create(b, loc, isTop, left, number(left, 0.0)));
  Value best = SubOp::create(b, loc, number(most, static_cast<double>(classes)), most);
  SmallVector<Value> values(end.getOutputs());
  SmallVector<Attribute> names(end.getOutputNames().begin(), end.getOutputNames().end());
  for (auto [name, value] : {std::pair(kBestResult, best), std::pair(kTopResult, top)}) {
    names.push_back(b.getStringAttr(name));
    values.push_back(build::reshape(b, loc, value, {batch}));
  }
  end.getValuesMutable().assign(values);
  end.setOutputNamesAttr(b.getArrayAttr(names));
}

void returnNextToken(EntryOp entry) {
  ReturnOp end = entry.getReturn();
  OpBuilder b(end);
  const int64_t tokens = build::shapeOf(entry.getBody().getArgument(0))[1];
  end.getValuesMutable().assign({lastToken(b, end.getOutputs()[0], tokens)});
  addBest(end);
}

} // namespace hydra
