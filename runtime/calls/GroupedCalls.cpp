// Checks of the calls on rows in groups.
#include "runtime/calls/GroupedCalls.h"

#include "runtime/support/Safetensors.h"

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

/// A dense argument of that shape.
void want(const CallSite &site, const TensorShape &tensor, std::string_view name,
          const std::vector<int64_t> &sizes) {
  if (tensor.sizes != sizes || !tensor.isDense())
    site.fail("{} has shape {}; expected a dense {}", name, support::shapeText(tensor.sizes),
              support::shapeText(sizes));
}

void wantNumbers(const CallSite &site, size_t index, std::string_view name,
                 const std::vector<int64_t> &sizes) {
  want(site, site.tensor(index, name, static_cast<int>(sizes.size()), DType::I32), name, sizes);
}

/// Types of operands and result, and the format that is multiplied in.
void setFormats(const CallSite &site, GroupedSpec &spec, const TensorShape &a, const TensorShape &b,
                const TensorShape &c, hydra::planfile::DType compute) {
  const bool multiplied = a.dtype == DType::F32 || a.dtype == DType::BF16 || a.dtype == DType::F16;
  if (!multiplied || a.dtype != b.dtype || (c.dtype != a.dtype && c.dtype != DType::F32))
    site.fail(
        "multiplies {} by {} into {}; expected f32, bf16 or f16, both alike, into that or f32",
        support::irName(a.dtype), support::irName(b.dtype), support::irName(c.dtype));
  spec.operands = a.dtype;
  spec.result = c.dtype;
  spec.tf32 = compute == hydra::planfile::DType::tf32;
  if (compute != hydra::planfile::DType::f32 && (!spec.tf32 || a.dtype != DType::F32))
    site.fail("multiplies {} in format {}; expected f32 or, of f32, tf32", support::irName(a.dtype),
              static_cast<int>(compute));
}

} // namespace

RouteSpec hydra::runtime::describeRoute(const CallSite &site) {
  site.argumentCount(5, 5);
  const TensorShape mask = site.tensor(0, "mask", 2, DType::Bool);
  const TensorShape place = site.tensor(3, "place", 2, DType::I32);
  const RouteSpec spec{mask.sizes[0], mask.sizes[1], place.sizes[1]};
  if (spec.k < 1 || spec.k > spec.groups)
    site.fail("rows are in {} of {} groups", spec.k, spec.groups);
  want(site, mask, "mask", mask.sizes);
  wantNumbers(site, 1, "index", {spec.rows * spec.k});
  wantNumbers(site, 2, "group", {spec.rows * spec.k});
  wantNumbers(site, 3, "place", {spec.rows, spec.k});
  wantNumbers(site, 4, "offsets", {spec.groups + 1});
  return spec;
}

GroupedSpec hydra::runtime::describeGroupedLinear(const CallSite &site) {
  site.argumentCount(4, 4);
  const auto &call = site.as<planfile::GroupedLinear>();
  const TensorShape x = site.tensor(0, "x", 2), w = site.tensor(1, "w", 3),
                    y = site.tensor(3, "y", 2);
  GroupedSpec spec{x.sizes[0], w.sizes[0], y.sizes[1], x.sizes[1]};
  spec.transposed = call.transposed();
  want(site, x, "x", x.sizes);
  want(site, w, "w",
       {spec.groups, spec.transposed ? spec.k : spec.n, spec.transposed ? spec.n : spec.k});
  want(site, y, "y", {spec.rows, spec.n});
  wantNumbers(site, 2, "offsets", {spec.groups + 1});
  setFormats(site, spec, x, w, y, call.compute());
  return spec;
}

GroupedSpec hydra::runtime::describeGroupedOuter(const CallSite &site) {
  site.argumentCount(4, 4);
  const TensorShape a = site.tensor(0, "a", 2), b = site.tensor(1, "b", 2),
                    c = site.tensor(3, "c", 3);
  GroupedSpec spec{a.sizes[0], c.sizes[0], a.sizes[1], b.sizes[1]};
  want(site, a, "a", a.sizes);
  want(site, b, "b", {spec.rows, spec.k});
  want(site, c, "c", {spec.groups, spec.n, spec.k});
  wantNumbers(site, 2, "offsets", {spec.groups + 1});
  setFormats(site, spec, a, b, c, site.as<planfile::GroupedOuter>().compute());
  return spec;
}
