// Cases are copies of the steps on views of their first rows.
#include "passes/lower/RowSwitch.h"

#include "dialects/plan/KernelExpansion.h"

using namespace mlir;

namespace hydra {

namespace {

constexpr int64_t kCases = 8;
constexpr int64_t kTile = 64; ///< rows that a matmul works on together anyway

Value firstRows(OpBuilder &b, Value buffer, int64_t rows) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<int64_t> shape(type.getShape()), strides = plan::stridesOf(type);
  shape[0] = rows;
  return plan::ViewOp::create(b, buffer.getLoc(),
                              plan::bufferType(shape, strides, type.getElementType()), buffer,
                              b.getI64IntegerAttr(0));
}

/// Says which operands of a step have the rows, of which there are at most so many.
void markCounted(Operation *step, ArrayRef<unsigned> args, int64_t rows) {
  SmallVector<int64_t> known{rows};
  known.append(args.begin(), args.end());
  step->setAttr(plan::kCountedAttr, DenseI64ArrayAttr::get(step->getContext(), known));
}

/// The step on fewer rows, or on all.
void addStep(OpBuilder &b, const RowStep &entry, int64_t all, int64_t rows) {
  Operation *copy = b.clone(*entry.step);
  if (entry.kind == RowStep::Always)
    return;
  if (rows == all)
    return markCounted(copy, entry.args, all);
  auto step = cast<plan::StepInterface>(copy);
  step.setWork(static_cast<int64_t>(step.getFlops()) * rows / all,
               static_cast<int64_t>(step.getBytes()) * rows / all);
  if (auto launch = dyn_cast<plan::LaunchOp>(copy)) {
    auto kernel = launch->getParentOfType<plan::PlanModuleOp>().lookupSymbol<plan::KernelOp>(
        launch.getKernelAttr());
    launch.setLimit(kernel.getRows() / all * rows);
    return;
  }
  b.setInsertionPoint(copy);
  for (unsigned i : entry.args)
    copy->setOperand(i, firstRows(b, copy->getOperand(i), rows));
  b.setInsertionPointAfter(copy);
}

/// Without rows a sum is zero, or what it was added to.
void addEmptySum(OpBuilder &b, plan::StepInterface step) {
  for (auto [arg, access] : llvm::zip_equal(step.getArgs(), step.getAccesses()))
    if (access == plan::kWrite) {
      const int64_t bytes = plan::extentBytes(cast<MemRefType>(arg.getType()));
      plan::FillOp::create(b, step.getLoc(), arg, llvm::APFloat(0.0), 0, bytes, OpClass::copy_cast,
                           "fill");
    }
}

} // namespace

void switchByRows(OpBuilder &b, ArrayRef<RowStep> steps, Value count, int64_t rows) {
  int64_t granule = llvm::alignTo(llvm::divideCeil(rows, kCases), kTile);
  int64_t cases = llvm::divideCeil(rows, granule) + 1;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(steps.back().step);
  auto choice = plan::SwitchOp::create(b, steps.front().step->getLoc(), count, granule,
                                       FlatSymbolRefAttr(), 0, ArrayRef<int64_t>(), -1, cases);
  for (auto [number, region] : llvm::enumerate(choice.getCases())) {
    b.setInsertionPointToEnd(&region.emplaceBlock());
    for (const RowStep &entry : steps) {
      if (number > 0 || entry.kind == RowStep::Always)
        addStep(b, entry, rows, std::min<int64_t>(rows, number * granule));
      else if (entry.kind == RowStep::Sum)
        addEmptySum(b, cast<plan::StepInterface>(entry.step));
    }
  }
  for (const RowStep &entry : steps)
    entry.step->erase();
}

} // namespace hydra
