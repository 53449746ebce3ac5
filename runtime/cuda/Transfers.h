// Tensors between the program's memory and the GPU's.
#pragma once

#include "runtime/cuda/Device.h"
#include "runtime/run/Executor.h"

#include <array>
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

  /// Dense values to the tensor at `to`. What is small, or in memory that `staged` gave, is under
  /// way when this returns.
  void write(const planfile::Tensor &tensor, CUdeviceptr to, std::span<const std::byte> values);
  /// The tensor at `from` to dense values.
  void read(const planfile::Tensor &tensor, CUdeviceptr from, std::span<std::byte> values);
  /// The same for bytes [begin, begin + values.size()) of a dense tensor. Throws Error when it is
  /// not dense, or has not so many.
  void writeRange(const planfile::Tensor &tensor, CUdeviceptr to, uint64_t begin,
                  std::span<const std::byte> values);
  void readRange(const planfile::Tensor &tensor, CUdeviceptr from, uint64_t begin,
                 std::span<std::byte> values);
  void clearRange(const planfile::Tensor &tensor, CUdeviceptr to, uint64_t begin, uint64_t size);
  /// Memory for Executor::staging: pinned, in two halves, of which the GPU takes one while the host
  /// fills the other. More than a half holds is not pinned.
  std::span<std::byte> staged(size_t bytes);
  /// A run was started that reads what was written: that stays where it is until the next run is
  /// started, and nothing is to be written behind that before this one has ended.
  void runStarted();
  /// The stream was waited for: everything written has arrived.
  void arrived() { smallBytes = 0; }

private:
  void upload(CUdeviceptr to, std::span<const std::byte> values);

  static constexpr size_t kSmallBytes = size_t{4} << 20;

  /// Of staging memory, taken when it is first needed.
  struct Half {
    HostMemory memory;
    size_t used = 0; ///< from the front, and perhaps under way
    Event taken;     ///< behind all that was written from it, when the other is begun
  };
  bool isPinned(std::span<const std::byte> values) const;

  const Device &device;
  /// Pinned, two times kSmallBytes: what is written for the next run, beside what the one in flight
  /// was given.
  std::byte *small = nullptr;
  size_t smallHalf = 0;  ///< which of them is written to
  size_t smallBytes = 0; ///< in it, and perhaps under way
  std::array<Half, 2> halves;
  size_t half = 0;  ///< that is being filled
  HostBuffer large; ///< what no half holds
};

} // namespace hydra::runtime::cuda
