// How many gradients have which magnitude: an operation that reads each of them once.
#include "passes/differentiate/GradHistogram.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/GradHistogram.h"

using namespace mlir;

namespace hydra {

/// The numbers of all counters.
static Value counters(OpBuilder &b, Location loc) {
  const int64_t shape[] = {kExponents};
  return IotaOp::create(b, loc, RankedTensorType::get(shape, b.getI32Type()),
                        b.getI64ArrayAttr(shape), b.getI64IntegerAttr(0),
                        TypeAttr::get(b.getI32Type()), UnitAttr());
}

/// The counts without zeros that are no gradients. What was rounded stays a count.
static Value withoutPadding(OpBuilder &b, Location loc, Value counts, int64_t padding) {
  Value numbers = counters(b, loc);
  Value isFirst = CompareOp::create(b, loc, numbers,
                                    build::constant(b, loc, numbers.getType(), 0.0), Predicate::eq);
  Value none = build::constant(b, loc, counts.getType(), 0.0);
  Value more = SelectOp::create(b, loc, isFirst,
                                build::constant(b, loc, counts.getType(), double(padding)), none);
  return MaxOp::create(b, loc, SubOp::create(b, loc, counts, more), none);
}

/// The gradients, those of more elements than are counted together in parts.
static SmallVector<Value> inParts(OpBuilder &b, Location loc, ValueRange gradients) {
  constexpr int64_t kPart = int64_t{1} << 30;
  SmallVector<Value> parts;
  for (Value gradient : gradients) {
    const int64_t elements = build::typeOf(gradient).getNumElements();
    if (elements <= CountExponentsOp::kMostElements) {
      parts.push_back(gradient);
      continue;
    }
    Value flat = build::reshape(b, loc, gradient, {elements});
    for (int64_t from = 0; from < elements; from += kPart)
      parts.push_back(SliceOp::create(b, loc, flat, b.getI64IntegerAttr(0),
                                      b.getI64IntegerAttr(from),
                                      b.getI64IntegerAttr(std::min(kPart, elements - from))));
  }
  return parts;
}

/// How many tensors, from the first on, one operation can count.
static size_t countedTogether(ArrayRef<Value> tensors) {
  int64_t elements = 0;
  size_t count = 0;
  while (count < tensors.size()) {
    elements += build::typeOf(tensors[count]).getNumElements();
    if (elements > CountExponentsOp::kMostElements)
      break;
    ++count;
  }
  return count;
}

/// Of tensors that one operation can count, `[kExponents]` i32. A factor goes before them.
static Value countTogether(OpBuilder &b, Location loc, ArrayRef<Value> tensors, Value factor) {
  SmallVector<Value> operands;
  if (factor)
    operands.push_back(factor);
  llvm::append_range(operands, tensors);
  return CountExponentsOp::create(b, loc, operands, b.getI64IntegerAttr(kFirstExponent),
                                  b.getI64IntegerAttr(kExponents),
                                  factor ? b.getUnitAttr() : UnitAttr());
}

/// The same of each tensor where it is made. Whole numbers are added, so that ranks add up one sum.
static Value countApart(OpBuilder &b, Location loc, ArrayRef<Value> tensors) {
  OpBuilder behind(b.getContext());
  Value sum;
  for (Value tensor : tensors) {
    behind.setInsertionPointAfterValue(tensor);
    Value own = countTogether(behind, loc, tensor, Value());
    sum = sum ? AddOp::create(b, loc, sum, own).getResult() : own;
  }
  return sum;
}

Value countExponents(OpBuilder &b, Location loc, ValueRange gradients, Value inverse,
                     int64_t padding, bool apart) {
  Value total;
  SmallVector<Value> parts = inParts(b, loc, gradients);
  for (ArrayRef<Value> rest = parts; !rest.empty();) {
    ArrayRef<Value> some = rest.take_front(countedTogether(rest));
    Value whole = apart ? countApart(b, loc, some) : countTogether(b, loc, some, inverse);
    Value counts = build::cast(b, loc, whole, b.getF32Type());
    total = total ? AddOp::create(b, loc, total, counts).getResult() : counts;
    rest = rest.drop_front(some.size());
  }
  return padding > 0 ? withoutPadding(b, loc, total, padding) : total;
}

} // namespace hydra
