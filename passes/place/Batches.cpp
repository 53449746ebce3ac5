// What steps that become one have in common.
#include "passes/place/Batches.h"

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

void moveBefore(Value value, Operation *at) {
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != at->getBlock() || op->isBeforeInBlock(at))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand, at);
  op->moveBefore(at);
}

} // namespace hydra
