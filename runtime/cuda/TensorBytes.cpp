// Strided elements one by one.
#include "runtime/cuda/TensorBytes.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <cstring>

namespace hydra::runtime::cuda {

using namespace hydra::planfile;

size_t denseBytes(const Tensor &entry) {
  size_t bytes = support::byteSize(dtypeOf(entry));
  for (const int64_t extent : *entry.shape())
    bytes *= static_cast<size_t>(extent);
  return bytes;
}

void checkSize(const Tensor &entry, size_t size) {
  const size_t expected = denseBytes(entry);
  if (size != expected)
    support::fail("{}: {} bytes for a tensor of {}", support::shown(entry.name()->string_view()),
                  size, expected);
}

void checkRange(const Tensor &entry, uint64_t begin, size_t size) {
  const size_t all = denseBytes(entry);
  if (!isDense(entry) || begin > all || size > all - begin)
    support::fail("{}: no bytes [{}, {}) in a {}tensor of {}",
                  support::shown(entry.name()->string_view()), begin, begin + size,
                  isDense(entry) ? "" : "strided ", all);
}

size_t extentBytes(const Tensor &entry) {
  int64_t last = 0;
  for (flatbuffers::uoffset_t d = 0; d < entry.shape()->size(); ++d)
    last += (entry.shape()->Get(d) - 1) * entry.strides()->Get(d);
  return static_cast<size_t>(last + 1) * support::byteSize(dtypeOf(entry));
}

void moveElements(const Tensor &entry, std::byte *strided, std::byte *dense, bool in) {
  const size_t size = support::byteSize(dtypeOf(entry)), count = denseBytes(entry) / size;
  for (size_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    size_t rest = i;
    for (flatbuffers::uoffset_t d = entry.shape()->size(); d-- > 0;) {
      const auto extent = static_cast<size_t>(entry.shape()->Get(d));
      offset += static_cast<int64_t>(rest % extent) * entry.strides()->Get(d);
      rest /= extent;
    }
    std::byte *place = strided + static_cast<size_t>(offset) * size;
    std::memcpy(in ? place : dense + i * size, in ? dense + i * size : place, size);
  }
}

} // namespace hydra::runtime::cuda
