// Last uses in a program, through views.
#include "passes/lower/Liveness.h"

using namespace mlir;

namespace hydra {

/// Whether a value is all elements of another in the same order.
static bool isReshaped(Value value, Value root) {
  while (value != root) {
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape)
      return false;
    value = reshape.getX();
  }
  return true;
}

ProgramLiveness::ProgramLiveness(EntryOp entry) {
  for (auto [i, op] : llvm::enumerate(entry.getBody().front())) {
    position[&op] = i;
    if (auto use = dyn_cast<UseOp>(op))
      variableValues[use.getVariableAttr().getAttr()].push_back(use.getResult());
    if (op.hasAttr(kViewAttr) || op.hasAttr(kAdjacentAttr))
      continue; // reads nothing itself
    for (OpOperand &operand : op.getOpOperands()) {
      Value root = layoutOf(operand.get()).root;
      if (isa<ReturnOp>(op) && isa<BlockArgument>(root) && !entry.isProgram() &&
          operand.getOperandNumber() < entry.getScan()->getStacked().size())
        continue; // joined before anything else happens
      uses[root].push_back({&op, operand.getOperandNumber(), !isReshaped(operand.get(), root)});
      if (Operation *concat = root.getDefiningOp(); concat && concat->hasAttr(kAdjacentAttr))
        for (Value part : concat->getOperands())
          uses[part].push_back({&op, operand.getOperandNumber(), /*view=*/true});
    }
  }
}

bool ProgramLiveness::isLastUse(Value root, Operation *op, unsigned number,
                                function_ref<bool(const Use &)> spares) const {
  auto it = uses.find(root);
  if (it == uses.end())
    return false;
  int64_t here = position.lookup(op);
  return llvm::all_of(it->second, [&](const Use &use) {
    return position.lookup(use.op) < here || (use.op == op && use.operand == number) || spares(use);
  });
}

bool ProgramLiveness::diesAt(Value operand, Operation *op, unsigned number) const {
  return isLastUse(layoutOf(operand).root, op, number, [](const Use &) { return false; });
}

bool ProgramLiveness::partDiesAt(Value operand, Operation *op, unsigned number) const {
  return isLastUse(layoutOf(operand).root, op, number, [&](const Use &use) {
    return areApart(operand, use.op->getOperand(use.operand));
  });
}

int64_t ProgramLiveness::lastUse(Value root) const {
  int64_t last = -1;
  if (auto it = uses.find(root); it != uses.end())
    for (const Use &use : it->second)
      last = std::max(last, position.lookup(use.op));
  return last;
}

bool ProgramLiveness::livesAsLong(Value value, Value other) const {
  return lastUse(layoutOf(value).root) >= lastUse(layoutOf(other).root);
}

bool ProgramLiveness::canOverwriteVariable(StringAttr variable, OpResult result) const {
  auto values = variableValues.find(variable);
  return values == variableValues.end() || // never read
         llvm::all_of(values->second, [&](Value value) { return canOverwrite(value, result); });
}

void ProgramLiveness::join(Value part, Value whole) {
  const auto joinedWith = [&](Value value) {
    auto it = joined.find(value);
    return it == joined.end() ? SmallVector<Value, 4>{value} : it->second;
  };
  SmallVector<Value, 4> all = joinedWith(part), others = joinedWith(whole);
  if (llvm::is_contained(others, part))
    return;
  const auto addUses = [&](ArrayRef<Value> to, ArrayRef<Use> from) {
    for (Value value : to)
      for (Use use : from)
        uses[value].push_back({use.op, use.operand, /*view=*/true});
  };
  const SmallVector<Use, 4> ofPart = uses[part], ofWhole = uses[whole];
  addUses(all, ofWhole);
  addUses(others, ofPart);
  all.append(others);
  for (Value value : all)
    joined[value] = all;
}

int64_t ProgramLiveness::firstWrite(Operation *producer) const {
  int64_t first = position.lookup(producer);
  if (isa<ConcatOp>(producer))
    for (Value part : producer->getOperands())
      if (Operation *op = layoutOf(part).root.getDefiningOp(); op && !isa<UseOp>(op))
        first = std::min(first, firstWrite(op));
  return first;
}

bool ProgramLiveness::canOverwrite(Value value, OpResult result) const {
  auto it = uses.find(value);
  if (it == uses.end())
    return true;
  Operation *producer = result.getOwner();
  auto storage = dyn_cast<StorageOpInterface>(producer);
  SmallVector<unsigned> overwritable =
      storage ? storage.overwritableOperands(result.getResultNumber()) : SmallVector<unsigned>();
  int64_t first = firstWrite(producer);
  return llvm::all_of(it->second, [&](const Use &use) {
    return position.lookup(use.op) < first ||
           (use.op == producer && !use.view && llvm::is_contained(overwritable, use.operand));
  });
}

} // namespace hydra
