// Runs of operations on gathered rows.
#include "passes/lower/RowRuns.h"

#include "dialects/hydra/Build.h"
#include "passes/place/ActiveRows.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

LogicalResult RowRuns::lower(Operation *op, llvm::function_ref<LogicalResult(Operation *)> lower) {
  if (auto parts = op->getAttrOfType<DenseI64ArrayAttr>(kActivePartsAttr)) {
    end();
    if (failed(lower(op)))
      return failure();
    splitSum(cast<MatmulOp>(op), parts);
    return success();
  }
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

void RowRuns::splitSum(MatmulOp op, ArrayRef<int64_t> parts) {
  OpBuilder &b = lowering.builder();
  auto whole = cast<plan::MatmulOp>(b.getInsertionBlock()->back());
  const int64_t all = cast<MemRefType>(whole.getA().getType()).getDimSize(0);
  const auto rowsOf = [&](Value matrix, int64_t begin, int64_t rows) -> Value {
    auto type = cast<MemRefType>(matrix.getType());
    const SmallVector<int64_t> strides = plan::stridesOf(type);
    return plan::ViewOp::create(
        b, op.getLoc(),
        plan::bufferType({rows, type.getDimSize(1)}, strides, type.getElementType()), matrix,
        b.getI64IntegerAttr(begin * strides[0]));
  };
  int64_t begin = 0;
  for (auto [i, part] : llvm::enumerate(op.getA().getDefiningOp<ConcatOp>().getParts())) {
    const int64_t rows = build::shapeOf(part)[0];
    const Value a = rowsOf(whole.getA(), begin, rows), x = rowsOf(whole.getB(), begin, rows);
    auto term = cast<plan::MatmulOp>(b.clone(*whole));
    term.getAMutable().assign(a);
    term.getBMutable().assign(x);
    term.setAccumulate(i > 0);
    auto step = cast<plan::StepInterface>(term.getOperation());
    step.setWork(static_cast<int64_t>(step.getFlops()) * rows / all,
                 static_cast<int64_t>(step.getBytes()) * rows / all);
    if (parts[i] >= 0)
      switchByRows(b, RowStep{term, RowStep::Sum, {0, 1}},
                   lowering.source(compactions.lookup(parts[i]).getCount()), rows);
    begin += rows;
  }
  whole->erase();
}

void RowRuns::end() {
  if (!open.steps.empty())
    switchByRows(lowering.builder(), open.steps, open.count, open.rows);
  open = Run();
}

} // namespace hydra
