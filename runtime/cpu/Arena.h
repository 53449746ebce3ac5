// The memory of one segment of a plan.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hydra::runtime {

/// Zeroed pages from the system, aligned to 2 MiB and huge where the system has them. They are
/// taken when first touched.
class Arena {
public:
  Arena() = default;
  /// Throws Error when the system refuses.
  explicit Arena(uint64_t bytes);
  ~Arena();
  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&other) noexcept;

  char *data() const { return start; }
  uint64_t size() const { return bytes; }

private:
  char *start = nullptr;
  uint64_t bytes = 0;
  void *mapping = nullptr; // what the system gave, larger for the sake of alignment
  size_t mappedBytes = 0;
};

/// Bytes that this process can still take: what the system has available, or what is left of the
/// limits of its control groups. 2^63 - 1 when the system does not say.
uint64_t availableMemory();

} // namespace hydra::runtime
