// Last uses in a program, through views.
#include "passes/lower/Liveness.h"

using namespace mlir;

namespace hydra {

ProgramLiveness::ProgramLiveness(EntryOp entry) {
  for (auto [i, op] : llvm::enumerate(entry.getBody().front())) {
    position[&op] = i;
    if (auto use = dyn_cast<UseOp>(op))
      variableValues[use.getVariableAttr().getAttr()].push_back(use.getResult());
    if (op.hasAttr(kViewAttr) || op.hasAttr(kAdjacentAttr))
      continue; // reads nothing itself
    for (OpOperand &operand : op.getOpOperands()) {
      Value root = layoutOf(operand.get()).root;
      uses[root].push_back({&op, operand.getOperandNumber(), root != operand.get()});
      if (Operation *concat = root.getDefiningOp(); concat && concat->hasAttr(kAdjacentAttr))
        for (Value part : concat->getOperands())
          uses[part].push_back({&op, operand.getOperandNumber(), /*view=*/true});
    }
  }
}

bool ProgramLiveness::diesAt(Value operand, Operation *op, unsigned number) const {
  auto it = uses.find(layoutOf(operand).root);
  if (it == uses.end())
    return false;
  int64_t here = position.lookup(op);
  return llvm::all_of(it->second, [&](const Use &use) {
    int64_t there = position.lookup(use.op);
    return there < here || (use.op == op && use.operand == number);
  });
}

bool ProgramLiveness::canOverwriteVariable(StringAttr variable, OpResult result) const {
  auto values = variableValues.find(variable);
  if (values == variableValues.end())
    return true; // never read
  Operation *producer = result.getOwner();
  auto storage = dyn_cast<StorageOpInterface>(producer);
  SmallVector<unsigned> overwritable =
      storage ? storage.overwritableOperands(result.getResultNumber()) : SmallVector<unsigned>();
  int64_t here = position.lookup(producer);
  for (Value value : values->second) {
    auto it = uses.find(value);
    if (it == uses.end())
      continue;
    for (const Use &use : it->second) {
      if (position.lookup(use.op) < here)
        continue;
      if (use.op != producer || use.view || !llvm::is_contained(overwritable, use.operand))
        return false;
    }
  }
  return true;
}

} // namespace hydra
