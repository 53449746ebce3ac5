// What could be done about where the time of a step goes, with reasons.
#pragma once

#include "runtime/report/Measurement.h"
#include "runtime/report/Section.h"

#include <string>
#include <vector>

namespace hydra::report {

/// `tag`: OPTIMIZED (as fast as predicted), CHECK, INVESTIGATE (far from what is predicted) or TIP
/// (a flag that helps). `percent` of the time of a step, measured or predicted.
struct Advice {
  std::string tag, subject;
  double percent = 0;
  std::string reason, flag; ///< the flag is empty where none helps
};

/// First what concerns the whole step (waiting for data, gaps, exchanges, what is computed again,
/// copies that need not be), then the ten operations with most time. Nothing of what takes less
/// than a fiftieth.
std::vector<Advice> adviceFor(const planfile::Plan &plan, const Measurement &measured);

/// `advice`: [{"tag", "subject", "percent", "reason", "flag"}].
Section adviceSection(const planfile::Plan &plan, const Measurement &measured);

} // namespace hydra::report
