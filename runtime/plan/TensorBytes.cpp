// Sizes of tensors; strided elements one by one.
#include "runtime/plan/TensorBytes.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <cstring>

namespace hydra::runtime {

using namespace hydra::planfile;

int64_t elementsOf(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape)
    elements *= size;
  return elements;
}

int64_t elementsOf(const Tensor &tensor) {
  return elementsOf(std::span(tensor.shape()->data(), tensor.shape()->size()));
}

size_t denseBytes(const Tensor &tensor) {
  return static_cast<size_t>(elementsOf(tensor)) * elementSize(tensor);
}

void checkSize(const Tensor &tensor, size_t size) {
  const size_t expected = denseBytes(tensor);
  if (size != expected)
    support::fail("{}: {} bytes for a tensor of {}", support::shown(tensor.name()->string_view()),
                  size, expected);
}

void checkRange(const Tensor &tensor, uint64_t begin, size_t size) {
  const size_t all = denseBytes(tensor);
  if (!isDense(tensor) || begin > all || size > all - begin)
    support::fail("{}: no bytes [{}, {}) in a {}tensor of {}",
                  support::shown(tensor.name()->string_view()), begin, begin + size,
                  isDense(tensor) ? "" : "strided ", all);
}

size_t extentBytes(const Tensor &tensor) {
  int64_t last = 0;
  for (flatbuffers::uoffset_t d = 0; d < tensor.shape()->size(); ++d)
    last += (tensor.shape()->Get(d) - 1) * tensor.strides()->Get(d);
  return static_cast<size_t>(last + 1) * elementSize(tensor);
}

void moveElements(const Tensor &tensor, std::byte *strided, std::byte *dense, bool in) {
  const size_t size = elementSize(tensor), count = denseBytes(tensor) / size;
  for (size_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    size_t rest = i;
    for (flatbuffers::uoffset_t d = tensor.shape()->size(); d-- > 0;) {
      const auto extent = static_cast<size_t>(tensor.shape()->Get(d));
      offset += static_cast<int64_t>(rest % extent) * tensor.strides()->Get(d);
      rest /= extent;
    }
    std::byte *place = strided + static_cast<size_t>(offset) * size;
    std::memcpy(in ? place : dense + i * size, in ? dense + i * size : place, size);
  }
}

} // namespace hydra::runtime
