// Pieces of ranks, one after the other.
#include "runtime/run/GatheredValues.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/VariablePart.h"
#include "runtime/run/TensorValues.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::shown;

double GatheredValues::scalar(uint32_t tensor) const {
  const support::DType dtype = dtypeOf(*file.plan().tensors()->Get(tensor));
  std::array<std::byte, 8> bytes;
  const std::span<std::byte> used = std::span(bytes).first(support::byteSize(dtype));
  executor.read(tensor, used);
  double value = 0.0;
  support::toDoubles(dtype, used, std::span(&value, 1));
  // Of a NaN the sign says nothing, and depends on the machine.
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

std::vector<std::byte> GatheredValues::output(const Output &output) const {
  const Tensor &tensor = *file.plan().tensors()->Get(output.tensor());
  std::vector<std::byte> bytes(denseBytes(tensor));
  executor.read(output.tensor(), bytes);
  const BatchPart part(file.plan(), tensor, output.batch_dimension(), rank());
  if (!part.isPart() || !ranks)
    return bytes;
  const std::vector<std::vector<std::byte>> parts = ranks->gather(bytes);
  return ranks->leads() ? part.join(parts) : std::vector<std::byte>();
}

void GatheredValues::variable(const Variable &variable,
                              const std::function<void(std::span<const std::byte>)> &take) const {
  const Plan &plan = file.plan();
  const VariablePart own(plan, variable, rank());
  if (!own.isCut() || !ranks) {
    if (rank() == 0)
      readVariable(plan, executor, variable, 0,
                   [&](int64_t, std::span<const std::byte> values) { take(values); });
    return;
  }
  // The ranks that hold pieces of it first, in the order of these: one after the other has the next
  // elements.
  constexpr int64_t piece = int64_t{1} << 22;
  const auto size = static_cast<int64_t>(support::byteSize(dtypeOf(plan, variable)));
  const int64_t elements = elementsOf(plan, variable);
  std::vector<std::byte> bytes;
  for (int64_t at = 0; at < elements; at += piece) {
    const int64_t begin = std::max(at, own.first),
                  end = std::min({at + piece, elements, own.end()});
    bytes.resize(own.isFirst && begin < end ? static_cast<size_t>((end - begin) * size) : 0);
    if (!bytes.empty())
      readElements(plan, executor, variable, rank(), begin, end,
                   [&](int64_t first, std::span<const std::byte> values) {
                     std::ranges::copy(values, bytes.begin() + (first - begin) * size);
                   });
    const std::vector<std::vector<std::byte>> all = ranks->gather(bytes);
    if (all.empty()) // another rank takes them
      continue;
    for (uint64_t holder = 0; holder < sizeOf(plan, own.axes); ++holder)
      take(all[distanceOf(plan, own.axes, holder)]);
  }
}

std::string GatheredValues::badParameters() const {
  std::vector<std::byte> finite; // of each parameter, whether it is
  std::vector<std::string_view> names;
  for (const Variable *variable : *file.plan().variables()) {
    if (variable->role() != VariableRole::parameter)
      continue;
    names.push_back(variable->name()->string_view());
    finite.push_back(std::byte{isFinite(file, executor, *variable, rank())});
  }
  if (ranks) // all are here; what rank 0 says counts
    for (const std::vector<std::byte> &theirs : ranks->gather(finite))
      std::ranges::transform(finite, theirs, finite.begin(), std::bit_and<>());
  const auto bad = std::ranges::count(finite, std::byte{0});
  if (bad == 0)
    return "";
  const auto first = std::ranges::find(finite, std::byte{0}) - finite.begin();
  return fmt::format("; {} of {} parameters are not finite now, the first is {}", bad, names.size(),
                     shown(names[static_cast<size_t>(first)]));
}
