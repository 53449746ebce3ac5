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

LogicalResult returnNextToken(EntryOp entry, SequenceCache &cache, unsigned number) {
  ReturnOp end = entry.getReturn();
  OpBuilder b(end);
  const Location loc = madeBy(kPass, end.getLoc());
  Value tokens = entry.getBody().getArgument(0);
  Value scores = lastToken(b, end.getOutputs()[0], cache.tokens());
  cache.startAt(end, number, /*sequences=*/0);
  const int64_t batch = cache.batch(), ids = build::shapeOf(scores)[2];
  auto argument = [&](StringRef name, int64_t columns, Type element) -> Value {
    return entry.addArgument(name, RankedTensorType::get({batch, columns}, element), loc,
                             b.getUnitAttr());
  };
  Value settings = argument(kSettingsArgument, SampleOp::kSettings, b.getF32Type());
  Value draw = argument(kDrawArgument, SampleOp::kDraw, b.getI32Type());
  const int64_t words = (ids + 31) / 32;
  FailureOr<Value> seen = cache.kept("seen", RankedTensorType::get({batch, words}, b.getI32Type()));
  if (failed(seen))
    return failure();
  Value exact = build::cast(b, loc, scores, b.getF32Type());
  auto sample = SampleOp::create(b, loc, build::reshape(b, loc, exact, {batch, ids}), tokens, *seen,
                                 cache.position(), settings, draw);
  cache.replace("seen", sample.getNewSeen());
  end.getValuesMutable().assign({scores, sample.getToken()});
  end.setOutputNamesAttr(b.getArrayAttr({end.getOutputNames()[0], b.getStringAttr(kTokenResult)}));
  return success();
}

} // namespace hydra
