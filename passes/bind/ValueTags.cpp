// What the values of a model's text are: part of hydra-bind.
#include "passes/bind/ValueTags.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

OpClass classOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.costClass() : OpClass::other;
}

Category categoryOf(StateOp state) {
  switch (state.getRole()) {
  case VariableRole::parameter:
    return Category::param;
  case VariableRole::moment:
  case VariableRole::update_count:
  case VariableRole::loss_scaling:
  case VariableRole::average:
  case VariableRole::amax_history:
    return Category::opt_state;
  case VariableRole::gradient:
  case VariableRole::gradient_part:
    return Category::grad;
  case VariableRole::copy:
    return state.followsParameter() ? Category::param : Category::act_state;
  case VariableRole::derived:
  case VariableRole::scale:
  case VariableRole::rest:
    return state.followsParameter() ? Category::param : Category::opt_state;
  case VariableRole::state:
  case VariableRole::step_sum:
  case VariableRole::cache:
    return Category::act_state;
  }
  llvm_unreachable("role of a variable");
}

std::optional<Category> ownCategory(Operation *op) {
  if (auto use = dyn_cast<UseOp>(op)) {
    auto state = dyn_cast_or_null<StateOp>(use.lookup());
    return state ? categoryOf(state) : Category::param;
  }
  if (isa<EmbeddingOp>(op))
    return Category::act_embed;
  if (isa<ConstantOp, IotaOp>(op))
    return Category::other;
  if (isa<CastOp>(op))
    return std::nullopt;
  switch (classOf(op)) {
  case OpClass::norm:
    return Category::act_norm;
  case OpClass::attention:
    return Category::act_attn_out;
  case OpClass::softmax:
    return Category::act_softmax;
  case OpClass::loss:
    return Category::logits;
  case OpClass::scan:
    return Category::act_state;
  case OpClass::collective:
    return Category::comm;
  case OpClass::optimizer:
    return Category::workspace;
  case OpClass::copy_cast:
    return std::nullopt;
  case OpClass::gemm:
  case OpClass::elementwise:
  case OpClass::reduce:
  case OpClass::gather_scatter:
  case OpClass::fft:
  case OpClass::transfer:
  case OpClass::other:
    return Category::act_ffn;
  }
  llvm_unreachable("all classes are above");
}

static void tag(Operation *op, Category category) {
  op->setLoc(withCategory(op->getLoc(), category));
}

static bool isVariable(Value v) { return v.getDefiningOp<UseOp>() != nullptr; }
static bool onlyMoves(Operation *op) {
  return classOf(op) == OpClass::copy_cast || isa<CastOp>(op);
}

/// The operation that makes a value which is no variable's; null where there is none.
static Operation *makerOf(Value v) { return isVariable(v) ? nullptr : v.getDefiningOp(); }

void tagMade(Value value, Category category) {
  Operation *op = makerOf(value);
  for (; op && onlyMoves(op) && op->getNumOperands() > 0; op = makerOf(op->getOperand(0)))
    tag(op, category);
  if (op)
    tag(op, category);
}

/// Queries and keys are also what rotates them.
static void tagRead(Value value) {
  tagMade(value, Category::act_attn);
  Operation *op = makerOf(value);
  while (op && (onlyMoves(op) || isa<RopeOp>(op)) && op->getNumOperands() > 0) {
    if (isa<RopeOp>(op))
      tagMade(op->getOperand(0), Category::act_attn);
    op = makerOf(op->getOperand(0));
  }
}

/// The matmul of two computed values from which a softmax's operand comes, through what is done to
/// each of its elements; null where there is none.
static MatmulOp scoresOf(Value v, SmallVectorImpl<Operation *> &between) {
  for (Operation *op = makerOf(v); op; op = makerOf(v)) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return makerOf(matmul.getA()) && makerOf(matmul.getB()) ? matmul : MatmulOp();
    const bool each = op->hasTrait<Elementwise>() || isa<SelectOp>(op) || onlyMoves(op);
    if (!each || op->getNumOperands() == 0)
      return {};
    between.push_back(op);
    // The operand from which the elements come, not the one that masks or scales them.
    auto large = [&](Value x) {
      return makerOf(x) && !isa<ConstantOp, IotaOp, CompareOp, BroadcastOp>(makerOf(x)) &&
             isa<FloatType>(build::typeOf(x).getElementType());
    };
    auto found = llvm::find_if(op->getOperands(), large);
    if (found == op->getOperands().end())
      return {};
    v = *found;
  }
  return {};
}

