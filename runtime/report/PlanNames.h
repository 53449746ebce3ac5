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

/// `layers.3.mlp.down`; `-` for none.
inline std::string_view pathText(const planfile::Plan &plan, int32_t index) {
  return index < 0 ? "-" : plan.paths()->Get(static_cast<uint32_t>(index))->string_view();
}

/// The pass that made a step; `-` where the model's text did.
inline std::string_view passText(const planfile::Plan &plan, const planfile::Step &step) {
  return step.pass() < 0
             ? "-"
             : plan.header()->passes()->Get(static_cast<uint32_t>(step.pass()))->string_view();
}

/// `layers.*.mlp.down`: the same part of all elements of stacks; `outside` for none.
inline std::string moduleText(const planfile::Plan &plan, int32_t index) {
  if (index < 0)
    return "outside";
  const std::string_view path = pathText(plan, index);
  std::string pattern;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    pattern += pattern.empty() ? "" : ".";
    pattern += number ? "*" : part;
    begin = end + 1;
  }
  return pattern;
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
