// New values of variables, and what must have read the old ones before.
#include "passes/place/Updates.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

namespace {

/// Whether results of the operation may share bytes with its operands.
bool mayAlias(Operation *op) {
  auto storage = dyn_cast<StorageOpInterface>(op);
  return isa<ConcatOp>(op) || (storage && storage.viewedOperand());
}

void addReaders(Value value, llvm::SetVector<Operation *> &readers) {
  for (Operation *user : value.getUsers()) {
    if (!mayAlias(user))
      readers.insert(user);
    else
      for (Value result : user->getResults())
        addReaders(result, readers);
  }
}

} // namespace

llvm::MapVector<Operation *, llvm::SetVector<Operation *>> findUpdates(EntryOp entry) {
  Block &body = entry.getBody().front();
  ReturnOp end = entry.getReturn();
  DenseMap<Attribute, SmallVector<UseOp>> uses;
  for (auto use : body.getOps<UseOp>())
    uses[use.getVariableAttr().getAttr()].push_back(use);
  DenseMap<Operation *, llvm::SetVector<Operation *>> readers;
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
    Operation *update = build::behindReshapes(value).getDefiningOp();
    if (!update || isa<UseOp>(update))
      continue;
    llvm::SetVector<Operation *> &before = readers[update];
    for (UseOp use : uses.lookup(symbol.getAttr()))
      addReaders(use.getResult(), before);
    before.remove(update);
    before.remove(end);
  }
  llvm::MapVector<Operation *, llvm::SetVector<Operation *>> updates;
  for (Operation &op : body)
    if (auto it = readers.find(&op); it != readers.end())
      updates[&op] = it->second;
  return updates;
}

DenseSet<Value> updatedValues(EntryOp entry) {
  DenseSet<Value> values;
  for (Value value : entry.getReturn().getUpdates()) {
    values.insert(value);
    values.insert(build::behindReshapes(value));
  }
  return values;
}

} // namespace hydra
