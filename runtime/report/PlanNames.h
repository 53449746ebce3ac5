// How a plan's tensors, places and categories are called in reports.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::report {

/// `act.attn_out`: the spelling of memory reports.
inline std::string categoryName(planfile::Category category) {
  std::string name = EnumNameCategory(category);
  if (name.starts_with("act_"))
    name[3] = '.';
  return name;
}

/// `model.mlir:12:3`.
inline std::string locationText(const planfile::Plan &plan, uint32_t index) {
  const planfile::Location &location = *plan.locations()->Get(index);
  return fmt::format("{}:{}:{}", plan.files()->Get(location.file())->string_view(), location.line(),
                     location.column());
}

inline std::string_view tensorName(const planfile::Plan &plan, uint32_t index) {
  return plan.tensors()->Get(index)->name()->string_view();
}

inline std::vector<int64_t> shapeOf(const planfile::Tensor &tensor) {
  return {tensor.shape()->begin(), tensor.shape()->end()};
}

inline std::string_view dtypeName(const planfile::Tensor &tensor) {
  return support::irName(runtime::dtypeOf(tensor));
}

/// Empty when the field was left out.
inline std::string_view textOf(const flatbuffers::String *string) {
  return flatbuffers::GetStringView(string);
}

} // namespace hydra::report
