// Tensors between the program's memory and the GPU's.
#pragma once

#include "runtime/cuda/Device.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hydra::runtime::cuda {

/// By the device's first stream. Throws Error when bytes are not as many as the tensor has.
class Transfers {
public:
  explicit Transfers(const Device &device);
  ~Transfers();
  Transfers(const Transfers &) = delete;
  Transfers &operator=(const Transfers &) = delete;

  /// Dense values to the tensor at `to`. What is small is under way when this returns.
  void write(const planfile::Tensor &tensor, CUdeviceptr to, std::span<const std::byte> values);
  /// The tensor at `from` to dense values.
  void read(const planfile::Tensor &tensor, CUdeviceptr from, std::span<std::byte> values);
  /// The same for bytes [begin, begin + values.size()) of a dense tensor. Throws Error when it is not
  /// dense, or has not so many.
  void writeRange(const planfile::Tensor &tensor, CUdeviceptr to, uint64_t begin,
                  std::span<const std::byte> values);
  void readRange(const planfile::Tensor &tensor, CUdeviceptr from, uint64_t begin,
                 std::span<std::byte> values);
  /// The stream was waited for: everything written has arrived.
  void arrived() { stagedBytes = 0; }

private:
  void upload(CUdeviceptr to, std::span<const std::byte> values);

  static constexpr size_t kStagingBytes = size_t{4} << 20;

  const Device &device;
  std::byte *staging = nullptr; ///< pinned
  size_t stagedBytes = 0;       ///< under way
};

} // namespace hydra::runtime::cuda
