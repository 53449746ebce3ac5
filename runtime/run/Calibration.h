// Measures how long steps take on this machine, for predictions.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/report/MeasuredRates.h"
#include "runtime/report/PlanTimes.h"
#include "runtime/run/Executor.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// Times of plans of one target.
class Calibration {
public:
  /// `alone`: one step behind the other, for times of steps.
  using MakeExecutor = std::function<std::unique_ptr<Executor>(const PlanFile &file, bool alone)>;

  /// Runs steps or calls of the plan: first alone, then as it says. Throws Error where the device
  /// has no time line.
  void add(const PlanFile &file, const MakeExecutor &makeExecutor, int repeats);

  /// What was measured; `about`: where.
  report::MeasuredRates rates(std::string about) const;

  /// A line for each plan: measured, and as these rates predict it.
  std::string text(const report::MeasuredRates &rates) const;

private:
  using Sizes = std::vector<double>;
  struct Times {
    std::vector<double> limits, microseconds;
  };
  struct Whole {
    std::string name;
    std::shared_ptr<planfile::PlanT> plan;      ///< with the times of steps as measured
    std::shared_ptr<report::PackedPlan> packed; ///< the same
    bool isFixed;                               ///< nothing in it depends on numbers
    double microseconds;                        ///< of a step or call
  };
  /// Microseconds of a whole as its steps say, and what goes on around them.
  struct Parts {
    double steps = 0, runs = 0, inputs = 0; ///< runs: times run_microseconds; inputs likewise
  };

  void addSteps(const PlanFile &file, Executor &executor, int repeats);
  std::pair<planfile::Sharing, double> fitAround(double exclusive, double gap) const;

  std::map<std::string, std::map<Sizes, Times>> steps; ///< by kind
  std::vector<double> gaps;                            ///< microseconds, of each plan
  std::vector<Whole> wholes;
};

/// The text of a target's description with other measured steps.
std::string withMeasured(const std::string &description, const report::MeasuredRates &rates,
                         const std::string &origin);

} // namespace hydra::runtime
