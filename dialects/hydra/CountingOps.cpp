// How many numbers are of which size.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "runtime/support/ExponentCounts.h"

#include <cmath>

using namespace mlir;

namespace hydra {

LogicalResult CountExponentsOp::inferTypes(TypeInference &infer, Adaptor op,
                                           SmallVectorImpl<Type> &types) {
  ValueRange tensors = op.getValues();
  if (op.getScaled()) {
    if (tensors.empty())
      return infer.fail("has no factor; expected one before what is counted");
    if (failed(infer.wantExact(tensors.front(), "factor", {})))
      return failure();
    tensors = tensors.drop_front();
  }
  if (tensors.empty())
    return infer.fail("counts no tensor; expected at least 1");
  int64_t elements = 0;
  for (Value tensor : tensors) {
    if (failed(infer.wantFloat(tensor, "operand")))
      return failure();
    elements = std::min(elements + infer.type(tensor).getNumElements(), kMostElements + 1);
  }
  if (elements > kMostElements)
    return infer.fail("counts 2^31 elements or more; expected numbers of i32");
  const int64_t first = op.getFirst(), count = op.getCount();
  if (count < 1 || count > support::kMostExponents)
    return infer.fail("has " + Twine(count) + " counters; expected from 1 to " +
                      Twine(support::kMostExponents));
  if (first < support::kLeastExponent || first > support::kMostExponent - (count - 1))
    return infer.fail("counts from exponent " + Twine(first) + " on; expected from " +
                      Twine(support::kLeastExponent) + " to " +
                      Twine(support::kMostExponent - (count - 1)) + " with " + Twine(count) +
                      " counters");
  types.push_back(infer.tensor({count}, IntegerType::get(infer.context, 32)));
  return success();
}

/// The exponent of two of a number that is neither zero nor infinite, rounded to nearest.
static int64_t nearestExponent(double x) {
  int exponent;
  const double part = std::frexp(std::fabs(x), &exponent); // in [1/2, 1)
  return part * part < 0.5 ? exponent - 1 : exponent;
}

LogicalResult CountExponentsOp::evaluate(ArrayRef<const RefTensor *> in,
                                         MutableArrayRef<RefTensor> out) {
  const double factor = getScaled() ? in.front()->data[0] : 1.0;
  const int64_t last = getCount() - 1;
  for (const RefTensor *tensor : in.drop_front(getScaled() ? 1 : 0))
    for (double element : tensor->data) {
      const double x = element * factor;
      int64_t counter = 0;
      if (std::isinf(x))
        counter = last;
      else if (x < 0 || x > 0)
        counter = std::clamp<int64_t>(nearestExponent(x) - getFirst(), 0, last);
      ++out[0].data[counter];
    }
  return success();
}

int64_t CountExponentsOp::flops() {
  int64_t elements = 0;
  for (Value tensor : getTensors())
    elements += build::typeOf(tensor).getNumElements();
  return elements;
}
OpClass CountExponentsOp::costClass() { return OpClass::gather_scatter; }
Precision CountExponentsOp::precisionClass() { return Precision::Exact; }
bool CountExponentsOp::takesRounded(unsigned operand) { return operand > 0 || !getScaled(); }

} // namespace hydra
