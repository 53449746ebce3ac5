// What steps that become one have in common.
#include "passes/place/Batches.h"

#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Ordering.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

std::string commonPath(StringRef a, StringRef b) {
  auto isNumber = [](StringRef part) { return part == "*" || llvm::all_of(part, llvm::isDigit); };
  std::string common;
  while (!a.empty() && !b.empty()) {
    StringRef x, y;
    std::tie(x, a) = a.split('.');
    std::tie(y, b) = b.split('.');
    const bool numbers = isNumber(x) && isNumber(y);
    if (x != y && !numbers)
      break;
    common = joinPaths(common, x == y ? x : "*");
  }
  return common;
}

bool overlap(Value a, Value b) {
  return plan::placeOf(a).buffer == plan::placeOf(b).buffer &&
         support::overlap(plan::bytesOf(a), plan::bytesOf(b));
}

bool conflict(Operation *a, Operation *b) {
  const SmallVector<plan::BufferUse> ofA = plan::usesOf(a), ofB = plan::usesOf(b);
  return llvm::any_of(ofA, [&](const plan::BufferUse &x) {
    return llvm::any_of(ofB, [&](const plan::BufferUse &y) {
      // Iterations of loops move buffers.
      const bool meet = a->getNumRegions() + b->getNumRegions() == 0
                            ? overlap(x.value, y.value)
                            : plan::placeOf(x.value).buffer == plan::placeOf(y.value).buffer;
      return meet && (x.writes || y.writes);
    });
  });
}

bool isPartOfNext(Operation *step) { return step->hasAttr(plan::kComputedAttr); }

void moveBefore(Value value, Operation *at) {
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != at->getBlock() || op->isBeforeInBlock(at))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand, at);
  op->moveBefore(at);
}

} // namespace hydra
