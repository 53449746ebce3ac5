// Checks of the calls that ranks meet in.
#include "runtime/calls/CollectiveCall.h"

#include "runtime/support/Safetensors.h"

using namespace hydra::runtime;
namespace support = hydra::support;

namespace {

/// `factor`: elements of y for each of x.
CollectiveSpec describe(const CallSite &site, uint32_t axis, uint64_t ranks, uint64_t factor) {
  site.argumentCount(2, 2);
  const TensorShape x = site.tensor(0, "x"), y = site.tensor(1, "y");
  if (x.dtype != y.dtype || !x.isDense() || !y.isDense())
    site.fail("x is {} {}, y {} {}; expected both dense and of one type",
              support::irName(x.dtype), support::shapeText(x.sizes), support::irName(y.dtype),
              support::shapeText(y.sizes));
  const auto elements = static_cast<uint64_t>(x.elements());
  // The verifier has limited both, so nothing overflows.
  if (static_cast<uint64_t>(y.elements()) != elements * factor)
    site.fail("y has {} elements; expected {}", y.elements(), elements * factor);
  return {axis, ranks, elements * support::byteSize(x.dtype), site.modelPlace()};
}

} // namespace

CollectiveSpec hydra::runtime::describeAllGather(const CallSite &site) {
  const uint32_t axis = site.as<planfile::AllGather>().axis();
  const uint64_t ranks = site.ranksAlong(axis);
  return describe(site, axis, ranks, ranks);
}

CollectiveSpec hydra::runtime::describeAllToAll(const CallSite &site) {
  const uint32_t axis = site.as<planfile::AllToAll>().axis();
  const uint64_t ranks = site.ranksAlong(axis);
  CollectiveSpec spec = describe(site, axis, ranks, 1);
  if (site.tensor(0, "x").elements() % static_cast<int64_t>(ranks) != 0)
    site.fail("x has {} elements, which do not fall into {} equal pieces",
              site.tensor(0, "x").elements(), ranks);
  return spec;
}
