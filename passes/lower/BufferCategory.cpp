// What the bytes of buffers are for.
#include "passes/lower/BufferCategory.h"

using namespace mlir;

namespace hydra {

Value madeInside(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return {};
  if (auto group = dyn_cast<FusedOp>(result.getOwner()))
    return group.getBlock().getTerminator()->getOperand(result.getResultNumber());
  if (auto loop = dyn_cast<LoopOp>(result.getOwner()))
    return loop.getEntry().getReturn().getOutputs()[result.getResultNumber()];
  return {};
}

Category categoryOf(Value v) {
  while (auto result = dyn_cast<OpResult>(v)) {
    if (Value inner = madeInside(result)) {
      v = inner;
      continue;
    }
    if (classOf(result.getOwner()) == OpClass::collective)
      return Category::comm; // whatever ranks exchange
    ScopeAttr scope = scopeOf(v.getLoc());
    if (scope && scope.getCategory())
      return *scope.getCategory();
    if (std::optional<Category> own = ownCategory(result.getOwner()))
      return *own;
    if (result.getOwner()->getNumOperands() == 0)
      return Category::other;
    v = result.getOwner()->getOperand(0); // which is moved
  }
  return Category::act_state; // what a loop is given
}

} // namespace hydra
