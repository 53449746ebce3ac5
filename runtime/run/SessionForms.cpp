// The two forms that programs may have, and steps that only try one.
#include "runtime/run/Session.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::shown;

namespace {

/// The buffers that a program touches, by their numbers.
void addBuffers(const Plan &plan, const flatbuffers::Vector<flatbuffers::Offset<Block>> &blocks,
                std::set<uint32_t> &buffers) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step()) {
      for (const Arg *arg : *step->args())
        buffers.insert(plan.tensors()->Get(arg->tensor())->buffer());
    } else if (const Loop *loop = block->node_as_Loop()) {
      addBuffers(plan, *loop->blocks(), buffers);
    } else if (const Switch *choice = block->node_as_Switch()) {
      for (const Case *one : *choice->cases())
        addBuffers(plan, *one->blocks(), buffers);
    }
  }
}

/// Those of all programs that have a safe form, or of their safe forms.
std::set<uint32_t> buffersOf(const Plan &plan, bool safeForm) {
  std::set<uint32_t> buffers;
  for (const Program *program : *plan.programs()) {
    if (program->safe() < 0)
      continue;
    const auto *form =
        safeForm ? plan.programs()->Get(static_cast<uint32_t>(program->safe())) : program;
    addBuffers(plan, *form->blocks(), buffers);
  }
  return buffers;
}

/// Whether what a rank has of a copy can be made of what it has of the variable.
bool isOfSamePart(const Plan &plan, const Variable &copy, const Variable &owner, uint64_t rank) {
  const VariablePart part(plan, copy, rank), own(plan, owner, rank);
  return part.first == own.first && part.count == own.count;
}

} // namespace

bool Session::hasSafeForm() const {
  return trainPlan &&
         std::ranges::all_of(parts, [](const Part &part) { return part.other.has_value(); });
}

void Session::swapForm(Part &part) {
  if (part.other)
    std::swap(static_cast<Form &>(part), *part.other);
}

void Session::useSafeForm(bool use) {
  if (safeForm == use)
    return;
  std::ranges::for_each(parts, swapForm);
  for (EarlyPart &phase : early)
    swapForm(phase.part);
  if (eval)
    swapForm(*eval);
  std::ranges::for_each(measuredSets, swapForm);
  safeForm = use;
  if (std::exchange(formSince, step) != step)
    refreshCopies(use);
}

/// Copies that both forms keep follow their variables in every step. Those of one alone have not
/// seen the steps of the other, nor has what one alone derives.
void Session::refreshCopies(bool ofSafeForm) {
  const Plan &plan = file.plan();
  const std::set<uint32_t> own = buffersOf(plan, ofSafeForm), others = buffersOf(plan, !ofSafeForm);
  std::set<int32_t> owners;
  for (const Variable *variable : *plan.variables()) {
    const uint32_t buffer = plan.tensors()->Get(variable->tensor())->buffer();
    if (isCopy(*variable) && own.contains(buffer) && !others.contains(buffer))
      owners.insert(variable->owner());
  }
  for (const int32_t owner : owners) {
    // The variable has its own values once more, and all of its copies with it.
    const Variable &variable = *plan.variables()->Get(static_cast<uint32_t>(owner));
    const VariablePart part(plan, variable, rank());
    for (const Variable *copy : *plan.variables())
      if (isCopy(*copy) && copy->owner() == owner && !isOfSamePart(plan, *copy, variable, rank()))
        fail("{}: of '{}' each rank has a part, and another form keeps a copy of all of it: the "
             "run cannot go over to that",
             file.origin(), shown(variable.name()->string_view()));
    std::vector<std::byte> values(heldBytes(plan, variable, rank()));
    const size_t size = support::byteSize(dtypeOf(plan, variable));
    readVariable(
        plan, executor, variable, rank(), [&](int64_t first, std::span<const std::byte> piece) {
          std::ranges::copy(
              piece, values.begin() +
                         static_cast<ptrdiff_t>(static_cast<size_t>(first - part.first) * size));
        });
    writeVariable(plan, executor, variable, rank(), [&](int64_t first, std::span<std::byte> out) {
      const auto begin = static_cast<size_t>(first - part.first) * size;
      std::ranges::copy(std::span(values).subspan(begin, out.size()), out.begin());
    });
  }
  deriveVariables(plan, executor);
}

Session::Trial Session::tryStep() {
  using Clock = std::chrono::steady_clock;
  Part &part = nextPart();
  takeAhead(part);
  if (options.text && part.drawnFor != step) {
    drawMeasured(part, nextBatch());
    part.drawnFor = step;
  }
  scalars.write(executor, step);
  scalars.hold(executor);
  const Clock::time_point begin = Clock::now();
  Trial trial;
  trial.loss = makeRuns(part, part.drawnFor == step);
  const Part &updating = parts.size() > 1 ? parts[1] : part;
  if (updating.gradientNorm >= 0)
    trial.gradientNorm = readScalar(static_cast<uint32_t>(updating.gradientNorm));
  trial.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  sound = true; // nothing has changed
  return trial;
}
