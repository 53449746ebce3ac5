// Checks of linear recurrences.
#include "runtime/calls/RecurrenceCall.h"

#include "runtime/support/Safetensors.h"

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

LinearRecurrenceSpec hydra::runtime::describeLinearRecurrence(const CallSite &site) {
  LinearRecurrenceSpec spec;
  spec.backward = site.as<planfile::LinearRecurrence>().backward();
  // Behind x, and the gradient of y in front of it.
  const size_t x = spec.backward ? 1 : 0, results = spec.backward ? 5 : 1;
  constexpr size_t parameters = 4;
  const size_t least = x + 1 + parameters + results;
  spec.begins = site.argumentCount(least, least + 1) > least;
  const TensorShape rows = site.tensor(x, "x", 3, DType::F32),
                    q = site.tensor(x + 1, "q", 2, DType::F32);
  spec.batch = rows.sizes[0];
  spec.tokens = rows.sizes[1];
  spec.channels = rows.sizes[2];
  spec.states = q.sizes[1];
  const auto want = [&](size_t index, std::string_view name, const std::vector<int64_t> &sizes) {
    const TensorShape found = site.tensor(index, name, -1, DType::F32);
    if (found.sizes != sizes || !found.isDense())
      site.fail("{} has shape {}; expected a dense {}", name, support::shapeText(found.sizes),
                support::shapeText(sizes));
  };
  const std::vector<int64_t> states = {spec.channels, spec.states};
  want(x, "x", rows.sizes);
  size_t next = x + 1;
  for (const char *name : {"q_re", "q_im", "c_re", "c_im"})
    want(next++, name, states);
  if (spec.begins)
    want(next++, "begins", {spec.batch, spec.tokens, 1});
  want(next++, spec.backward ? "dx" : "y", rows.sizes);
  if (!spec.backward)
    return spec;
  want(0, "dy", rows.sizes);
  for (const char *name : {"dq_re", "dq_im", "dc_re", "dc_im"})
    want(next++, name, states);
  return spec;
}
