// From one end of a block to the next.
#include "runtime/support/StreamTimeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace hydra::support {

namespace {

class Simulation {
public:
  Simulation(std::span<const TimedBlock> blocks, double overlap)
      : blocks(blocks), overlap(std::clamp(overlap, 0.0, 1.0)), done(blocks.size()) {
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
      for (Unit *unit : {&device, &links})
        if (!unit->stream)
          begin(*unit);
      if (!device.stream && !links.stream)
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
  };
  /// What runs one block at a time.
  struct Unit {
    bool exchanges;
    Stream *stream = nullptr; ///< whose block runs; null: none
    double left = 0;          ///< of its time

    size_t block() const { return stream->blocks[stream->next]; }
  };

  /// Since when the next block of a stream may begin; nothing where it may not.
  std::optional<double> readySince(const Stream &stream) const {
    double ready = stream.free;
    for (const uint32_t event : blocks[stream.blocks[stream.next]].waits)
      if (const auto found = signaller.find(event); found != signaller.end()) {
        if (!done[found->second])
          return std::nullopt;
        ready = std::max(ready, timeline.blocks[found->second].end);
      }
    return ready;
  }

  /// Of the blocks that may begin, the one that has waited longest.
  void begin(Unit &unit) {
    std::pair<double, size_t> first;
    for (auto &[number, stream] : streams) {
      if (&stream == device.stream || &stream == links.stream ||
          stream.next == stream.blocks.size() ||
          blocks[stream.blocks[stream.next]].exchange != unit.exchanges)
        continue;
      const std::optional<double> ready = readySince(stream);
      if (!ready)
        continue;
      const std::pair key(*ready, stream.blocks[stream.next]);
      if (!unit.stream || key < first)
        std::tie(unit.stream, first) = std::pair(&stream, key);
    }
    if (!unit.stream)
      return;
    unit.left = blocks[unit.block()].time;
    timeline.blocks[unit.block()].begin = now;
  }

  /// To the next end of a block.
  void advance() {
    const double rate = links.stream ? overlap : 1; // of the device
    const bool computes = device.stream && rate > 0;
    const double deviceTime = computes ? device.left / rate : 0;
    const bool linksEnd = links.stream && (!computes || links.left <= deviceTime);
    const bool deviceEnds = computes && (!links.stream || deviceTime <= links.left);
    const double time = linksEnd ? links.left : deviceTime;
    now += time;
    if (links.stream) {
      BlockSpan &exchange = timeline.blocks[links.block()];
      exchange.alone += device.stream ? 0 : time;
      exchange.exposed += device.stream ? (1 - overlap) * time : time;
      links.left -= time;
    }
    if (computes)
      device.left -= time * rate;
    if (deviceEnds)
      finish(device);
    if (linksEnd)
      finish(links);
  }

  void finish(Unit &unit) {
    timeline.blocks[unit.block()].end = now;
    done[unit.block()] = true;
    unit.stream->free = now;
    ++unit.stream->next;
    unit.stream = nullptr;
  }

  std::span<const TimedBlock> blocks;
  double overlap;
  std::map<uint32_t, Stream> streams;
  std::unordered_map<uint32_t, size_t> signaller; ///< by event
  std::vector<bool> done;
  double now = 0;
  Unit device{.exchanges = false}, links{.exchanges = true};
  StreamTimeline timeline;
};

} // namespace

StreamTimeline predictTimeline(std::span<const TimedBlock> blocks, double overlap) {
  return Simulation(blocks, overlap).run();
}

} // namespace hydra::support
