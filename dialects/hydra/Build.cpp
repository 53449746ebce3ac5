// Short forms for building operations of the dialect.
#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra::build {

Value constant(OpBuilder &b, Location loc, Type type, double value) {
  return ConstantOp::create(b, loc, llvm::cast<RankedTensorType>(type), value);
}

Value scale(OpBuilder &b, Location loc, Value x, double value) {
  return MulOp::create(b, loc, x, constant(b, loc, x.getType(), value));
}

Value reshape(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return ReshapeOp::create(b, loc, x, b.getI64ArrayAttr(shape));
}

Value behindReshapes(Value v) {
  while (auto reshape = v.getDefiningOp<ReshapeOp>())
    v = reshape.getX();
  return v;
}

Value broadcast(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return BroadcastOp::create(b, loc, x, b.getI64ArrayAttr(shape));
}

Value cast(OpBuilder &b, Location loc, Value x, Type element) {
  if (typeOf(x).getElementType() == element)
    return x;
  return CastOp::create(b, loc, x, TypeAttr::get(element));
}

Value sum(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> axes) {
  return SumOp::create(b, loc, x, b.getI64ArrayAttr(axes), UnitAttr());
}

Value largest(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> axes) {
  return ReduceMaxOp::create(b, loc, x, b.getI64ArrayAttr(axes), UnitAttr());
}

Value slice(OpBuilder &b, Location loc, Value x, int64_t axis, int64_t start, int64_t size) {
  return SliceOp::create(b, loc, x, b.getI64IntegerAttr(axis), b.getI64IntegerAttr(start),
                         b.getI64IntegerAttr(size));
}

Value partOf(OpBuilder &b, Location loc, Value x, int64_t axis, int64_t start, int64_t size) {
  return size == shapeOf(x)[axis] ? x : slice(b, loc, x, axis, start, size);
}

Value concat(OpBuilder &b, Location loc, ArrayRef<Value> parts, int64_t axis) {
  return parts.size() == 1 ? parts.front()
                           : ConcatOp::create(b, loc, parts, b.getI64IntegerAttr(axis)).getResult();
}

Value sumTo(OpBuilder &b, Location loc, Value g, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = shapeOf(g);
  size_t missing = from.size() - shape.size();
  SmallVector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i)
    if (i < missing || (shape[i - missing] == 1 && from[i] != 1))
      axes.push_back(i);
  if (!axes.empty())
    g = sum(b, loc, g, axes);
  return reshape(b, loc, g, shape);
}

Value flattenRows(OpBuilder &b, Location loc, Value x) {
  ArrayRef<int64_t> shape = shapeOf(x);
  return reshape(b, loc, x, {RefTensor::elements(shape.drop_back()), shape.back()});
}

EntryOp loopBody(EntryOp before, StringRef stem, Location loc, ScanAttr scan,
                 ArrayRef<RankedTensorType> types) {
  OpBuilder b(before);
  auto model = before->getParentOfType<ModelOp>();
  std::string name;
  for (unsigned number = 0; name.empty() || model.lookupSymbol(name); ++number)
    name = (stem + "_" + Twine(number)).str();
  auto entry =
      EntryOp::create(b, loc, b.getStringAttr(name), b.getArrayAttr({}), b.getArrayAttr({}),
                      b.getArrayAttr({}), b.getArrayAttr({}), b.getArrayAttr({}),
                      ProgramStageAttr(), ProgramRoleAttr(), DenseI64ArrayAttr(), scan, RowsAttr());
  entry.getBody().emplaceBlock();
  const size_t over = scan.getOver().size(), carried = scan.getCarried();
  for (auto [i, type] : llvm::enumerate(types)) {
    auto [kind, number] = i < over             ? std::pair("chunk", i)
                          : i < over + carried ? std::pair("carried", i - over)
                                               : std::pair("kept", i - over - carried);
    entry.addArgument((kind + Twine(number)).str(), type, loc);
  }
  return entry;
}

void endLoopBody(EntryOp body, ValueRange results) {
  OpBuilder b = OpBuilder::atBlockEnd(&body.getBody().front());
  SmallVector<Attribute> names;
  const size_t stacked = body.getScan()->getStacked().size();
  for (size_t i = 0; i < results.size(); ++i)
    names.push_back(
        b.getStringAttr(i < stacked ? "joined" + Twine(i) : "carried" + Twine(i - stacked)));
  ReturnOp::create(b, body.getLoc(), results, b.getArrayAttr(names), b.getArrayAttr({}),
                   ArrayAttr(), ArrayAttr());
}

Value onFirstRank(OpBuilder &b, Location loc, StringAttr over, int64_t ranks, Value value,
                  Value other) {
  auto scalar = RankedTensorType::get({}, b.getI32Type());
  Value rank = RankOp::create(b, loc, scalar, over, b.getI64IntegerAttr(ranks));
  Value first = CompareOp::create(b, loc, rank, constant(b, loc, scalar, 0.0), Predicate::eq);
  return SelectOp::create(b, loc, broadcast(b, loc, first, shapeOf(value)), value, other);
}

std::optional<double> constantValue(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (auto c = dyn_cast<ConstantOp>(op))
      return c.getValue();
    if (!isa<BroadcastOp, ReshapeOp>(op))
      break;
    v = op->getOperand(0);
  }
  return std::nullopt;
}

} // namespace hydra::build
