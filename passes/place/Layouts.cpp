// Where the elements of values lie.
#include "passes/place/Layouts.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

using namespace mlir;

namespace hydra {

Layout layoutOf(Value v) {
  return layoutOf(v, [](Value root) -> SmallVector<int64_t> {
    // A chunk lies in the sequence that a loop runs over, which is dense.
    if (auto argument = dyn_cast<BlockArgument>(root))
      if (auto entry = dyn_cast<EntryOp>(argument.getOwner()->getParentOp()))
        return denseStrides(entry.wholeType(argument).getShape());
    return denseStrides(build::shapeOf(root));
  });
}

Layout layoutOf(Value v, function_ref<SmallVector<int64_t>(Value)> stridesOf) {
  Operation *op = v.getDefiningOp();
  if (!op || !op->hasAttr(kViewAttr))
    return {v, {0, stridesOf(v)}};
  auto storage = cast<StorageOpInterface>(op);
  Layout source = layoutOf(op->getOperand(*storage.viewedOperand()), stridesOf);
  StridedView view = *storage.view(source.view.strides);
  view.offset += source.view.offset;
  return {source.root, view};
}

SmallVector<Value> possiblyViewed(Value v) {
  SmallVector<Value> chain{v};
  while (auto storage = v.getDefiningOp<StorageOpInterface>()) {
    const std::optional<unsigned> viewed = storage.viewedOperand();
    if (!viewed)
      break;
    chain.push_back(v = storage->getOperand(*viewed));
  }
  return chain;
}

FailureOr<SmallVector<int64_t>> possibleStridesOf(Value v) {
  const SmallVector<Value> chain = possiblyViewed(v);
  SmallVector<int64_t> strides = denseStrides(build::shapeOf(chain.back()));
  for (Value viewing : llvm::reverse(ArrayRef(chain).drop_back())) {
    FailureOr<StridedView> view = viewing.getDefiningOp<StorageOpInterface>().view(strides);
    if (failed(view))
      return failure();
    strides = view->strides;
  }
  return strides;
}

bool areApart(Value a, Value b) {
  const SmallVector<Value> left = possiblyViewed(a), right = possiblyViewed(b);
  // From what both are of to where their ways part.
  auto [x, y] = std::mismatch(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  if (x == left.rbegin() || x == left.rend() || y == right.rend())
    return false;
  auto one = x->getDefiningOp<SliceOp>(), other = y->getDefiningOp<SliceOp>();
  if (!one || !other || one.getAxis() != other.getAxis())
    return false;
  const auto begins = [](SliceOp slice) { return static_cast<int64_t>(slice.getStart()); };
  const auto ends = [&](SliceOp slice) {
    return begins(slice) + static_cast<int64_t>(slice.getSize());
  };
  return ends(one) <= begins(other) || ends(other) <= begins(one);
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
  const bool isRepeated = wanted.repeatedInner && dense == 1 && strides.back() == 0;
  if (!isRepeated && !isDense(shape.take_back(dense), strides.take_back(dense)))
    return false;
  const auto apart = [&](int64_t stride) { return stride < 0 || stride >= shape.back(); };
  if (wanted.apartRows && rank > 1 && shape[rank - 2] != 1 && !apart(strides[rank - 2]))
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
  return apart(stride);
}

bool readersAccept(Value v, ArrayRef<int64_t> strides, Views views) {
  return llvm::all_of(v.getUses(), [&](OpOperand &use) {
    Operation *reader = use.getOwner();
    // What is returned is copied from wherever it lies.
    if (isa<ReturnOp>(reader) || isCutWhereItLies(use, strides))
      return true;
    auto storage = dyn_cast<StorageOpInterface>(reader);
    if (storage && storage.viewedOperand() == use.getOperandNumber()) {
      FailureOr<StridedView> view = storage.view(strides);
      const bool isCopied = views == Views::Marked && !reader->hasAttr(kViewAttr);
      return succeeded(view) &&
             (isCopied || readersAccept(reader->getResult(0), view->strides, views));
    }
    return accepts(storage ? storage.operandLayout(use.getOperandNumber()) : OperandLayout{},
                   build::shapeOf(v), strides);
  });
}

bool hasRows(RankedTensorType type, ArrayRef<int64_t> strides, int64_t least) {
  constexpr int64_t transfer = 16; // bytes
  const int64_t bytes = elementBytes(type.getElementType());
  int64_t row = 1;
  size_t outer = strides.size();
  while (outer > 0 && (type.getDimSize(outer - 1) == 1 || strides[outer - 1] == row))
    row *= type.getDimSize(--outer);
  return row * bytes >= least && llvm::all_of(strides.take_front(outer), [&](int64_t stride) {
           return stride * bytes % transfer == 0;
         });
}

bool isRepeated(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  return llvm::any_of(llvm::zip(shape, strides), [](auto dimension) {
    const auto [size, stride] = dimension;
    return size > 1 && stride == 0;
  });
}

bool isCutWhereItLies(OpOperand &operand, ArrayRef<int64_t> strides) {
  constexpr int64_t longRow = 128; // bytes, worth a transfer of its own
  auto loop = dyn_cast<LoopOp>(operand.getOwner());
  const unsigned number = operand.getOperandNumber();
  return loop && number < loop.getSequences().size() &&
         (isOfGroups(loop) || isRepeated(build::shapeOf(operand.get()), strides) ||
          hasRows(build::typeOf(operand.get()), strides, longRow)) &&
         readersAccept(loop.getEntry().getBody().getArgument(number), strides);
}

bool isOfGroups(LoopOp loop) {
  return llvm::all_of(loop.getEntry().getBody().front(), [](Operation &op) {
    return isa<FusedOp, CopyOp, ReturnOp>(op) || op.hasAttr(kViewAttr);
  });
}

} // namespace hydra
