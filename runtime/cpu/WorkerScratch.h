// Memory that each worker of the pool uses inside one library call, and that nothing survives in.
#pragma once

#include <cstddef>

namespace hydra::runtime {

/// One aligned piece for each worker. A call says how much it needs as a function of shapes alone.
struct WorkerScratch {
  std::byte *base = nullptr; // aligned to `alignment`
  size_t bytesPerWorker = 0; // a multiple of `alignment`

  static constexpr size_t alignment = 4096;

  std::byte *of(unsigned worker) const { return base + worker * bytesPerWorker; }
};

} // namespace hydra::runtime
