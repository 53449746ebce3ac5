// Bodies of loops for one rank: the forms of what they take, carry and give.
#include "passes/partition/RankWriter.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

LogicalResult RankWriter::write(LoopOp loop) {
  SmallVector<Spread> in =
      llvm::map_to_vector(loop.getInputs(), [&](Value v) { return spreadOf(v); });
  std::string key = loop.getBody().str();
  llvm::raw_string_ostream text(key);
  for (const Spread &spread : in)
    text << '|' << spread.kind << ',' << spread.dim << ',' << spread.blocks << ','
         << spread.order.getAsOpaquePointer();
  auto [known, isNew] = axis.loops.try_emplace(key);
  if (isNew && failed(findForm(loop, in, known->second))) {
    axis.loops.erase(known);
    return failure();
  }
  const PartitionAxis::LoopForm &form = known->second;
  SmallVector<Value> inputs;
  for (auto [old, spread] : llvm::zip(loop.getInputs(), form.arguments))
    inputs.push_back(as(old, spread, loop));
  auto fresh = LoopOp::create(b, loop.getLoc(), form.body, inputs);
  for (auto [old, value, spread] : llvm::zip(loop.getResults(), fresh.getResults(), form.results))
    place(old, value, spread);
  return success();
}

LogicalResult RankWriter::findForm(LoopOp loop, SmallVector<Spread> in,
                                   PartitionAxis::LoopForm &form) {
  EntryOp old = loop.getEntry();
  ScanAttr scan = loop.getScan();
  const size_t over = scan.getOver().size(), stacked = scan.getStacked().size();
  for (auto [spread, along] : llvm::zip(in, scan.getOver()))
    if (spread.isRows() && spread.dim == along)
      spread = Spread::same(); // who iterates over the batch has all of it
  const size_t kMostForms = 2 * in.size() + 2;
  Problem last;
  for (size_t tries = 0; tries < kMostForms; ++tries) {
    SmallVector<RankedTensorType> types;
    for (auto [argument, spread] : llvm::zip(old.getBody().getArguments(), in))
      types.push_back(localType(argument.getType(), spread, axis.ranks));
    EntryOp fresh =
        build::loopBody(old, (old.getSymName() + "_rank").str(), old.getLoc(), scan, types);
    Block &block = fresh.getBody().front();
    RankWriter inside(axis, OpBuilder::atBlockEnd(&block), old);
    for (auto [argument, value, spread] :
         llvm::zip(old.getBody().getArguments(), block.getArguments(), in))
      inside.place(argument, value, spread);
    LogicalResult written = inside.write(old.getBody().front());
    bool changed = false;
    SmallVector<Spread> results;
    if (succeeded(written)) {
      SmallVector<Value> values;
      for (auto [i, value] : llvm::enumerate(old.getReturn().getOutputs())) {
        Spread spread = inside.spreadOf(value);
        if (i < stacked) {
          if (spread.isRows() && spread.dim == scan.getStacked()[i])
            (void)inside.fail(old.getReturn(), "joins rows of the batch along the batch");
        } else {
          Spread &carried = in[over + i - stacked];
          if (carried.isSame() && !spread.isSame()) {
            carried = spread;
            changed = true;
          } else if (!(carried == spread)) {
            spread = carried;
          }
        }
        values.push_back(inside.as(value, spread, old.getReturn()));
        results.push_back(spread);
      }
      for (auto &[number, want] : inside.demands)
        if (!(in[number] == want)) {
          if (number < over && want.isRows() && want.dim == scan.getOver()[number])
            (void)inside.fail(loop, "iterates over the batch and needs a part of it");
          in[number] = want;
          changed = true;
        }
      if (!changed && !inside.problem.op) {
        build::endLoopBody(fresh, values);
        form = {in, results, fresh};
        return success();
      }
    }
    last = inside.problem;
    fresh.erase();
    if (!changed)
      break;
  }
  return last.op ? fail(last.op, last.text)
                 : fail(loop, "needs values in more than one form, which ranks exchange outside of "
                              "loops only");
}

} // namespace hydra
