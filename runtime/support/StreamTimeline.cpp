// From one end of a block to the next.
#include "runtime/support/StreamTimeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace hydra::support {

namespace {

class Simulation {
public:
  Simulation(std::span<const TimedBlock> blocks, const DeviceRules &rules)
      : blocks(blocks), rules(rules), overlap(std::clamp(rules.overlap, 0.0, 1.0)),
        done(blocks.size()) {
    timeline.blocks.resize(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      streams[blocks[i].stream].blocks.push_back(i);
      if (blocks[i].signals >= 0)
        signaller[static_cast<uint32_t>(blocks[i].signals)] = i;
      (blocks[i].exchange ? timeline.wire : timeline.compute) += blocks[i].time;
    }
  }

  StreamTimeline run() {
    for (;;) {
      while ((device.empty() || rules.exclusive) && begin(/*exchange=*/false))
        continue;
      if (!links)
        begin(/*exchange=*/true);
      if (device.empty() && !links)
        break;
      advance();
    }
    for (const BlockSpan &span : timeline.blocks)
      timeline.exposed += span.exposed;
    timeline.total = now;
    return std::move(timeline);
  }

private:
  struct Stream {
    std::vector<size_t> blocks;
    size_t next = 0;
    double free = 0; ///< when its last block ended
    bool runs = false;

    size_t block() const { return blocks[next]; }
  };
  /// The next block of a stream, which runs.
  struct Running {
    Stream *stream;
    double left; ///< of its time
  };

  /// Since when the next block of a stream may begin; nothing where it may not.
  std::optional<double> readySince(const Stream &stream) const {
    double ready = stream.free;
    for (const uint32_t event : blocks[stream.block()].waits)
      if (const auto found = signaller.find(event); found != signaller.end()) {
        if (!done[found->second])
          return std::nullopt;
        ready = std::max(ready, timeline.blocks[found->second].end);
      }
    return ready;
  }

  /// Of the blocks that may begin, the one that has waited longest. Returns whether there is one.
  bool begin(bool exchange) {
    Stream *longest = nullptr;
    std::pair<double, size_t> first;
    for (auto &[number, stream] : streams) {
      if (stream.runs || stream.next == stream.blocks.size() ||
          blocks[stream.block()].exchange != exchange)
        continue;
      const std::optional<double> ready = readySince(stream);
      if (!ready)
        continue;
      const std::pair key(*ready, stream.block());
      if (!longest || key < first)
        std::tie(longest, first) = std::pair(&stream, key);
    }
    if (!longest)
      return false;
    longest->runs = true;
    timeline.blocks[longest->block()].begin = now;
    const Running running{longest, blocks[longest->block()].time};
    if (exchange)
      links = running;
    else
      device.push_back(running);
    return true;
  }

  /// By how much blocks that compute side by side are slower than each alone.
  double crowd() const {
    if (device.size() <= 1)
      return 1;
    double held = 0;
    for (const Running &one : device) {
      const double use = blocks[one.stream->block()].use;
      held += use + *rules.exclusive * (1 - use);
    }
    return std::max(1.0, held);
  }

  /// To the next end of a block.
  void advance() {
    const double rate = (links ? overlap : 1) / crowd(); // of the device
    const bool computes = !device.empty() && rate > 0;
    double first = 0; // of those that compute, until one ends
    if (computes)
      first = std::ranges::min(device, {}, &Running::left).left / rate;
    const bool linksEnd = links && (!computes || links->left <= first);
    const double time = linksEnd ? links->left : first;
    now += time;
    if (links) {
      BlockSpan &exchange = timeline.blocks[links->stream->block()];
      exchange.alone += device.empty() ? time : 0;
      exchange.exposed += device.empty() ? time : (1 - overlap) * time;
      links->left -= time;
    }
    if (computes)
      finishDevice(first <= time, time * rate);
    if (linksEnd) {
      finish(*links->stream);
      links.reset();
    }
  }

  /// All that compute have come on by `progress`; `ends`: those that had least left have ended.
  void finishDevice(bool ends, double progress) {
    const double least = std::ranges::min(device, {}, &Running::left).left;
    std::vector<Running> left;
    for (Running one : device) {
      if (ends && one.left <= least) {
        finish(*one.stream);
        continue;
      }
      one.left -= progress;
      left.push_back(one);
    }
    device = std::move(left);
  }

  void finish(Stream &stream) {
    timeline.blocks[stream.block()].end = now;
    done[stream.block()] = true;
    stream.free = now;
    stream.runs = false;
    ++stream.next;
  }

  std::span<const TimedBlock> blocks;
  DeviceRules rules;
  double overlap;
  std::map<uint32_t, Stream> streams;
  std::unordered_map<uint32_t, size_t> signaller; ///< by event
  std::vector<bool> done;
  double now = 0;
  std::vector<Running> device; ///< what computes; one at most, unless blocks run side by side
  std::optional<Running> links;
  StreamTimeline timeline;
};

} // namespace

StreamTimeline predictTimeline(std::span<const TimedBlock> blocks, const DeviceRules &rules) {
  return Simulation(blocks, rules).run();
}

} // namespace hydra::support
