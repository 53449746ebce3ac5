// When the blocks of a list run, predicted from the time of each: on streams and events, where all
// streams compute on one device, and exchanges between ranks have the links to themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hydra::support {

/// A block of a list that is a valid serial order. Times are in any one unit.
struct TimedBlock {
  uint32_t stream = 0;
  std::vector<uint32_t> waits; ///< events that blocks before it signal
  int32_t signals = -1;        ///< an event; -1: none
  double time = 0;
  bool exchange = false; ///< takes the links, not the device
};

/// When a block runs. Of an exchange `alone` is how long nothing computes beside it, and `exposed`
/// by how much it keeps the device from computing in all.
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

/// Two kernels side by side share the device, so blocks that compute run one after the other, in
/// the order in which they may begin, and so do exchanges; a block of either kind runs beside those
/// of the other. `overlap`, from 0 to 1, is the part of its rate that computing keeps beside an
/// exchange: kernels that move bytes take multiprocessors and memory too. Without exchanges the
/// total is the sum of the times.
StreamTimeline predictTimeline(std::span<const TimedBlock> blocks, double overlap = 1);

} // namespace hydra::support
