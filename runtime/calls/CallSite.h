// A step that is not a launch, as it stands in a plan: its tensors and its action, for those who
// check or prepare it.
#pragma once

#include "runtime/plan/Actions.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// Shape and strides of a tensor argument, in elements.
struct TensorShape {
  support::DType dtype = support::DType::F32;
  std::vector<int64_t> sizes, strides;

  size_t rank() const { return sizes.size(); }
  int64_t elements() const;
  bool isDense() const;
};

/// A step that an executor has a function for: what descriptions are made from.
class CallSite {
public:
  CallSite(const planfile::Plan &plan, const planfile::Step &step)
      : CallSite(plan, step, step.chosen()) {}
  /// With this alternative of the step instead of the chosen one.
  CallSite(const planfile::Plan &plan, const planfile::Step &step, uint32_t alternative)
      : action(actionOf(step, alternative)), plan(plan), step(step) {}

  const ActionView action;

  /// The table of the action, which must be of this type.
  template <typename T> const T &as() const { return *action.as<T>(); }

  planfile::TargetKind target() const { return plan.target()->kind(); }

  /// Ranks along an axis of the plan's mesh. Throws Error when there is no such axis.
  uint64_t ranksAlong(uint32_t axis) const;

  /// Throws Error unless the step has from `least` to `most` arguments, all of them buffers.
  size_t argumentCount(size_t least, size_t most) const;

  /// Argument `index`, called `name` in errors. Throws Error unless it has this rank (-1: any) and,
  /// if given, this dtype.
  TensorShape tensor(size_t index, std::string_view name, int rank = -1) const;
  TensorShape tensor(size_t index, std::string_view name, int rank, support::DType dtype) const;

  /// The memory that argument `index` is in.
  planfile::SegmentKind segment(size_t index) const;

  /// Where the model asks for it: `layer 3, llama.mlir:20`.
  std::string modelPlace() const;

  /// Throws Error: `step <name>: <function>: <message>`.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args &&...args) const {
    support::fail("{}: {}", place(), fmt::format(format, std::forward<Args>(args)...));
  }

private:
  std::string place() const;

  const planfile::Plan &plan;
  const planfile::Step &step;
};

} // namespace hydra::runtime
