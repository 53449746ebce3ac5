// Drawing values, and which of them a file has.
#include "runtime/run/FirstValues.h"

#include "runtime/run/LongWork.h"
#include "runtime/support/Error.h"
#include "runtime/support/Initializers.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace hydra::planfile;

namespace hydra::runtime {

namespace {

support::Initializer initializerOf(const Initializer &init) {
  switch (init.kind()) {
  case InitKind::constant:
    return support::Initializer::constant(init.value());
  case InitKind::normal:
    return support::Initializer::normal(init.std());
  case InitKind::trunc_normal:
    return support::Initializer::truncNormal(init.std(), init.cut());
  case InitKind::uniform:
    return support::Initializer::uniform(init.limit());
  case InitKind::shuffle:
    return support::Initializer::shuffle({init.table()->begin(), init.table()->end()});
  }
  support::fail("an initializer is of kind {}", static_cast<int>(init.kind()));
}

/// Elements `first` and on of the variable.
void drawRange(const support::Initializer &init, uint64_t seed, std::string_view name,
               support::DType dtype, int64_t first, std::span<std::byte> out) {
  constexpr size_t chunk = 4096;
  std::array<double, chunk> doubles;
  const size_t size = support::byteSize(dtype), elements = out.size() / size;
  for (size_t i = 0; i < elements; i += chunk) {
    const std::span<double> part = std::span(doubles).first(std::min(chunk, elements - i));
    support::fill(init, seed, name, part, static_cast<uint64_t>(first) + i);
    support::fromDoubles(dtype, part, out.subspan(i * size, part.size() * size));
  }
}

} // namespace

void writeInitialValues(const Plan &plan, Executor &executor, const Variable &variable,
                        uint64_t rank, uint64_t seed,
                        const std::function<void(uint64_t bytes)> &wrote) {
  const support::Initializer init = initializerOf(*variable.initializer());
  const bool zeros =
      init.kind == support::Initializer::Kind::Constant && init.a == 0.0 && !std::signbit(init.a);
  if (zeros && clearVariable(plan, executor, variable, rank))
    return wrote(heldBytes(plan, variable, rank));
  const support::DType dtype = givenDtypeOf(plan, variable);
  const size_t size = support::byteSize(dtype), held = support::byteSize(dtypeOf(plan, variable));
  writeVariable(plan, executor, variable, rank, [&](int64_t first, std::span<std::byte> out) {
    inRanges(executor, out.size() / size, [&](size_t begin, size_t end) {
      drawRange(init, seed, variable.name()->string_view(), dtype,
                first + static_cast<int64_t>(begin),
                out.subspan(begin * size, (end - begin) * size));
    });
    wrote(out.size() / size * held);
  });
}

ElementSource givenValues(const Plan &plan, const Variable &variable, const GivenTensors &given,
                          const std::string &name) {
  return [name = name.empty() ? variable.name()->str() : name, &given,
          dtype = givenDtypeOf(plan, variable),
          shape = shapeOf(plan, variable)](int64_t first, std::span<std::byte> out) {
    given.read(name, dtype, shape, first, out);
  };
}

namespace {

/// Variables of which a file has all or none.
enum Kind : size_t { OptimizerStates, ModelStates, Parameters, Adapters };
constexpr std::array kKinds = {"states of the optimizer", "states of the model", "parameters",
                               "adapters"};

Kind kindOf(const Variable &variable) {
  switch (variable.role()) {
  case VariableRole::parameter:
    return isAdapter(variable) ? Adapters : Parameters;
  case VariableRole::state:
    return ModelStates;
  default:
    return OptimizerStates;
  }
}

/// What a file has of each kind: the name of one, or null.
using NameOfEach = std::array<const flatbuffers::String *, kKinds.size()>;

NameOfEach kindsIn(const Plan &plan, const GivenTensors &given) {
  NameOfEach found{};
  for (const Variable *variable : *plan.variables())
    if (isSaved(*variable) && given.has(variable->name()->string_view()))
      found[kindOf(*variable)] = variable->name();
  if (!found[Parameters]) // adapters are of the parameters that they were trained beside
    found[Parameters] = found[Adapters];
  return found;
}

/// What files call the average of a parameter.
std::string averageOf(const Variable &parameter) { return parameter.name()->str() + ".average"; }

/// Whether the count of updates, from 1, that stands beside averages is that of the first.
bool isBeforeFirstUpdate(const GivenTensors &given) {
  constexpr std::string_view name = "step";
  if (!given.has(name))
    return false;
  int32_t count = 0;
  given.read(name, support::DType::I32, {}, 0, std::as_writable_bytes(std::span(&count, 1)));
  return count == 1;
}

} // namespace

void setVariables(const PlanFile &file, Executor &executor, uint64_t rank,
                  const GivenTensors *given, uint64_t seed, const AdapterFile *adapter) {
  const Plan &plan = file.plan();
  NameOfEach found{};
  if (given)
    found = kindsIn(plan, *given);
  if (found[Adapters])
    checkScale(*given, *adapterScaleOf(plan));
  if (adapter && found[Adapters])
    support::fail("{}: has adapters too ({}), and so has {}; expected them in one file",
                  given->path(), support::shown(found[Adapters]->string_view()),
                  adapter->tensors().path());
  clearGaps(plan, executor, rank);
  uint64_t bytes = 0;
  for (const Variable *variable : *plan.variables())
    if (!followsOthers(*variable))
      bytes += heldBytes(plan, *variable, rank);
  LongWork work(given ? "reading " + given->path() : "drawing initial values", bytes, rank == 0);
  // Empty for what begins anew.
  const auto givenFor = [&](const Variable &variable) -> ElementSource {
    const std::string_view name = variable.name()->string_view();
    if (adapter && isAdapter(variable))
      return adapter->valuesOf(plan, variable);
    const Kind kind = kindOf(variable);
    const flatbuffers::String *other = isSaved(variable) ? found[kind] : nullptr;
    const bool needed = variable.role() != VariableRole::update_count &&
                        variable.role() != VariableRole::loss_scaling &&
                        variable.role() != VariableRole::amax_history;
    if (!other || (!needed && !given->has(name)))
      return {};
    if (!given->has(name))
      support::fail("{}: there is no tensor {} although there is {}; expected all {} or none",
                    given->path(), support::shown(name), support::shown(other->string_view()),
                    kKinds[kind]);
    return givenValues(plan, variable, *given);
  };
  for (const Variable *variable : *plan.variables()) {
    if (followsOthers(*variable))
      continue;
    const ElementSource source = givenFor(*variable);
    if (!source) {
      writeInitialValues(plan, executor, *variable, rank, seed,
                         [&](uint64_t bytes) { work.add(bytes); });
      continue;
    }
    writeVariable(plan, executor, *variable, rank, [&](int64_t first, std::span<std::byte> out) {
      source(first, out);
      work.add(out.size() / support::byteSize(givenDtypeOf(plan, *variable)) *
               support::byteSize(dtypeOf(plan, *variable)));
    });
  }
  work.finish();
}

void useAverages(const PlanFile &file, Executor &executor, uint64_t rank,
                 const GivenTensors &given) {
  const Plan &plan = file.plan();
  std::vector<const Variable *> averaged, others;
  for (const Variable *variable : *plan.variables())
    if (variable->role() == VariableRole::parameter)
      (given.has(averageOf(*variable)) ? averaged : others).push_back(variable);
  if (averaged.empty())
    support::fail("{}: has no averages of the parameters of {}, as plans of hydrac --average keep "
                  "them",
                  given.path(), file.origin());
  // Only plans that train know which parameters have none because they are frozen.
  const auto lacks = std::ranges::find_if(others, [](const Variable *v) { return !v->frozen(); });
  if (mainTrainingProgram(plan) && lacks != others.end())
    support::fail("{}: there is no average of {} although there is one of {}; expected those of "
                  "all parameters that {} trains",
                  given.path(), support::shown((*lacks)->name()->string_view()),
                  support::shown(averaged.front()->name()->string_view()), file.origin());
  if (isBeforeFirstUpdate(given))
    support::fail("{}: its averages are of no update yet; expected a checkpoint behind one",
                  given.path());
  for (const Variable *variable : averaged)
    writeVariable(plan, executor, *variable, rank,
                  givenValues(plan, *variable, given, averageOf(*variable)));
}

bool hasParameters(const PlanFile &file, const GivenTensors &given) {
  return std::any_of(file.plan().variables()->begin(), file.plan().variables()->end(),
                     [&](const Variable *variable) {
                       return variable->role() == VariableRole::parameter &&
                              given.has(variable->name()->string_view());
                     });
}

bool hasAdapters(const PlanFile &file, const GivenTensors &given) {
  return std::ranges::any_of(*file.plan().variables(), [&](const Variable *variable) {
    return isAdapter(*variable) && given.has(variable->name()->string_view());
  });
}

void deriveVariables(const Plan &plan, Executor &executor) {
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    if (plan.programs()->Get(i)->role() == ProgramRole::derive)
      executor.run(i);
}

} // namespace hydra::runtime
