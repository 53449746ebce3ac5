// Members of units against the piece of a rank.
#include "runtime/plan/VariablePart.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/TensorBytes.h"

#include <algorithm>

using namespace hydra::planfile;

namespace hydra::runtime {

namespace {

/// How many pieces the unit of a variable is cut into.
uint64_t piecesOf(const Plan &plan, const Variable &variable) {
  return sizeOf(plan, axesOf(variable));
}

} // namespace

std::span<const uint32_t> axesOf(const Variable &variable) {
  const Member *member = variable.member();
  return member && member->axes() ? std::span(member->axes()->data(), member->axes()->size())
                                  : std::span<const uint32_t>();
}

std::vector<int64_t> shapeOf(const Plan &plan, const Variable &variable) {
  const auto &shape = variable.member() ? *variable.member()->shape()
                                        : *plan.tensors()->Get(variable.tensor())->shape();
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  if (variable.packed() && !sizes.empty())
    sizes.back() *= 2;
  return sizes;
}

int64_t elementsOf(const Plan &plan, const Variable &variable) {
  return elementsOf(shapeOf(plan, variable));
}

VariablePart::VariablePart(const Plan &plan, const Variable &variable, uint64_t rank)
    : count(elementsOf(plan, variable)), isFirst(rank == 0) {
  const Member *member = variable.member();
  if (!member)
    return;
  const auto offset = static_cast<int64_t>(member->offset());
  place = offset;
  if (piecesOf(plan, variable) == 1)
    return;
  const std::span<const uint32_t> along = axesOf(variable);
  axes.assign(along.begin(), along.end());
  const uint64_t coordinate = coordinateOf(plan, rank, along);
  isFirst = rank == distanceOf(plan, along, coordinate);
  const int64_t piece = elementsOf(*plan.tensors()->Get(variable.tensor()));
  const int64_t begin = piece * static_cast<int64_t>(coordinate);
  first = std::clamp<int64_t>(begin - offset, 0, count);
  count = std::clamp<int64_t>(begin + piece - offset, 0, count) - first;
  place = count > 0 ? offset + first - begin : 0;
}

bool cutsVariables(const Plan &plan) {
  return std::ranges::any_of(
      *plan.variables(), [&](const Variable *variable) { return piecesOf(plan, *variable) > 1; });
}

} // namespace hydra::runtime
