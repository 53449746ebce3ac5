// Which bytes of a block's shared memory hold what, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hydra::cuda {

/// Gives offsets to what a block keeps in shared memory: what is needed at the same time does not
/// overlap. First fit, in the order of calls.
class SharedArena {
public:
  /// Every offset is a multiple of so many bytes.
  static constexpr int64_t kAlignment = 128;

  /// `capacity`: bytes that a block can have.
  explicit SharedArena(int64_t capacity) : capacity(capacity) {}

  /// Where `size` bytes lie that are needed from step `first` to step `last`; nothing where there
  /// is no room for them.
  std::optional<int64_t> place(int64_t size, int64_t first, int64_t last);
  /// The same of what is needed in all steps, and between iterations.
  std::optional<int64_t> place(int64_t size) { return place(size, INT64_MIN, INT64_MAX); }

  /// Bytes in all.
  int64_t bytes() const { return end; }

private:
  struct Range {
    int64_t begin, end, first, last; ///< bytes [begin, end), steps [first, last]
  };

  int64_t capacity, end = 0;
  std::vector<Range> ranges; ///< by their begin
};

} // namespace hydra::cuda
