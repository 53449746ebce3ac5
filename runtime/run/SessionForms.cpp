// The two forms that programs may have, and steps that only try one.
#include "runtime/run/FirstValues.h"
#include "runtime/run/Session.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <chrono>
#include <optional>
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

/// Those of all programs that have a safe form, in the form asked for.
std::set<uint32_t> buffersOf(const Plan &plan, ProgramForm form) {
  std::set<uint32_t> buffers;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    if (plan.programs()->Get(i)->safe() >= 0)
      if (const std::optional<uint32_t> program = programInForm(plan, i, form))
        addBuffers(plan, *plan.programs()->Get(*program)->blocks(), buffers);
  return buffers;
}

/// Those that all of these forms touch.
std::set<uint32_t> commonBuffers(const Plan &plan, const std::set<ProgramForm> &forms) {
  std::optional<std::set<uint32_t>> common;
  for (const ProgramForm form : forms) {
    std::set<uint32_t> own = buffersOf(plan, form);
    if (common)
      std::erase_if(own, [&](uint32_t buffer) { return !common->contains(buffer); });
    common = std::move(own);
  }
  return common.value_or(std::set<uint32_t>());
}

/// Whether what a rank has of a copy can be made of what it has of the variable.
bool isOfSamePart(const Plan &plan, const Variable &copy, const Variable &owner, uint64_t rank) {
  const VariablePart part(plan, copy, rank), own(plan, owner, rank);
  return part.first == own.first && part.count == own.count;
}

} // namespace

bool Session::hasSafeForm() const {
  return trainPlan && std::ranges::all_of(parts, [&](const Part &part) {
           return file.plan().programs()->Get(part.own)->safe() >= 0;
         });
}

void Session::useForm(ProgramForm next) {
  if (running == next)
    return;
  if (step != formSince)
    stepped.insert(running);
  leftAt[running] = step;
  running = next;
  formSince = step;
  for (Part &part : parts)
    takeForm(part);
  for (EarlyPart &phase : early)
    takeForm(phase.part);
  if (eval)
    takeForm(*eval);
  for (Part &part : measuredSets)
    takeForm(part);
  const auto left = leftAt.find(running);
  if ((left == leftAt.end() ? firstStep : left->second) != step)
    refreshCopies();
}

/// Copies that all forms keep follow their variables in every step. Those of one alone have not
/// seen the steps of the others, nor has what one alone derives.
void Session::refreshCopies() {
  const Plan &plan = file.plan();
  const std::set<uint32_t> own = buffersOf(plan, running), others = commonBuffers(plan, stepped);
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
  part.batches.take(step);
  if (options.text && !part.batches.areOf(step)) {
    drawMeasured(part, nextBatch());
    part.batches.keepFor(step);
  }
  scalars.write(executor, step);
  scalars.hold(executor);
  const Clock::time_point begin = Clock::now();
  Trial trial;
  trial.loss = makeRuns(part, part.batches.areOf(step));
  const Part &updating = parts.size() > 1 ? parts[1] : part;
  if (updating.gradientNorm >= 0)
    trial.gradientNorm = gathered.scalar(static_cast<uint32_t>(updating.gradientNorm));
  trial.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  sound = true; // nothing has changed
  return trial;
}
