// What --dynamic-clip, --batch-filter, --loss-spike, --cooldown, --start-early and --end-phase ask
// for.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace hydra::runtime {

/// The bound of the gradients' norm is `factor` times its moving mean, from `least` to `most`.
struct DynamicClip {
  double factor = 0;
  double least = 0, most = std::numeric_limits<double>::max();
};

/// A batch whose loss is above `factor` times its moving mean changes nothing.
struct BatchFilter {
  double factor = 0;
};

/// A loss above `factor` times its moving mean multiplies the learning rate of the `steps` that
/// follow by `rate`.
struct LossSpike {
  double factor = 0;
  int64_t steps = 100;
  double rate = 0.5;
};

/// Which loss lets a wsd schedule decay early when it rises.
enum class Cooldown { off, eval, train };

/// What waits for the first step, not before step `from` (from 0), behind which the mean loss is
/// below `loss`.
struct LowLoss {
  double loss = 0;
  int64_t from = 0;
};

/// The schedule of a scalar begins before its time, and then rises over `over` steps.
struct EarlyStart {
  std::string scalar;
  LowLoss when;
  std::optional<int64_t> over;
};

/// Texts of flags by their names, such as {"dynamic-clip", "2,min=50"}; "off" is one that is off.
using PolicyFlags = std::map<std::string, std::string>;

struct Policies {
  std::optional<DynamicClip> clip;
  std::optional<BatchFilter> filter;
  std::optional<LossSpike> spike;
  Cooldown cooldown = Cooldown::off;
  std::optional<EarlyStart> early;
  std::map<int64_t, LowLoss> ends; // of phases before their time, by their numbers from 1
};

/// Throws Error for a name or text that means nothing.
Policies parsePolicies(const PolicyFlags &flags);

} // namespace hydra::runtime
