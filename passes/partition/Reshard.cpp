// hydra-reshard: what was gathered is not kept until it is needed again.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/partition/GatherReaders.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_RESHARD
#include "passes/Passes.h.inc"

namespace {

struct Reshard : impl::ReshardBase<Reshard> {
  using ReshardBase::ReshardBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    number = freeGatherNumber(model);
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
      const SmallVector<GatherReader> readers = readersOf(gather);
      auto placeOf = [&](const GatherReader &reader) {
        return position[reader.operand->getOwner()];
      };
      std::optional<GatherAgain> again;
      for (size_t i = 1; i < readers.size(); ++i) {
        const auto gathered = llvm::count_if(all, [&](AllGatherOp other) {
          return other != gather && position[other] > placeOf(readers[i - 1]) &&
                 position[other] < placeOf(readers[i]);
        });
        if (gathered >= between) {
          again.emplace(gather, readers[i].operand->getOwner(), number++);
          ++gathers;
        }
        if (again)
          again->readBy(readers[i]);
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

  int64_t number = 0; ///< of the next gather
};

} // namespace
} // namespace hydra
