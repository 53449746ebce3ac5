// libFuzzer: no bytes whatsoever make the plan loader do more than throw a one-line Error, and all
// that it accepts can be read. Size and checksum are repaired first, or nothing would get past
// them.
#include "runtime/calls/CheckCalls.h"
#include "runtime/plan/Accesses.h"
#include "runtime/plan/Actions.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Poison.h"
#include "runtime/plan/Schedule.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/support/Error.h"
#include "test/support/SamplePlans.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

using namespace hydra;
using namespace hydra::runtime;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

constexpr size_t kPrologue = 40;

void checkOneLine(const support::Error &error) {
  if (std::string_view(error.what()).find('\n') != std::string_view::npos)
    std::abort();
}

/// What no mutation of which the loader accepts may break: the fields of actions, for reports, and
/// the functions that executors would prepare, which refuse what they do not take.
void readSteps(const planfile::Plan &plan,
               const flatbuffers::Vector<flatbuffers::Offset<planfile::Block>> &blocks) {
  for (const planfile::Block *block : blocks)
    if (const planfile::Step *step = block->node_as_Step()) {
      const uint32_t alternatives = step->alternatives() ? step->alternatives()->size() : 0;
      for (uint32_t i = 0; i < std::max(1u, alternatives); ++i)
        fieldsOf(actionOf(*step, i));
      try {
        checkCalls(plan, *step);
      } catch (const support::Error &error) {
        checkOneLine(error);
      }
    } else if (const planfile::Loop *loop = block->node_as_Loop()) {
      readSteps(plan, *loop->blocks());
    } else {
      for (const planfile::Case *one : *block->node_as_Switch()->cases())
        readSteps(plan, *one->blocks());
    }
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
  for (const uint64_t rank : {uint64_t{0}, ranksOf(plan) - 1})
    coordinateTensors(plan, rank);
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const planfile::Program *program = plan.programs()->Get(i);
    const uint32_t optimizations = plan.optimizations() ? plan.optimizations()->size() : 0;
    programInForm(plan, i, ProgramForm::safe);
    for (uint32_t without = 0; without < optimizations; ++without)
      programInForm(plan, i, formWithout(without));
    unwrittenBytes(plan, *program);
    readSteps(plan, *program->blocks());
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

/// Starts from samples, so that no binary file in the tree has to follow the format; now and then
/// again, so that each of them has its turn.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  static const std::vector<std::vector<std::byte>> samples = [] {
    std::vector<std::vector<std::byte>> files;
    for (const test::PlanBuilder &builder : test::samplePlans())
      files.push_back(encodePlan(builder.plan));
    return files;
  }();
  constexpr unsigned kTurns = 64; // of mutations, one begins again
  if (size >= kPrologue && seed % kTurns != 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  const std::vector<std::byte> &sample = samples[seed / kTurns % samples.size()];
  if (sample.size() > maxSize) {
    std::fprintf(stderr, "PlanFuzzer: a sample has %zu bytes; expected -max_len of at least that\n",
                 sample.size());
    std::abort();
  }
  std::memcpy(data, sample.data(), sample.size());
  return sample.size();
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
    checkOneLine(error);
  }
  return 0;
}
