// What of other streams has ended before the next block of a stream begins, by the events that it has
// waited for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace hydra::support {

/// Of blocks that are put into streams in a valid serial order. A stream that waits for an event
/// also waits for all that the event's stream had waited for.
class StreamOrder {
public:
  explicit StreamOrder(size_t streams)
      : blocks(streams, 0), ended(streams, std::vector<size_t>(streams, 0)) {}

  void add(uint32_t stream) { ended[stream][stream] = ++blocks[stream]; }
  void signal(uint32_t stream, uint32_t event) { signalled[event] = ended[stream]; }
  void wait(uint32_t stream, uint32_t event) {
    const std::vector<size_t> &others = signalled.at(event);
    for (size_t i = 0; i < others.size(); ++i)
      ended[stream][i] = std::max(ended[stream][i], others[i]);
  }
  /// Whether no block of another stream can run beside the next of this one.
  bool isAlone(uint32_t stream) const { return ended[stream] == blocks; }

private:
  std::vector<size_t> blocks;             ///< of each stream, so far
  std::vector<std::vector<size_t>> ended; ///< of a stream, by stream; of itself those in front
  std::map<uint32_t, std::vector<size_t>> signalled; ///< by event, what had ended then
};

} // namespace hydra::support
