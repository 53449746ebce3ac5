// When the blocks of a list run, predicted from the time of each: on streams and events, where all
// streams compute on one device, and exchanges (between ranks, and with the host) have the links to
// themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hydra::support {

/// What moves bytes beside the device: the links between ranks, and those to and from the host's
/// memory.
enum class Link : uint8_t { Ranks, ToDevice, ToHost };

/// A block of a list that is a valid serial order. Times are in any one unit.
struct TimedBlock {
  uint32_t stream = 0;
  std::vector<uint32_t> waits; ///< events that blocks before it signal
  int32_t signals = -1;        ///< an event; -1: none
  double time = 0;
  bool exchange = false;   ///< takes a link, not the device
  Link link = Link::Ranks; ///< of an exchange
  double use = 1;          ///< of the device, the part that it makes use of when it runs alone
  double share = 1;        ///< of the device, the part that it occupies then, at least `use`
  /// Of an exchange between ranks, the beginning of its time, in which the device copies the rank's
  /// own piece within itself, and nothing begins to compute.
  double ownCopy = 0;
};

/// When a block runs. Of an exchange `alone` is how long nothing computes beside it, and `exposed`
/// by how much it keeps the device from computing in all; where several links keep it, each an
/// equal part, but for copies of own pieces, which are of that exchange alone.
struct BlockSpan {
  double begin = 0, end = 0, alone = 0, exposed = 0;
};

/// `total` is the time until all have ended, `compute` that of all blocks but exchanges, one after
/// the other; `wire` is that of exchanges, and `exposed = total - compute` what they add to the
/// step.
struct StreamTimeline {
  std::vector<BlockSpan> blocks;
  double total = 0, compute = 0, wire = 0, exposed = 0;
};

/// What a device does beside a block that runs.
struct DeviceRules {
  /// The part of its rate that computing keeps beside an exchange between ranks, from 0 to 1:
  /// kernels that move bytes take multiprocessors and memory too.
  double overlap = 1;
  /// Nothing: two kernels side by side share the device, so blocks that compute run one at a time,
  /// in the order in which they may begin, and without exchanges the total is the sum of the times.
  /// A number from 0 to 1: those of several streams run side by side. Each holds the part of the
  /// device that it uses, and of the rest of what it occupies this part. What is held beyond the
  /// whole device slows all of them down.
  std::optional<double> exclusive = std::nullopt;
  /// Of the time of a kernel, from 0 to 1, the last part, in which it leaves multiprocessors. An
  /// own piece begins to be copied when all that computes has come so far. 0: it is copied at once,
  /// and what computes waits.
  double copyTail = 0;
};

/// Exchanges of a link run one at a time, in the order in which they may begin; blocks that compute
/// run beside them, beside those of the host at their full rate. Until an own piece is copied,
/// nothing begins to compute.
StreamTimeline predictTimeline(std::span<const TimedBlock> blocks, const DeviceRules &rules = {});
inline StreamTimeline predictTimeline(std::span<const TimedBlock> blocks, double overlap) {
  return predictTimeline(blocks, DeviceRules{.overlap = overlap});
}

} // namespace hydra::support
