// Reading tensors of a file as a plan wants them.
#include "runtime/run/TensorValues.h"

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

int64_t hydra::runtime::elementsOf(const planfile::Tensor &tensor) {
  int64_t elements = 1;
  for (const int64_t size : *tensor.shape())
    elements *= size;
  return elements;
}

size_t hydra::runtime::denseBytes(const planfile::Tensor &tensor) {
  return static_cast<size_t>(elementsOf(tensor)) * support::byteSize(dtypeOf(tensor));
}

std::string hydra::runtime::placeText(const planfile::Tensor &tensor, int64_t index) {
  std::string text;
  for (flatbuffers::uoffset_t d = tensor.shape()->size(); d-- > 0;) {
    const int64_t size = tensor.shape()->Get(d);
    text = fmt::format("{}{}{}", index % size, text.empty() ? "" : ",", text);
    index /= size;
  }
  return text.empty() ? text : "[" + text + "]";
}

GivenTensors::GivenTensors(const std::filesystem::path &path) : file(path) {}

void GivenTensors::checkNames(const std::set<std::string, std::less<>> &known) const {
  for (const support::TensorPlace &tensor : file.tensors())
    if (!known.contains(tensor.name))
      fail("{}: tensor {} is no input, parameter or state of the plan", path(), shown(tensor.name));
}

std::vector<std::byte> GivenTensors::values(std::string_view name,
                                            const planfile::Tensor &target) const {
  const support::TensorPlace *tensor = file.find(name);
  if (!tensor)
    fail("{}: tensor {} is missing; expected {} {}", path(), shown(name),
         support::safetensorsName(dtypeOf(target)), shapeText(shapeOf(target)));
  if (tensor->shape != shapeOf(target))
    fail("{}: tensor {} has shape {}; expected {}", path(), shown(name),
         shown(shapeText(tensor->shape)), shapeText(shapeOf(target)));
  const DType to = dtypeOf(target);
  if (isFloating(tensor->dtype) != isFloating(to))
    fail("{}: tensor {} is {}; expected {}", path(), shown(name),
         support::safetensorsName(tensor->dtype), support::safetensorsName(to));

  const std::vector<std::byte> given = file.read(*tensor);
  if (tensor->dtype == to)
    return given;
  std::vector<std::byte> bytes(denseBytes(target));
  constexpr size_t chunk = 4096;
  std::vector<double> doubles(chunk);
  const size_t from = support::byteSize(tensor->dtype), size = support::byteSize(to);
  const auto elements = static_cast<size_t>(elementsOf(target));
  try {
    for (size_t i = 0; i < elements; i += chunk) {
      const size_t count = std::min(chunk, elements - i);
      const std::span<double> part = std::span(doubles).first(count);
      support::toDoubles(tensor->dtype, std::span(given).subspan(i * from, count * from), part);
      support::fromDoubles(to, part, std::span(bytes).subspan(i * size, count * size));
    }
  } catch (const support::Error &error) {
    fail("{}: tensor {}: {}", path(), shown(name), error.what());
  }
  return bytes;
}
