// Moving tensors.
#include "runtime/cuda/Transfers.h"

#include "runtime/cuda/TensorBytes.h"
#include "runtime/plan/ByteRange.h"

#include <cstring>
#include <vector>

namespace hydra::runtime::cuda {

Transfers::Transfers(const Device &device) : device(device) {
  void *pinned = nullptr;
  driver().check(driver().cuMemHostAlloc(&pinned, kStagingBytes, 0),
                 "cannot take memory for transfers");
  staging = static_cast<std::byte *>(pinned);
}

Transfers::~Transfers() { driver().cuMemFreeHost(staging); }

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
  if (stagedBytes + values.size() > kStagingBytes) {
    device.upload(to, values);
    device.wait("cannot write a tensor");
    return;
  }
  // Small ones go by pinned memory, without waiting; the next run ends after they arrived.
  std::byte *place = staging + stagedBytes;
  std::memcpy(place, values.data(), values.size());
  stagedBytes += (values.size() + 63) / 64 * 64;
  device.upload(to, {place, values.size()});
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

void Transfers::readRange(const planfile::Tensor &tensor, CUdeviceptr from, uint64_t begin,
                          std::span<std::byte> values) {
  checkRange(tensor, begin, values.size());
  device.download(from + begin, values);
}

} // namespace hydra::runtime::cuda
