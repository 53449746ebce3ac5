// Checks of the call that draws ids.
#include "runtime/calls/SampleCall.h"

#include "runtime/support/Safetensors.h"
#include "runtime/support/Sampling.h"

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

SampleSpec hydra::runtime::describeSample(const CallSite &site) {
  site.argumentCount(7, 7);
  const TensorShape scores = site.tensor(0, "scores", 2), tokens = site.tensor(1, "tokens", 2);
  const SampleSpec spec{scores.sizes[0], scores.sizes[1], tokens.sizes[1]};
  const auto check = [&](size_t index, std::string_view name, DType dtype,
                         const std::vector<int64_t> &sizes) {
    const TensorShape found = site.tensor(index, name, static_cast<int>(sizes.size()), dtype);
    if (found.sizes != sizes || !found.isDense())
      site.fail("argument {} ({}) has shape {}; expected a dense {}", index, name,
                support::shapeText(found.sizes), support::shapeText(sizes));
  };
  check(0, "scores", DType::F32, {spec.batch, spec.ids});
  check(1, "tokens", DType::I32, {spec.batch, spec.tokens});
  check(2, "position", DType::F32, {spec.batch});
  check(3, "settings", DType::F32, {spec.batch, kSamplingSettings});
  check(4, "draw", DType::I32, {spec.batch, kSamplingDraw});
  check(5, "token", DType::I32, {spec.batch});
  check(6, "seen", DType::I32, {spec.batch, support::seenWords(spec.ids)});
  if (spec.ids > kMostSampled)
    site.fail("draws from {} ids; expected at most {}", spec.ids, kMostSampled);
  return spec;
}
