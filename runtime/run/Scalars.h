// The run-time scalars of a plan: written before each step from their schedules.
#pragma once

#include "runtime/run/Executor.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// What a run changes about the schedule of a scalar; what is not given stays as in the plan.
struct ScheduleChange {
  std::optional<planfile::ScheduleT> whole; // instead of the plan's
  std::optional<planfile::ScheduleKind> kind;
  std::optional<double> peak, floor;
  std::optional<int64_t> warmup, stable, total; // steps
};

/// A schedule as a checkpoint keeps it.
struct SavedSchedule {
  planfile::ScheduleT open;    // as plan and flags have it, which may leave its end to the run
  planfile::ScheduleT present; // what the run went by
  std::string plan;            // in words, what the plan alone says
};

/// Those of a run, by the names of their scalars.
struct SavedSchedules {
  std::map<std::string, SavedSchedule> scalars;
  int64_t step = 0;     // steps made
  int64_t lastStep = 0; // of the run, where one of them ends there
};

class Scalars {
public:
  /// `runSteps`: the last step of the run, where schedules end that leave it open; 0: it has none.
  /// What a resumed run has `saved` counts instead of the plan; a schedule that neither a change
  /// nor another last step touches goes on as it was. Throws Error when the plan has no scalar of a
  /// name in `changes`, or a schedule cannot be. `seed`: of the run, from which keys are drawn.
  Scalars(const planfile::Plan &plan, const std::map<std::string, ScheduleChange> &changes,
          int64_t runSteps, const SavedSchedules *saved = nullptr, uint64_t seed = 0);

  /// Values at step `step` (0 is the first) into the device's block.
  void write(Executor &executor, int64_t step) const;
  /// The number of the next micro-batch of a step, from 0, where programs take it.
  void writeMicroBatch(Executor &executor, uint64_t number) const;
  /// Until the next `write`, guards refuse all updates, in plans that have a number for that. It is
  /// none of those that schedules and flags are about.
  void hold(Executor &executor) const;

  /// Value of scalar `name` at a step; nothing when the plan has none of that name.
  std::optional<double> value(std::string_view name, int64_t step) const;
  /// The same by its schedule alone.
  std::optional<double> scheduled(std::string_view name, int64_t step) const;
  /// Gives it another value in that step alone, until one is set for another step.
  void set(std::string_view name, int64_t step, double value);

  /// Where the learning rate has ended to fall, if it is of kind wsd and its last step is known.
  std::optional<int64_t> endOfDecay() const;
  /// Whether it is at its peak, and no longer warming up.
  bool isStable(int64_t step) const;
  /// Lets it fall from step `begin` to step `end`.
  void decay(int64_t begin, int64_t end);

  /// Whether the schedule of a scalar is 0 for some steps, and something then.
  bool waits(std::string_view name) const;
  /// Lets it begin at `step`, to rise over so many steps if that is given; false: it has begun.
  bool start(std::string_view name, int64_t step, std::optional<int64_t> over);

  /// Each scalar that runs do not count or draw, with its schedule in words, such as
  /// {"lr", "cosine 0.001 to 0.0001, ..."}.
  std::vector<std::pair<std::string, std::string>> describe() const;

  /// For a checkpoint behind so many steps.
  SavedSchedules save(int64_t step) const;

private:
  struct Entry {
    std::string name;
    const planfile::Tensor *tensor;
    uint32_t tensorIndex;
    SavedSchedule schedule;
    int64_t setStep = -1; // in which it is `setValue`
    double setValue = 0;
  };
  /// What it is in that step before its first micro-batch.
  double at(const Entry &entry, int64_t step) const;
  const Entry *find(std::string_view name) const;
  Entry *find(std::string_view name) {
    return const_cast<Entry *>(std::as_const(*this).find(name));
  }
  const planfile::ScheduleT *decaying() const;

  static void writeNumber(Executor &executor, const planfile::Tensor &tensor, uint32_t index,
                          double value);

  std::vector<Entry> entries;
  uint64_t seed; ///< of keys that are drawn
  int64_t lastStep;
  const planfile::Scalar *holding = nullptr; // what refuses updates, if the plan has that
  const planfile::Tensor *holdingTensor = nullptr;
};

} // namespace hydra::runtime
