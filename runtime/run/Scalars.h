// The run-time scalars of a plan: written before each step from their schedules.
#pragma once

#include "runtime/run/Executor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hydra::runtime {

class Scalars {
public:
  /// `overrides`: constant values by name, in place of the schedules. Throws Error when the plan
  /// has no scalar of such a name.
  Scalars(const planfile::Plan &plan, const std::map<std::string, double> &overrides);

  /// Values at step `step` (0 is the first) into the device's block.
  void write(Executor &executor, int64_t step) const;

private:
  struct Entry {
    const planfile::Scalar *scalar;
    const planfile::Tensor *tensor;
    const double *constant; // null: by schedule
  };

  std::map<std::string, double> overrides;
  std::vector<Entry> entries;
};

} // namespace hydra::runtime
