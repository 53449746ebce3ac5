// From the operations that read arguments to the ids that these may be.
#include "passes/bind/Ids.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

namespace {

/// What an argument is used as.
struct IdUses {
  int64_t limit = 0; ///< 0: no ids
  bool areLookedUp = false, areLabels = false;
  llvm::SmallSetVector<const void *, 2> tables; ///< in which they are looked up
};

/// What tells tables apart: parameters by their names, others as values.
const void *identityOf(Value table) {
  auto use = table.getDefiningOp<UseOp>();
  return use ? use.getVariableAttr().getAsOpaquePointer() : table.getAsOpaquePointer();
}

/// From the operations that read an argument: itself, or what moves and choices make of it, in
/// scans too.
IdUses idUses(BlockArgument argument) {
  IdUses uses;
  SetVector<Value> same; // the argument, and what has its numbers among others
  same.insert(argument);
  for (size_t i = 0; i < same.size(); ++i)
    for (OpOperand &use : Value(same[i]).getUses()) {
      Operation *op = use.getOwner();
      if (auto user = dyn_cast<IdOpInterface>(op))
        if (std::optional<IdRange> range = user.idRange(use.getOperandNumber())) {
          uses.limit = uses.limit ? std::min(uses.limit, range->limit) : range->limit;
          (range->labels ? uses.areLabels : uses.areLookedUp) = true;
          if (auto lookup = dyn_cast<EmbeddingOp>(op))
            uses.tables.insert(identityOf(lookup.getTable()));
        }
      auto storage = dyn_cast<StorageOpInterface>(op);
      bool isViewed = storage && storage.viewedOperand() == use.getOperandNumber();
      if (isViewed || isa<BroadcastOp, ConcatOp, PadOp>(op) ||
          (isa<SelectOp>(op) && use.getOperandNumber() > 0))
        same.insert(op->getResult(0));
      else if (isa<ScanBeginOp>(op))
        same.insert(op->getResult(use.getOperandNumber()));
      else if (auto layers = dyn_cast<ForOp>(op))
        same.insert(layers.getBody().getArgument(use.getOperandNumber()));
      else if (auto loop = dyn_cast<LoopOp>(op))
        same.insert(loop.getEntry().getBody().getArgument(use.getOperandNumber()));
    }
  return uses;
}

} // namespace

/// Tokens may be labels of others, and labels be looked up: what is both are labels where another
/// argument is looked up in the same table.
void noteIds(EntryOp entry) {
  const SmallVector<IdUses> uses = llvm::map_to_vector(entry.getBody().getArguments(), idUses);
  const auto haveTokens = [&](const IdUses &labels) {
    return llvm::any_of(uses, [&](const IdUses &use) {
      return use.areLookedUp && !use.areLabels && llvm::any_of(use.tables, [&](const void *table) {
               return labels.tables.contains(table);
             });
    });
  };
  entry.setIds(llvm::map_to_vector(uses, [&](const IdUses &use) {
    return use.areLabels && (!use.areLookedUp || haveTokens(use)) ? -use.limit : use.limit;
  }));
}

} // namespace hydra
