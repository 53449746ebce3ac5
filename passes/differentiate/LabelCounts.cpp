// A program that counts labels, and losses that divide by them.
#include "passes/differentiate/LabelCounts.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowLoss.h"
#include "passes/Passes.h"
#include "passes/differentiate/ProgramOutputs.h"

using namespace mlir;

namespace hydra {

namespace {

/// Losses by their labels.
using LossesByLabels = llvm::MapVector<Value, SmallVector<CountedLossOpInterface>>;

Value read(OpBuilder &b, StateOp state) {
  return UseOp::create(b, state->getLoc(), state.getBoundType(), state.getSymName());
}

/// Losses in a loop divide by the labels of their chunk, of which no sum over the step is known.
LogicalResult checkLossesOfLoops(EntryOp entry) {
  SmallVector<EntryOp> bodies;
  entry.walk([&](LoopOp loop) { bodies.push_back(loop.getEntry()); });
  for (EntryOp body : bodies) {
    CountedLossOpInterface counts;
    body.walk([&](CountedLossOpInterface loss) {
      if (!loss.getCount())
        counts = loss;
    });
    if (counts)
      return counts.emitOpError(
          "counts the labels of a step's micro-batches in a loop; expected --accum=1");
    if (failed(checkLossesOfLoops(body)))
      return failure();
  }
  return success();
}

/// Adds the program in front of `entry`: what of that one leads to the labels, whose numbers are
/// added to `counts`.
void addCounter(EntryOp entry, StringRef name, Location loc, const LossesByLabels &losses,
                ArrayRef<StateOp> counts) {
  OpBuilder b(entry);
  IRMapping mapping;
  auto counter = cast<EntryOp>(b.clone(*entry, mapping));
  counter.setSymName(name);
  counter.setStage(ProgramStage::count);
  b.setInsertionPoint(counter.getReturn());
  ProgramOutputs sums;
  for (auto [labels, count] : llvm::zip(llvm::make_first_range(losses), counts)) {
    Value there = mapping.lookup(labels);
    Value flat = build::reshape(b, loc, there, {build::typeOf(there).getNumElements()});
    Value here = RowLoss::countOf(b, loc, flat);
    sums.set(count, AddOp::create(b, loc, read(b, count), here));
  }
  sums.returnFrom(counter.getReturn());
  for (auto mark : llvm::make_early_inc_range(counter.getBody().getOps<BoundaryOp>()))
    mark.erase();
  eraseDead(counter.getBody().front());
  for (unsigned i = counter.getBody().getNumArguments(); i-- > 0;)
    if (counter.getBody().getArgument(i).use_empty())
      counter.eraseArgument(i);
}

/// Lets losses divide by the share of a micro-batch in the labels of the step.
void divideLosses(EntryOp entry, Location loc, const LossesByLabels &losses,
                  ArrayRef<StateOp> counts, int64_t accum) {
  OpBuilder b = OpBuilder::atBlockBegin(&entry.getBody().front());
  for (auto [list, count] : llvm::zip(llvm::make_second_range(losses), counts)) {
    Value total = read(b, count);
    Value one = build::constant(b, loc, total.getType(), 1.0);
    Value parts = build::constant(b, loc, total.getType(), static_cast<double>(accum));
    Value share = DivOp::create(b, loc, MaxOp::create(b, loc, total, one), parts);
    for (CountedLossOpInterface loss : list)
      loss.divideBy(share);
  }
}

} // namespace

FailureOr<SmallVector<StateOp>> divideByLabelsOfStep(EntryOp entry, StringRef counter,
                                                     int64_t accum, CreateStepSum createSum) {
  if (failed(checkLossesOfLoops(entry)))
    return failure();
  LossesByLabels losses;
  entry.walk([&](CountedLossOpInterface loss) {
    if (!loss.getCount())
      losses[loss.getLabels()].push_back(loss);
  });
  SmallVector<StateOp> counts;
  if (losses.empty())
    return counts;
  const Location first = losses.front().second.front()->getLoc();
  const Location loc =
      withCategory(withPhase(madeBy("hydra-optimizer", first), Phase::loss), Category::logits);
  for (size_t i = 0; i < losses.size(); ++i) {
    FailureOr<StateOp> count = createSum("labels." + Twine(i), loc);
    if (failed(count))
      return failure();
    counts.push_back(*count);
  }
  if (failed(checkProgramName(entry->getParentOfType<ModelOp>(), counter)))
    return failure();
  addCounter(entry, counter, loc, losses, counts);
  divideLosses(entry, loc, losses, counts, accum);
  return counts;
}

} // namespace hydra
