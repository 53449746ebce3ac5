// Loads or draws variables one at a time; large ones are drawn in parallel pieces.
#include "runtime/run/Variables.h"

#include "runtime/support/Error.h"
#include "runtime/support/Initializers.h"
#include "runtime/support/Shown.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>

using namespace hydra::runtime;
using namespace hydra::planfile;
namespace support = hydra::support;

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

/// Elements [begin, end) of the variable, into their place in `bytes`.
void drawRange(const support::Initializer &init, uint64_t seed, std::string_view name,
               support::DType dtype, std::vector<std::byte> &bytes, size_t begin, size_t end) {
  constexpr size_t chunk = 4096;
  std::array<double, chunk> doubles;
  const size_t size = support::byteSize(dtype);
  for (size_t i = begin; i < end; i += chunk) {
    const std::span<double> part = std::span(doubles).first(std::min(chunk, end - i));
    support::fill(init, seed, name, part, i);
    support::fromDoubles(dtype, part, std::span(bytes).subspan(i * size, part.size() * size));
  }
}

/// Does the work on [begin, end) for all elements, in parallel where they are many.
void inRanges(size_t elements, const std::function<void(size_t begin, size_t end)> &work) {
  constexpr size_t piece = size_t{1} << 18; // some milliseconds each
  const size_t threads =
      std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), elements / piece + 1);
  std::vector<std::exception_ptr> errors(threads);
  const auto share = [&](size_t t) {
    try {
      work(elements * t / threads, elements * (t + 1) / threads);
    } catch (...) {
      errors[t] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    size_t own = 1; // shares [0, own) are left to this thread
    try {
      for (size_t t = threads; t-- > 1;)
        helpers.emplace_back(share, t);
    } catch (const std::system_error &) { // no more threads to be had; it goes on with fewer
      own = threads - helpers.size();
    }
    for (size_t t = 0; t < own; ++t)
      share(t);
  }
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
}

std::vector<std::byte> draw(const Variable &variable, const Tensor &tensor, uint64_t seed) {
  const support::Initializer init = initializerOf(*variable.initializer());
  std::vector<std::byte> bytes(denseBytes(tensor));
  inRanges(static_cast<size_t>(elementsOf(tensor)), [&](size_t begin, size_t end) {
    drawRange(init, seed, variable.name()->string_view(), dtypeOf(tensor), bytes, begin, end);
  });
  return bytes;
}

/// The same numbers in another type, rounded to nearest.
std::vector<std::byte> converted(std::span<const std::byte> values, support::DType from,
                                 support::DType to) {
  const size_t fromSize = support::byteSize(from), toSize = support::byteSize(to);
  const size_t elements = values.size() / fromSize;
  std::vector<std::byte> result(elements * toSize);
  inRanges(elements, [&](size_t begin, size_t end) {
    constexpr size_t chunk = 4096;
    std::array<double, chunk> doubles;
    for (size_t i = begin; i < end; i += chunk) {
      const std::span<double> part = std::span(doubles).first(std::min(chunk, end - i));
      support::toDoubles(from, values.subspan(i * fromSize, part.size() * fromSize), part);
      support::fromDoubles(to, part, std::span(result).subspan(i * toSize, part.size() * toSize));
    }
  });
  return result;
}

} // namespace

bool hydra::runtime::isCopy(const Variable &variable) {
  return variable.role() == VariableRole::copy;
}
bool hydra::runtime::isSaved(const Variable &variable) {
  return !isCopy(variable) && variable.role() != VariableRole::step_sum;
}

bool hydra::runtime::isInCheckpoint(const Variable &variable) {
  return isSaved(variable) && variable.role() != VariableRole::gradient;
}

std::vector<std::byte> hydra::runtime::initialValue(const Plan &plan, const Variable &variable,
                                                    uint64_t seed) {
  return draw(variable, *plan.tensors()->Get(variable.tensor()), seed);
}

void hydra::runtime::writeVariable(const Plan &plan, Executor &executor, const Variable &variable,
                                   std::span<const std::byte> values) {
  executor.write(variable.tensor(), values);
  for (const Variable *copy : *plan.variables()) {
    if (!isCopy(*copy) || plan.variables()->Get(static_cast<uint32_t>(copy->owner())) != &variable)
      continue;
    executor.write(copy->tensor(),
                   converted(values, dtypeOf(*plan.tensors()->Get(variable.tensor())),
                             dtypeOf(*plan.tensors()->Get(copy->tensor()))));
  }
}

void hydra::runtime::setVariables(const PlanFile &file, Executor &executor,
                                  const GivenTensors *given, uint64_t seed) {
  const Plan &plan = file.plan();
  const auto isParameter = [](const Variable &v) { return v.role() == VariableRole::parameter; };
  // Of states, and of parameters: a name that the file has.
  std::array<const flatbuffers::String *, 2> found{};
  if (given) {
    for (const Variable *variable : *plan.variables())
      if (isSaved(*variable) && given->has(variable->name()->string_view()))
        found[isParameter(*variable)] = variable->name();
  }
  for (const Variable *variable : *plan.variables()) {
    if (isCopy(*variable))
      continue;
    const Tensor &tensor = *plan.tensors()->Get(variable->tensor());
    const std::string_view name = variable->name()->string_view();
    const flatbuffers::String *other = isSaved(*variable) ? found[isParameter(*variable)] : nullptr;
    const bool needed = variable->role() != VariableRole::update_count &&
                        variable->role() != VariableRole::loss_scaling;
    if (other && !needed && !given->has(name))
      other = nullptr;
    if (other && !given->has(name)) {
      support::fail("{}: there is no tensor {} although there is {}; expected all {} or none",
                    given->path(), support::shown(name), support::shown(other->string_view()),
                    isParameter(*variable) ? "parameters" : "states");
    }
    writeVariable(plan, executor, *variable,
                  other ? given->values(name, tensor) : draw(*variable, tensor, seed));
  }
}

std::string hydra::runtime::hashOfVariables(const PlanFile &file, Executor &executor) {
  uint64_t hash = 0;
  std::vector<std::byte> bytes;
  for (const Variable *variable : *file.plan().variables()) {
    if (!isSaved(*variable))
      continue;
    bytes.resize(denseBytes(*file.plan().tensors()->Get(variable->tensor())));
    executor.read(variable->tensor(), bytes);
    hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash);
  }
  return fmt::format("{:016x}", hash);
}

bool hydra::runtime::hasParameters(const PlanFile &file, const GivenTensors &given) {
  return std::any_of(file.plan().variables()->begin(), file.plan().variables()->end(),
                     [&](const Variable *variable) {
                       return variable->role() == VariableRole::parameter &&
                              given.has(variable->name()->string_view());
                     });
}

bool hydra::runtime::isFinite(const PlanFile &file, Executor &executor, const Variable &variable) {
  const Tensor &tensor = *file.plan().tensors()->Get(variable.tensor());
  std::vector<std::byte> bytes(denseBytes(tensor));
  executor.read(variable.tensor(), bytes);
  return !support::firstNotFinite(dtypeOf(tensor), bytes);
}

uint64_t hydra::runtime::countParameters(const Plan &plan) {
  uint64_t count = 0;
  for (const Variable *variable : *plan.variables())
    if (variable->role() == VariableRole::parameter)
      count += static_cast<uint64_t>(elementsOf(*plan.tensors()->Get(variable->tensor())));
  return count;
}
