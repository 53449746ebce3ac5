// Which elements a variable has, and which of them a rank holds.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <span>
#include <vector>

namespace hydra::runtime {

/// Of the variable: where it is a member of a unit, or packed, its tensor's is another.
std::vector<int64_t> shapeOf(const planfile::Plan &plan, const planfile::Variable &variable);
int64_t elementsOf(const planfile::Plan &plan, const planfile::Variable &variable);

/// The axes of the mesh along which its unit is cut (Member in plan.fbs); none: every rank has all.
std::span<const uint32_t> axesOf(const planfile::Variable &variable);

/// What a rank holds of a variable: all elements, or those of a unit's member that lie in the
/// rank's piece. Elements count in row-major order.
struct VariablePart {
  VariablePart(const planfile::Plan &plan, const planfile::Variable &variable, uint64_t rank);

  int64_t end() const { return first + count; }
  bool isCut() const { return !axes.empty(); }

  int64_t first = 0, count = 0; ///< elements [first, first + count); there may be none
  int64_t place = 0;            ///< of the first one, in elements of the variable's tensor
  std::vector<uint32_t> axes;   ///< along which ranks hold different elements; none: all hold all
  bool isFirst = false;         ///< no rank of a lower number holds the same elements
};

/// Whether ranks hold different elements of any variable.
bool cutsVariables(const planfile::Plan &plan);

} // namespace hydra::runtime
