// A plan has fewer kinds than there can be, so that most plans need no texture.
#include "tools/hydra-inspect/Paints.h"

#include "runtime/report/PlanNodes.h"

#include <algorithm>
#include <cstdint>

namespace hydra::inspect {

using namespace planfile;

namespace {

/// Where a kind is to be seen: what the pages show first has the plain colours.
enum Place : uint8_t { kFront, kBack, kNowhere };

std::vector<size_t> numbered(const std::vector<Place> &places) {
  std::vector<size_t> paints(places.size());
  size_t next = 0;
  for (const Place wanted : {kFront, kBack, kNowhere})
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] == wanted)
        paints[i] = next++;
  return paints;
}

} // namespace

std::vector<size_t> paintsOfCategories(const Plan &plan) {
  std::vector<Place> places(static_cast<size_t>(Category::MAX) + 1, kNowhere);
  for (const Tensor *tensor : *plan.tensors()) {
    Place &place = places[static_cast<size_t>(tensor->category())];
    place = std::min(place, tensor->segment() == SegmentKind::transient ? kFront : kBack);
  }
  return numbered(places);
}

std::vector<size_t> paintsOfClasses(const Plan &plan) {
  std::vector<Place> places(static_cast<size_t>(OpClass::MAX) + 1, kNowhere);
  for (const Program *program : *plan.programs())
    for (const report::PlanNode &node : report::nodesOf(plan, *program))
      if (const Step *step = node.block->node_as_Step())
        places[static_cast<size_t>(step->op_class())] = kFront;
  return numbered(places);
}

} // namespace hydra::inspect
