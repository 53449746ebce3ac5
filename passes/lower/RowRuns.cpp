// Runs of operations on gathered rows.
#include "passes/lower/RowRuns.h"

#include "dialects/hydra/Build.h"
#include "passes/place/ActiveRows.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

LogicalResult RowRuns::lower(Operation *op, llvm::function_ref<LogicalResult(Operation *)> lower) {
  auto mark = op->getAttrOfType<DenseI64ArrayAttr>(kActiveRowsAttr);
  if (!mark) {
    if (!op->hasAttr(kViewAttr) && !isa<UseOp>(op))
      end();
    if (failed(lower(op)))
      return failure();
    if (auto number = op->getAttrOfType<IntegerAttr>(kCompactAttr))
      compactions[number.getInt()] = cast<CompactOp>(op);
    return success();
  }
  if (mark[1] != open.number) {
    end();
    CompactOp compact = compactions.lookup(mark[0]);
    open.number = mark[1];
    open.rows = build::shapeOf(compact.getMask())[0];
    open.count = lowering.source(compact.getCount());
  }
  Block *block = lowering.builder().getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  if (failed(lower(op)))
    return failure();
  auto use = cast<RowUseOpInterface>(op);
  RowStep::Kind kind = use.rowUse(0) == RowUse::Sum ? RowStep::Sum : RowStep::Each;
  DenseSet<Value> withRows;
  for (OpOperand &operand : op->getOpOperands())
    if (use.rowUse(operand.getOperandNumber()) != RowUse::All)
      withRows.insert(lowering.source(operand.get()));
  if (kind == RowStep::Each)
    for (Value result : op->getResults())
      withRows.insert(lowering.source(result));
  // What a step reads may be a view that it made itself of an operand.
  auto hasRows = [&](Value arg) {
    auto type = cast<MemRefType>(arg.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != open.rows)
      return withRows.contains(arg);
    while (!withRows.contains(arg)) {
      auto view = arg.getDefiningOp<plan::ViewOp>();
      if (!view)
        return false;
      arg = view.getSource();
    }
    return true;
  };
  for (Operation *step = last ? last->getNextNode() : &block->front(); step;
       step = step->getNextNode())
    if (isa<plan::BlockInterface>(step)) {
      // What a sum is added to is copied to its place for any number of rows.
      const bool copiesAddend = kind == RowStep::Sum && isa<plan::CopyOp>(step);
      RowStep &entry = open.steps.emplace_back();
      entry = {step, copiesAddend ? RowStep::Always : kind, {}};
      if (isa<plan::LaunchOp>(step)) // has a limit
        continue;
      for (OpOperand &arg : step->getOpOperands())
        if (isa<ConcatOp>(op) || hasRows(arg.get()))
          entry.args.push_back(arg.getOperandNumber());
    }
  return success();
}

void RowRuns::end() {
  if (!open.steps.empty())
    switchByRows(lowering.builder(), open.steps, open.count, open.rows);
  open = Run();
}

} // namespace hydra
