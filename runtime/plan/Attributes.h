// Reading the attributes of a library call by name and kind.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace hydra::runtime {

/// The attributes of a step that is a library call: those of the chosen alternative first, then
/// those of the call; or of an alternative that is a call in place of a launch. Views the plan.
/// Every accessor throws Error, naming step and attribute, when the attribute has another kind, or
/// is absent and no default was given. Meant for preparing steps, not for running them.
class Attributes {
public:
  explicit Attributes(const planfile::Step &step) : Attributes(step, step.chosen()) {}
  /// With this alternative in place of the chosen one.
  Attributes(const planfile::Step &step, uint32_t alternative);

  /// The registered function that the step calls.
  std::string_view function() const;

  bool flag(std::string_view name, std::optional<bool> otherwise = {}) const;
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = {}) const;
  double real(std::string_view name, std::optional<double> otherwise = {}) const;
  std::string_view text(std::string_view name,
                        std::optional<std::string_view> otherwise = {}) const;

private:
  /// Null when there is no such attribute and one is not `required`.
  const planfile::Attr *find(std::string_view name, planfile::AttrKind kind, bool required) const;

  const planfile::Step &step;
  const planfile::Alternative *alternative; ///< may be null
  const planfile::LibraryCall *call;        ///< null: the alternative is one
};

} // namespace hydra::runtime
