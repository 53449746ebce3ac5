// The operators of arithmetic.
#include "dialects/hydra/ArithmeticWords.h"

using namespace mlir;

namespace hydra {

static ArrayRef<Operator> operatorTable() {
  static const Operator table[] = {{"+", 2, AddOp::getOperationName(), ""},
                                   {"-", 2, SubOp::getOperationName(), ""},
                                   {"*", 2, MulOp::getOperationName(), ""},
                                   {"/", 2, DivOp::getOperationName(), ""},
                                   {"-", 1, NegOp::getOperationName(), ""},
                                   {"==", 2, CompareOp::getOperationName(), "eq"},
                                   {"<", 2, CompareOp::getOperationName(), "lt"},
                                   {"<=", 2, CompareOp::getOperationName(), "le"},
                                   {">", 2, CompareOp::getOperationName(), "gt"},
                                   {">=", 2, CompareOp::getOperationName(), "ge"}};
  return table;
}

const Operator *operatorOf(StringRef head, size_t operands) {
  const Operator *found = llvm::find_if(
      operatorTable(), [&](const Operator &o) { return o.head == head && o.operands == operands; });
  return found == operatorTable().end() ? nullptr : found;
}

const Operator *operatorOf(Operation *op) {
  auto predicate = op->getAttrOfType<StringAttr>("is");
  const Operator *found = llvm::find_if(operatorTable(), [&](const Operator &o) {
    return o.operation == op->getName().getStringRef() && o.operands == op->getNumOperands() &&
           (o.predicate.empty() || (predicate && predicate.getValue() == o.predicate));
  });
  return found == operatorTable().end() ? nullptr : found;
}

bool isFunction(OperationName name) {
  return name.hasInterface<InferTypeOpInterface>() || name.getTypeID() == TypeID::get<FieldOp>() ||
         (name.hasInterface<LeafOpInterface>() && name.getTypeID() != TypeID::get<UseOp>());
}

ConstantOp plainNumber(Operation *op) {
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  return constant && !constant.getShapeAttr() && !constant.getDtypeAttr() ? constant : ConstantOp();
}

} // namespace hydra
