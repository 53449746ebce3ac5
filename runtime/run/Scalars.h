// The run-time scalars of a plan: written before each step from their schedules.
#pragma once

#include "runtime/run/Executor.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// What a run changes about the schedule of a scalar; what is not given stays as in the plan.
struct ScheduleChange {
  std::optional<planfile::ScheduleT> whole; // instead of the plan's
  std::optional<planfile::ScheduleKind> kind;
  std::optional<double> peak, floor;
  std::optional<int64_t> warmup, stable, total; // steps
};

class Scalars {
public:
  /// `runSteps`: the last step of the run, where schedules end that leave it open; 0: it has none.
  /// Throws Error when the plan has no scalar of a name in `changes`, or a schedule cannot be.
  Scalars(const planfile::Plan &plan, const std::map<std::string, ScheduleChange> &changes,
          int64_t runSteps);

  /// Values at step `step` (0 is the first) into the device's block.
  void write(Executor &executor, int64_t step) const;
  /// Until the next `write`, guards refuse all updates, in plans that have a number for that. It is
  /// none of those that schedules and flags are about.
  void hold(Executor &executor) const;

  /// Value of scalar `name` at a step; nothing when the plan has none of that name.
  std::optional<double> value(std::string_view name, int64_t step) const;

  /// Each scalar with its schedule in words, such as {"lr", "cosine 0.001 to 0.0001, ..."}.
  std::vector<std::pair<std::string, std::string>> describe() const;

private:
  struct Entry {
    std::string name;
    const planfile::Tensor *tensor;
    uint32_t tensorIndex;
    planfile::ScheduleT schedule;
  };

  static void writeNumber(Executor &executor, const planfile::Tensor &tensor, uint32_t index,
                          double value);

  std::vector<Entry> entries;
  const planfile::Scalar *holding = nullptr; // what refuses updates, if the plan has that
  const planfile::Tensor *holdingTensor = nullptr;
};

} // namespace hydra::runtime
