// Checks of the call that counts exponents.
#include "runtime/calls/CountCall.h"

#include "runtime/support/ExponentCounts.h"

#include <limits>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

/// Dense, in a format that is counted.
CountExponentsSpec::Tensor countedTensor(const CallSite &site, size_t index) {
  const TensorShape tensor = site.tensor(index, "tensor");
  const DType dtype = tensor.dtype;
  if (dtype != DType::F32 && dtype != DType::BF16 && dtype != DType::F16)
    site.fail("argument {} is {}; expected f32, bf16 or f16", index, support::irName(dtype));
  if (!tensor.isDense())
    site.fail("argument {} is not dense", index);
  return {dtype, tensor.elements()};
}

} // namespace

CountExponentsSpec hydra::runtime::describeCountExponents(const CallSite &site) {
  const auto &action = site.as<planfile::CountExponents>();
  CountExponentsSpec spec;
  spec.scaled = action.scaled();
  spec.first = action.first();
  const size_t before = spec.scaled ? 1 : 0;
  const size_t arguments = site.argumentCount(0, std::numeric_limits<size_t>::max());
  if (arguments < before + 2)
    site.fail("{} arguments; expected at least {}", arguments, before + 2);
  const size_t last = arguments - 1;
  if (spec.scaled)
    site.tensor(0, "factor", 0, DType::F32);
  for (size_t i = before; i < last; ++i)
    spec.tensors.push_back(countedTensor(site, i));
  const TensorShape counts = site.tensor(last, "counts", 1, DType::I32);
  spec.counters = counts.sizes[0];
  if (!counts.isDense() || spec.counters < 1 || spec.counters > support::kMostExponents)
    site.fail("has {} counters; expected from 1 to {}, dense", spec.counters,
              support::kMostExponents);
  if (spec.first < support::kLeastExponent ||
      spec.first > support::kMostExponent - (spec.counters - 1))
    site.fail("counts from exponent {} on; expected from {} to {}", spec.first,
              support::kLeastExponent, support::kMostExponent - (spec.counters - 1));
  return spec;
}
