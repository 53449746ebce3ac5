// libFuzzer: no bytes whatsoever make the plan loader do more than throw a one-line Error, and all
// that it accepts can be read. Size and checksum are repaired first, or nothing would get past
// them.
#include "runtime/plan/Accesses.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/support/Error.h"
#include "test/support/SamplePlan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

using namespace hydra;
using namespace hydra::runtime;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

constexpr size_t kPrologue = 40;

/// Four ranks have a unit of two variables in pieces.
test::PlanBuilder sampleWithUnit() {
  test::PlanBuilder builder = test::samplePlan();
  const uint32_t node = builder.axis("node", 2), data = builder.axis("data", 2);
  const uint32_t unit = builder.tensor("unit", {1, 4}, planfile::SegmentKind::persistent);
  builder.member("w2", unit, {3, 3}, 0, {data, node});
  builder.member("b2", unit, {5}, 10, {data, node});
  return builder;
}

/// What every executor does before it runs anything.
void readAll(const planfile::Plan &plan) {
  for (const planfile::Variable *variable : *plan.variables())
    for (const uint64_t rank : {uint64_t{0}, ranksOf(plan) - 1}) {
      const VariablePart part(plan, *variable, rank);
      uint64_t elements = 1;
      for (const int64_t size : *plan.tensors()->Get(variable->tensor())->shape())
        elements *= static_cast<uint64_t>(size);
      if (part.first < 0 || part.count < 0 || part.end() > elementsOf(plan, *variable) ||
          part.place < 0 || static_cast<uint64_t>(part.place + part.count) > elements)
        std::abort();
    }
  for (const planfile::Scalar *scalar : *plan.scalars())
    scheduleValue(resolveSchedule(*scalar->schedule(), std::numeric_limits<int64_t>::max()), 1000);
  for (const planfile::Program *program : *plan.programs()) {
    std::vector<ByteAccess> accesses;
    for (const planfile::Block *block : *program->blocks())
      collectAccesses(plan, *block, {}, accesses);
    for (const ByteAccess &access : accesses)
      if (access.bytes.end > plan.segments()->Get(static_cast<uint32_t>(access.segment))->size())
        std::abort();
  }
  const std::unique_ptr<planfile::PlanT> copy(plan.UnPack());
  if (encodePlan(*copy).empty())
    std::abort();
}

} // namespace

/// Starts from the sample, so that no binary file in the tree has to follow the format.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned) {
  if (size < kPrologue) {
    const std::vector<std::byte> sample = encodePlan(sampleWithUnit().plan);
    const size_t count = std::min(sample.size(), maxSize);
    std::memcpy(data, sample.data(), count);
    return count;
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < kPrologue)
    return 0;
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), data, size);
  sealPlan(bytes);
  try {
    readAll(PlanFile::parse(std::move(bytes), "plan.fb").plan());
  } catch (const support::Error &error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos)
      std::abort();
  }
  return 0;
}
