// Where the elements of values lie.
#include "passes/place/Layouts.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

using namespace mlir;

namespace hydra {

Layout layoutOf(Value v) {
  // A chunk lies in the sequence that a loop walks over, which is dense.
  if (auto argument = dyn_cast<BlockArgument>(v))
    if (auto entry = dyn_cast<EntryOp>(argument.getOwner()->getParentOp()))
      return {v, {0, denseStrides(entry.wholeType(argument).getShape())}};
  Operation *op = v.getDefiningOp();
  if (!op || !op->hasAttr(kViewAttr))
    return {v, {0, denseStrides(build::shapeOf(v))}};
  auto storage = cast<StorageOpInterface>(op);
  Layout source = layoutOf(op->getOperand(*storage.viewedOperand()));
  StridedView view = *storage.view(source.view.strides);
  view.offset += source.view.offset;
  return {source.root, view};
}

bool isDense(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return true;
}

bool accepts(const OperandLayout &wanted, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  size_t rank = shape.size();
  size_t dense = wanted.denseInner ? std::min<size_t>(*wanted.denseInner, rank) : rank;
  if (!isDense(shape.take_back(dense), strides.take_back(dense)))
    return false;
  if (!wanted.mergedRows)
    return true;
  int64_t stride = -1, count = 1; // of the merged rows so far, from the right
  for (size_t i = rank - 1; i-- > 0;) {
    if (shape[i] == 1)
      continue;
    if (stride >= 0 && strides[i] != stride * count)
      return false;
    if (stride < 0)
      stride = strides[i];
    count *= shape[i];
  }
  return stride != 0;
}

} // namespace hydra
