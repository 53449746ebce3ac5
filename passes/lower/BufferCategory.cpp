// What the bytes of buffers are for.
#include "passes/lower/BufferCategory.h"

#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

plan::Category categoryOf(StateOp state) {
  using plan::Category;
  switch (state.getRole()) {
  case VariableRole::parameter:
    return Category::param;
  case VariableRole::moment:
  case VariableRole::update_count:
  case VariableRole::loss_scaling:
    return Category::opt_state;
  case VariableRole::gradient:
    return Category::grad;
  case VariableRole::copy:
    return state.isCopyOfParameter() ? Category::param : Category::act_state;
  case VariableRole::state:
  case VariableRole::step_sum:
  case VariableRole::cache:
    return Category::act_state;
  }
  llvm_unreachable("role of a variable");
}

OpClass classOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.costClass() : OpClass::other;
}

/// Whether attention reads the value, or a view of it.
static bool feedsAttention(Value v) {
  return llvm::any_of(v.getUsers(), [](Operation *user) {
    return user->hasAttr(kViewAttr)
               ? llvm::any_of(user->getResults(), [](Value w) { return feedsAttention(w); })
               : classOf(user) == OpClass::attention;
  });
}

plan::Category categoryOf(Value v) {
  using plan::Category;
  for (OpOperand &use : v.getUses())
    if (auto end = dyn_cast<ReturnOp>(use.getOwner()))
      if (use.getOperandNumber() < end.getOutputNames().size()) {
        StringRef name = cast<StringAttr>(end.getOutputNames()[use.getOperandNumber()]);
        return end.gradientOf(use.getOperandNumber()) ? Category::grad
               : name == "logits"                     ? Category::logits
                                                      : Category::other;
      }
  if (classOf(v.getDefiningOp()) == OpClass::collective)
    return Category::comm;
  ScopeAttr scope = scopeOf(v.getLoc());
  if (scope && scope.getPhase() != Phase::forward)
    return scope.getPhase() == Phase::backward ? Category::grad : Category::opt_state;
  if (feedsAttention(v))
    return Category::act_attn;
  switch (classOf(v.getDefiningOp())) {
  case OpClass::norm:
    return Category::act_norm;
  case OpClass::attention:
    return Category::act_attn_out;
  case OpClass::softmax:
    return Category::act_softmax;
  case OpClass::gather_scatter:
    return Category::act_embed;
  case OpClass::loss:
    return Category::logits;
  case OpClass::gemm:
  case OpClass::elementwise:
  case OpClass::copy_cast:
  case OpClass::reduce:
  case OpClass::scan:
  case OpClass::optimizer:
  case OpClass::collective:
  case OpClass::other:
    return Category::act_ffn;
  }
  llvm_unreachable("all classes are above");
}

} // namespace hydra