/// Attention that is written out: scores, weights, and what they are multiplied by.
static void tagAttention(Operation *softmax) {
  SmallVector<Operation *> between;
  MatmulOp scores = scoresOf(softmax->getOperand(0), between);
  if (!scores)
    return;
  between.push_back(scores);
  for (Operation *op : between)
    tag(op, Category::act_attn_scores);
  tagRead(scores.getA());
  tagRead(scores.getB());
  SmallVector<Operation *> readers(softmax->getUsers());
  for (size_t i = 0; i < readers.size(); ++i) {
    Operation *reader = readers[i];
    if (auto matmul = dyn_cast<MatmulOp>(reader)) {
      tag(matmul, Category::act_attn_out);
      tagRead(matmul.getB());
    } else if (onlyMoves(reader)) {
      tag(reader, Category::act_softmax);
      llvm::append_range(readers, reader->getUsers());
    }
  }
}

/// The variable that an operation reads, by its name in the text; empty if it reads none.
static StringRef variableOf(Operation *op) {
  if (auto use = dyn_cast<UseOp>(op))
    return use.getVariable();
  for (Value operand : op->getOperands())
    if (auto use = operand.getDefiningOp<UseOp>())
      return use.getVariable();
  return {};
}

/// By the operation, or by what it moves.
static void tagByOperation(Operation *op, DenseSet<Operation *> &loss) {
  std::optional<Category> category = ownCategory(op);
  for (Operation *from = op; !category && from;) {
    from = from->getNumOperands() > 0 ? from->getOperand(0).getDefiningOp() : nullptr;
    if (ScopeAttr scope = from ? scopeOf(from->getLoc()) : ScopeAttr();
        scope && scope.getCategory())
      category = scope.getCategory();
  }
  Location loc = withCategory(op->getLoc(), category.value_or(Category::act_ffn));
  loc = withPath(loc, joinPaths(pathOf(loc), variableOf(op)));
  auto isLoss = [&](Value v) { return loss.contains(v.getDefiningOp()); };
  if (classOf(op) == OpClass::loss || llvm::any_of(op->getOperands(), isLoss)) {
    loss.insert(op);
    loc = withCategory(withPhase(loc, Phase::loss), Category::logits);
  }
  op->setLoc(loc);
}

/// By what reads the value.
static void tagByUse(Operation *op) {
  const OpClass kind = classOf(op);
  if (kind == OpClass::attention)
    for (Value read : op->getOperands().take_front(3)) // queries, keys, values
      tagRead(read);
  else if (kind == OpClass::softmax)
    tagAttention(op);
  else if (isa<CrossEntropyOp>(op))
    tagMade(op->getOperand(0), Category::logits);
}

/// By what the entry returns it as.
static void tagReturned(EntryOp entry) {
  ReturnOp end = entry.getReturn();
  if (std::optional<ScanAttr> scan = entry.getScan())
    for (Value carried : end.getOutputs().drop_front(scan->getStacked().size()))
      tagMade(carried, Category::act_state);
  const ProgramRole role = entry.programRole();
  if (role == ProgramRole::generate || role == ProgramRole::decode)
    for (Value scores : end.getOutputs())
      tagMade(scores, Category::logits);
}

void tagValues(EntryOp entry) {
  SmallVector<Operation *> ops; // in the order of the text, those around others first
  entry.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumResults() > 0)
      ops.push_back(op);
  });
  DenseSet<Operation *> loss;
  for (Operation *op : ops)
    tagByOperation(op, loss);
  for (Operation *op : ops)
    tagByUse(op);
  tagReturned(entry);
}

} // namespace hydra
