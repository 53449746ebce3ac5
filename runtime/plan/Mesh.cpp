// Counting the ranks of a mesh.
#include "runtime/plan/Mesh.h"

#include <fmt/format.h>

#include <charconv>
#include <ranges>

namespace hydra::runtime {

uint64_t ranksOf(const planfile::Plan &plan) {
  uint64_t ranks = 1;
  if (plan.mesh())
    for (const planfile::MeshAxis *axis : *plan.mesh())
      ranks *= axis->size();
  return ranks;
}

uint64_t tokensPerRun(const planfile::Plan &plan, const planfile::Program &program) {
  for (const planfile::Input *input : *program.inputs()) {
    if (input->kind() != planfile::InputKind::tokens)
      continue;
    uint64_t tokens = input->batch_dimension() < 0 ? 1 : ranksOf(plan);
    for (const int64_t size : *plan.tensors()->Get(input->tensor())->shape())
      tokens *= static_cast<uint64_t>(size);
    return tokens;
  }
  return 0;
}

std::string meshText(const planfile::Plan &plan) {
  std::string text;
  if (plan.mesh())
    for (const planfile::MeshAxis *axis : *plan.mesh())
      text += fmt::format("{}{}:{}", text.empty() ? "" : ",", axis->name()->string_view(),
                          axis->size());
  return text;
}

std::string axesText(const planfile::Plan &plan, std::span<const uint32_t> axes) {
  std::string text;
  for (const uint32_t axis : axes)
    text += (text.empty() ? "" : "*") + plan.mesh()->Get(axis)->name()->str();
  return text;
}

uint64_t nodeRanksOf(const planfile::Plan &plan) {
  uint64_t ranks = 0;
  for (const planfile::KeyValue *option : *plan.header()->options())
    if (option->key()->string_view() == "node-ranks") {
      const std::string_view text = option->value()->string_view();
      if (std::from_chars(text.data(), text.data() + text.size(), ranks).ec != std::errc())
        ranks = 0;
    }
  return ranks;
}

uint64_t coordinateOf(const planfile::Plan &plan, uint64_t rank, uint32_t axis) {
  return rank / strideOf(plan, axis) % plan.mesh()->Get(axis)->size();
}

uint64_t coordinateOf(const planfile::Plan &plan, uint64_t rank, std::span<const uint32_t> axes) {
  uint64_t coordinate = 0;
  for (const uint32_t axis : axes)
    coordinate = coordinate * plan.mesh()->Get(axis)->size() + coordinateOf(plan, rank, axis);
  return coordinate;
}

uint64_t sizeOf(const planfile::Plan &plan, std::span<const uint32_t> axes) {
  uint64_t size = 1;
  for (const uint32_t axis : axes)
    size *= plan.mesh()->Get(axis)->size();
  return size;
}

uint64_t distanceOf(const planfile::Plan &plan, std::span<const uint32_t> axes,
                    uint64_t coordinate) {
  uint64_t distance = 0;
  for (const uint32_t axis : std::views::reverse(axes)) {
    const uint64_t size = plan.mesh()->Get(axis)->size();
    distance += coordinate % size * strideOf(plan, axis);
    coordinate /= size;
  }
  return distance;
}

std::vector<std::pair<uint32_t, int32_t>> coordinateTensors(const planfile::Plan &plan,
                                                            uint64_t rank) {
  std::vector<std::pair<uint32_t, int32_t>> found;
  for (uint32_t axis = 0; plan.mesh() && axis < plan.mesh()->size(); ++axis)
    if (const int32_t tensor = plan.mesh()->Get(axis)->rank(); tensor >= 0)
      found.emplace_back(static_cast<uint32_t>(tensor),
                         static_cast<int32_t>(coordinateOf(plan, rank, axis)));
  return found;
}

uint64_t strideOf(const planfile::Plan &plan, uint32_t axis) {
  uint64_t stride = 1;
  for (uint32_t inner = axis + 1; inner < plan.mesh()->size(); ++inner)
    stride *= plan.mesh()->Get(inner)->size();
  return stride;
}

} // namespace hydra::runtime
