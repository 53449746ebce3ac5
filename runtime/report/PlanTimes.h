// Puts other times into a plan.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/report/MeasuredRates.h"

#include <functional>
#include <vector>

namespace hydra::report {

struct PlacedStep {
  const planfile::Step *step = nullptr;
  bool conditional = false; ///< in a case of a switch
};

/// All steps: those of one program behind those of the program before it, those of a block where it
/// stands.
std::vector<PlacedStep> stepsOf(const planfile::Plan &plan);

/// Gives steps their times in microseconds, and programs and the plan what follows; what was there
/// becomes the limit of a step that has none. Exchanges between ranks keep theirs. `number`: in the
/// order of stepsOf.
void setTimes(planfile::PlanT &plan,
              const std::function<double(size_t number, const StepWork &work)> &timeOf);

/// Predictions by measured rates instead of limits.
void predictTimes(planfile::PlanT &plan, const MeasuredRates &rates);

/// A packed copy to look at.
class PackedPlan {
public:
  explicit PackedPlan(const planfile::PlanT &plan);
  const planfile::Plan &operator*() const {
    return *flatbuffers::GetRoot<planfile::Plan>(bytes.data());
  }
  const planfile::Plan *operator->() const { return &**this; }

private:
  flatbuffers::DetachedBuffer bytes;
};

} // namespace hydra::report
