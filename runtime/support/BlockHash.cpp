// Whole blocks at once, others as they come.
#include "runtime/support/BlockHash.h"

#include <xxhash.h>

#include <algorithm>

namespace hydra::support {

uint64_t BlockHash::missing() const { return blockEnd > at ? blockEnd - at : 0; }

void BlockHash::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const uint64_t number = at / kBlock, end = std::min(size, (number + 1) * kBlock);
    const std::span<const std::byte> next = bytes.first(std::min<uint64_t>(bytes.size(), end - at));
    if (at % kBlock == 0 && next.size() == end - at) {
      total += XXH3_64bits_withSeed(next.data(), next.size(), number);
    } else if (at % kBlock == 0) {
      hash.restart(number);
      blockEnd = end;
    }
    if (missing() > 0) {
      hash.add(next);
      if (next.size() == missing())
        total += hash.value();
    }
    at += next.size();
    bytes = bytes.subspan(next.size());
  }
}

} // namespace hydra::support
