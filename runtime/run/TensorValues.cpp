// Reading tensors of a file as a plan wants them.
#include "runtime/run/TensorValues.h"

#include "runtime/plan/Mesh.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>

using namespace hydra::runtime;
using hydra::support::DType;
using hydra::support::fail;
using hydra::support::shapeText;
using hydra::support::shown;

namespace {

bool isFloating(DType dtype) { return hydra::support::isFloat(dtype); }

} // namespace

std::vector<int64_t> hydra::runtime::shapeOf(const planfile::Tensor &tensor) {
  return {tensor.shape()->begin(), tensor.shape()->end()};
}

BatchPart::BatchPart(const planfile::Plan &plan, const planfile::Tensor &tensor, int32_t dimension,
                     uint32_t rank)
    : whole(shapeOf(tensor)), elements(elementsOf(tensor)), block(elements) {
  if (dimension < 0 || ranksOf(plan) == 1)
    return;
  ranks = static_cast<int64_t>(ranksOf(plan));
  this->rank = rank;
  for (size_t d = 0; d < static_cast<size_t>(dimension); ++d)
    block /= whole[d];
  whole[static_cast<size_t>(dimension)] *= ranks;
}

std::vector<std::byte> BatchPart::cut(std::vector<std::byte> bytes) const {
  if (!isPart())
    return bytes;
  const size_t size = bytes.size() / static_cast<size_t>(wholeElements());
  std::vector<std::byte> part(static_cast<size_t>(elements) * size);
  for (int64_t i = 0; i < elements; i += block)
    std::copy_n(bytes.begin() + wholeIndex(i) * static_cast<int64_t>(size),
                static_cast<size_t>(block) * size, part.begin() + i * static_cast<int64_t>(size));
  return part;
}

std::vector<std::byte> BatchPart::join(const std::vector<std::vector<std::byte>> &parts) const {
  if (!isPart())
    return parts.front();
  std::vector<std::byte> joined;
  joined.reserve(parts.size() * parts.front().size());
  const auto bytes = static_cast<int64_t>(parts.front().size()) / (elements / block);
  for (int64_t at = 0; at < static_cast<int64_t>(parts.front().size()); at += bytes)
    for (const std::vector<std::byte> &part : parts)
      joined.insert(joined.end(), part.begin() + at, part.begin() + at + bytes);
  return joined;
}

GivenTensors::GivenTensors(const std::filesystem::path &path) : file(path) {}

std::vector<std::string_view> GivenTensors::names() const {
  std::vector<std::string_view> all;
  for (const support::TensorPlace &tensor : file.tensors())
    all.emplace_back(tensor.name);
  return all;
}

void GivenTensors::checkNames(const std::set<std::string, std::less<>> &known) const {
  for (const support::TensorPlace &tensor : file.tensors())
    if (!known.contains(tensor.name))
      fail("{}: tensor {} is no input, parameter or state of the plan", path(), shown(tensor.name));
}

std::vector<std::byte> GivenTensors::values(std::string_view name, DType to,
                                            const std::vector<int64_t> &shape) const {
  std::vector<std::byte> bytes(static_cast<size_t>(elementsOf(shape)) * support::byteSize(to));
  read(name, to, shape, 0, bytes);
  return bytes;
}

void GivenTensors::read(std::string_view name, DType to, const std::vector<int64_t> &shape,
                        int64_t first, std::span<std::byte> out) const {
  const support::TensorPlace *tensor = file.find(name);
  if (!tensor)
    fail("{}: tensor {} is missing; expected {} {}", path(), shown(name),
         support::safetensorsName(to), shapeText(shape));
  if (tensor->shape != shape)
    fail("{}: tensor {} has shape {}; expected {}", path(), shown(name),
         shown(shapeText(tensor->shape)), shapeText(shape));
  if (isFloating(tensor->dtype) != isFloating(to))
    fail("{}: tensor {} is {}; expected {}", path(), shown(name),
         support::safetensorsName(tensor->dtype), support::safetensorsName(to));

  const size_t from = support::byteSize(tensor->dtype), size = support::byteSize(to);
  const auto begin = static_cast<uint64_t>(first) * from;
  if (tensor->dtype == to)
    return file.read(*tensor, begin, out);
  const size_t elements = out.size() / size;
  std::vector<std::byte> given(elements * from);
  file.read(*tensor, begin, given);
  constexpr size_t chunk = 4096;
  std::vector<double> doubles(chunk);
  try {
    for (size_t i = 0; i < elements; i += chunk) {
      const size_t count = std::min(chunk, elements - i);
      const std::span<double> part = std::span(doubles).first(count);
      support::toDoubles(tensor->dtype, std::span(given).subspan(i * from, count * from), part);
      support::fromDoubles(to, part, out.subspan(i * size, count * size));
    }
  } catch (const support::Error &error) {
    fail("{}: tensor {}: {}", path(), shown(name), error.what());
  }
}
