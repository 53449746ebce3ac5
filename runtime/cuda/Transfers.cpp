// Moving tensors.
#include "runtime/cuda/Transfers.h"

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/TensorBytes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace hydra::runtime::cuda {

Transfers::Transfers(const Device &device) : device(device) {
  void *pinned = nullptr;
  driver().check(driver().cuMemHostAlloc(&pinned, 2 * kSmallBytes, 0),
                 "cannot take memory for transfers");
  small = static_cast<std::byte *>(pinned);
}

Transfers::~Transfers() {
  driver().cuStreamSynchronize(device.stream); // which may read staging memory
  driver().cuMemFreeHost(small);
}

void Transfers::runStarted() {
  smallHalf = 1 - smallHalf;
  arrived();
}

void Transfers::write(const planfile::Tensor &tensor, CUdeviceptr to,
                      std::span<const std::byte> values) {
  checkSize(tensor, values.size());
  if (!isDense(tensor)) {
    // The bytes between rows belong to others: read, change, write.
    std::vector<std::byte> whole(extentBytes(tensor));
    device.download(to, whole);
    moveElements(tensor, whole.data(), const_cast<std::byte *>(values.data()), /*in=*/true);
    device.upload(to, whole);
    device.wait("cannot write a tensor");
    return;
  }
  upload(to, values);
}

void Transfers::upload(CUdeviceptr to, std::span<const std::byte> values) {
  if (isPinned(values))
    return device.upload(to, values);
  if (smallBytes + values.size() > kSmallBytes) {
    device.upload(to, values);
    device.wait("cannot write a tensor");
    return arrived();
  }
  // Small ones go by pinned memory, without waiting; the next run ends after they arrived.
  std::byte *place = small + smallHalf * kSmallBytes + smallBytes;
  std::memcpy(place, values.data(), values.size());
  smallBytes += (values.size() + 63) / 64 * 64;
  device.upload(to, {place, values.size()});
}

bool Transfers::isPinned(std::span<const std::byte> values) const {
  return std::ranges::any_of(halves, [&](const Half &one) {
    const std::byte *begin = one.memory.get();
    return begin && std::less_equal<>()(begin, values.data()) &&
           std::less_equal<>()(values.data() + values.size(), begin + one.memory.size());
  });
}

std::span<std::byte> Transfers::staged(size_t bytes) {
  constexpr size_t size = runtime::Executor::kStagingBytes;
  if (bytes > size)
    return large.first(bytes);
  if (halves[half].used + bytes > size) {
    halves[half].taken.record(device.stream);
    half = 1 - half;
    halves[half].taken.wait();
    halves[half].used = 0;
  }
  Half &own = halves[half];
  if (!own.memory.get())
    own.memory = HostMemory(size, "transfers");
  std::byte *place = own.memory.get() + own.used;
  own.used += (bytes + 63) / 64 * 64;
  return {place, bytes};
}

void Transfers::read(const planfile::Tensor &tensor, CUdeviceptr from,
                     std::span<std::byte> values) {
  checkSize(tensor, values.size());
  if (isDense(tensor)) {
    device.download(from, values);
    return;
  }
  std::vector<std::byte> whole(extentBytes(tensor));
  device.download(from, whole);
  moveElements(tensor, whole.data(), values.data(), /*in=*/false);
}

void Transfers::writeRange(const planfile::Tensor &tensor, CUdeviceptr to, uint64_t begin,
                           std::span<const std::byte> values) {
  checkRange(tensor, begin, values.size());
  upload(to + begin, values);
}

void Transfers::clearRange(const planfile::Tensor &tensor, CUdeviceptr to, uint64_t begin,
                           uint64_t size) {
  checkRange(tensor, begin, size);
  if (size > 0)
    driver().check(driver().cuMemsetD8Async(to + begin, 0, size, device.stream),
                   "cannot clear a tensor");
}

void Transfers::readRange(const planfile::Tensor &tensor, CUdeviceptr from, uint64_t begin,
                          std::span<std::byte> values) {
  checkRange(tensor, begin, values.size());
  device.download(from + begin, values);
}

} // namespace hydra::runtime::cuda
