// Operands of elementwise operations get their common type and shape.
#include "passes/bind/Elementwise.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

LogicalResult elementwise::typeNumbers(Operation *op) {
  auto number = [](Value v) {
    auto constant = v.getDefiningOp<ConstantOp>();
    return constant && !constant.getShapeAttr() && !constant.getDtypeAttr() ? constant
                                                                            : ConstantOp();
  };
  Type wanted;
  for (Value v : op->getOperands())
    if (Type element = build::typeOf(v).getElementType();
        !wanted && !element.isInteger(1) && !number(v))
      wanted = element;
  if (!wanted || wanted.isF32())
    return success();
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands()) {
    ConstantOp constant = number(operand.get());
    if (!constant)
      continue;
    if (!isNumberOf(wanted, constant.getValue()))
      return constant.emitOpError() << "has the value " << numberText(constant.getValue())
                                    << ", which is no number of " << wanted;
    operand.set(build::constant(b, constant.getLoc(), RankedTensorType::get({}, wanted),
                                constant.getValue()));
  }
  return success();
}

FailureOr<unsigned> elementwise::broadcastOperands(Operation *op) {
  SmallVector<int64_t> shape;
  for (Value v : op->getOperands()) {
    ArrayRef<int64_t> own = build::shapeOf(v);
    if (own.size() > shape.size())
      shape.insert(shape.begin(), own.size() - shape.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t &d = shape[shape.size() - own.size() + i];
      if (d != 1 && own[i] != 1 && d != own[i])
        return op->emitOpError() << "operands have the shapes "
                                 << shapeText(build::shapeOf(op->getOperand(0))) << " and "
                                 << shapeText(own) << ", which do not broadcast";
      d = std::max(d, own[i]);
    }
  }
  if (std::string problem = checkShape(shape); !problem.empty())
    return op->emitOpError() << "common shape " << problem;
  unsigned broadcasts = 0;
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands())
    if (build::shapeOf(operand.get()) != ArrayRef<int64_t>(shape)) {
      operand.set(build::broadcast(b, op->getLoc(), operand.get(), shape));
      ++broadcasts;
    }
  return broadcasts;
}

} // namespace hydra
