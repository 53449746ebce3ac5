// hydra-reshard: what was gathered is not kept until it is needed again.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_RESHARD
#include "passes/Passes.h.inc"

namespace {

/// An operation that reads what was gathered, itself or behind views of it.
struct Reader {
  OpOperand *operand;
  SmallVector<Operation *> views; ///< from the gather on
};

struct Reshard : impl::ReshardBase<Reshard> {
  using ReshardBase::ReshardBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    model.walk([&](CollectiveOpInterface op) {
      if (auto known = op->getAttrOfType<IntegerAttr>("number"))
        number = std::max(number, known.getInt() + 1);
    });
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (entry.isProgram())
        run(entry.getBody().front());
  }

private:
  void run(Block &block) {
    SmallVector<AllGatherOp> all;
    DenseMap<Operation *, size_t> position;
    for (auto [i, op] : llvm::enumerate(block)) {
      position[&op] = i;
      if (auto gather = dyn_cast<AllGatherOp>(op); gather && isOfUnit(gather.getX()))
        all.push_back(gather);
    }
    for (AllGatherOp gather : all) {
      SmallVector<Reader> readers;
      find(gather.getY(), {}, readers);
      auto placeOf = [&](const Reader &reader) { return position[reader.operand->getOwner()]; };
      llvm::stable_sort(readers,
                        [&](const Reader &a, const Reader &b) { return placeOf(a) < placeOf(b); });
      Again again;
      for (size_t i = 1; i < readers.size(); ++i) {
        const auto gathered = llvm::count_if(all, [&](AllGatherOp other) {
          return other != gather && position[other] > placeOf(readers[i - 1]) &&
                 position[other] < placeOf(readers[i]);
        });
        if (gathered >= between) {
          again.clear();
          OpBuilder b(readers[i].operand->getOwner());
          auto copy = cast<AllGatherOp>(b.clone(*gather));
          copy.setNumberAttr(b.getI64IntegerAttr(number++));
          again[gather] = copy;
          ++gathers;
        }
        if (!again.empty())
          readAgain(readers[i], gather, again);
      }
    }
  }

  /// Whether it is what a rank has of a unit, also in 8 bits, which it keeps until the backward
  /// pass.
  static bool isOfUnit(Value piece) {
    piece = build::behindReshapes(piece);
    if (auto quantize = piece.getDefiningOp<QuantizeOp>())
      return isMadeOfUnit(quantize.getX());
    auto use = piece.getDefiningOp<UseOp>();
    return use && unitOf(use.lookup());
  }
  static bool isMadeOfUnit(Value x) {
    while (Operation *op = x.getDefiningOp()) {
      if (auto use = dyn_cast<UseOp>(op))
        return static_cast<bool>(unitOf(use.lookup()));
      if (!isa<ReshapeOp, CastOp, AddOp>(op)) // see AmaxHistory::withoutInfinities
        break;
      x = op->getOperand(0);
    }
    return false;
  }

  /// Copies of the gather and of views of it.
  using Again = DenseMap<Operation *, Operation *>;

  static void find(Value v, ArrayRef<Operation *> views, SmallVector<Reader> &readers) {
    for (OpOperand &use : v.getUses()) {
      auto storage = dyn_cast<StorageOpInterface>(use.getOwner());
      if (!storage || storage.viewedOperand() != use.getOperandNumber() ||
          storage->getNumOperands() != 1) {
        readers.push_back({&use, SmallVector<Operation *>(views)});
        continue;
      }
      SmallVector<Operation *> more(views);
      more.push_back(storage);
      find(storage->getResult(0), more, readers);
    }
  }

  /// Lets an operation read the copy, by the same views.
  static void readAgain(const Reader &reader, AllGatherOp gather, Again &again) {
    Operation *from = again[gather];
    for (Operation *view : reader.views) {
      Operation *&copy = again[view];
      if (!copy) {
        OpBuilder b(from->getContext());
        b.setInsertionPointAfter(from);
        copy = b.clone(*view);
        copy->setOperand(0, from->getResult(0));
      }
      from = copy;
    }
    reader.operand->set(from->getResult(0));
  }

  int64_t number = 0; ///< of the next gather
};

} // namespace
} // namespace hydra
