// libFuzzer: no bytes whatsoever, read as text, JSON lines, gzip, zstd, a manifest or a shard, do
// more than throw a one-line Error. The first byte says what they are read as.
#include "test/unit/data/HostileData.h"

using namespace hydra::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  readHostile(static_cast<HostileKind>(data[0] % kHostileKinds),
              std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}
