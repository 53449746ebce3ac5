// What a step does: the table of its action, or of the alternative that takes its place.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hydra::runtime {

/// An entry of the union Action. Views the plan.
struct ActionView {
  planfile::Action type = planfile::Action::NONE;
  const void *table = nullptr;

  /// The table if the action is of this type, else null.
  template <typename T> const T *as() const {
    return type == planfile::ActionTraits<T>::enum_value ? static_cast<const T *>(table) : nullptr;
  }
};

/// The action of an alternative of the step; the step's own where there is no such alternative, or
/// it stands for the step's own.
ActionView actionOf(const planfile::Step &step, uint32_t alternative);

/// What the step does when it runs: the action of the chosen alternative.
inline ActionView actionOf(const planfile::Step &step) { return actionOf(step, step.chosen()); }

/// `matmul`, `embedding_grad`: as reports and errors call it.
std::string_view wordOf(planfile::Action action);

using ActionField = std::pair<std::string_view, std::variant<bool, int64_t, double>>;

/// The fields of an action other than Launch that differ from their defaults, and the numbers that
/// have none, in the order of the schema.
std::vector<ActionField> fieldsOf(const ActionView &action);

} // namespace hydra::runtime
