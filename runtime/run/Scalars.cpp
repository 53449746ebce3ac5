// Evaluates schedules and rounds to each scalar's dtype.
#include "runtime/run/Scalars.h"

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <array>
#include <span>

using namespace hydra::runtime;

Scalars::Scalars(const planfile::Plan &plan, const std::map<std::string, double> &given)
    : overrides(given) {
  std::string names;
  for (const planfile::Scalar *scalar : *plan.scalars()) {
    const std::string name = scalar->name()->str();
    names += (names.empty() ? "" : ", ") + name;
    const auto found = overrides.find(name);
    entries.push_back({scalar, plan.tensors()->Get(scalar->tensor()),
                       found == overrides.end() ? nullptr : &found->second});
  }
  for (const auto &[name, value] : overrides) {
    if (!plan.scalars() || names.empty())
      support::fail("--{}: the plan has no run-time scalars", name);
    else if (std::none_of(entries.begin(), entries.end(), [&, &n = name](const Entry &entry) {
               return entry.scalar->name()->string_view() == n;
             }))
      support::fail("--{}: the plan has no scalar of this name; it has {}", name, names);
  }
}

void Scalars::write(Executor &executor, int64_t step) const {
  for (const Entry &entry : entries) {
    const double value =
        entry.constant ? *entry.constant : scheduleValue(*entry.scalar->schedule(), step);
    std::array<std::byte, 8> bytes;
    const std::span<std::byte> used =
        std::span(bytes).first(support::byteSize(dtypeOf(*entry.tensor)));
    support::fromDoubles(dtypeOf(*entry.tensor), std::span(&value, 1), used);
    executor.write(entry.scalar->tensor(), used);
  }
}
