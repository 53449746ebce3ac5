// From one end of a block to the next.
#include "runtime/support/StreamTimeline.h"

#include <algorithm>
#include <limits>
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
      while (!copies() && (device.empty() || rules.exclusive) && begin(std::nullopt))
        continue;
      for (const Link link : {Link::Ranks, Link::ToDevice, Link::ToHost})
        if (!links.contains(link))
          begin(link);
      if (device.empty() && links.empty())
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
    double copy; ///< what is left of copying its own piece
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

  static bool takes(const TimedBlock &block, std::optional<Link> link) {
    return link ? block.exchange && block.link == *link : !block.exchange;
  }

  /// Of the blocks that take a link, or the device, and may begin, the one that has waited longest.
  /// Returns whether there is one.
  bool begin(std::optional<Link> link) {
    Stream *longest = nullptr;
    std::pair<double, size_t> first;
    for (auto &[number, stream] : streams) {
      if (stream.runs || stream.next == stream.blocks.size() ||
          !takes(blocks[stream.block()], link))
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
    const TimedBlock &block = blocks[longest->block()];
    const Running running{longest, block.time,
                          link == Link::Ranks ? std::min(block.ownCopy, block.time) : 0};
    if (link)
      links.emplace(*link, running);
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
      const TimedBlock &block = blocks[one.stream->block()];
      held += block.use + *rules.exclusive * (std::max(block.use, block.share) - block.use);
    }
    return std::max(1.0, held);
  }

  /// Whether an exchange has its own piece left to copy.
  bool copies() const {
    const auto exchange = links.find(Link::Ranks);
    return exchange != links.end() && exchange->second.copy > 0;
  }

  /// What computing has of the rate of the device.
  double deviceRate() const {
    if (copies())
      return rules.copyTail > 0 ? 1 / crowd() : 0;
    return (links.contains(Link::Ranks) ? overlap : 1) / crowd();
  }

  /// How much of what computes is in front of the copy of an own piece: until all are in the last
  /// part of their time.
  double inFront() const {
    double most = 0;
    if (rules.copyTail > 0 && copies())
      for (const Running &one : device)
        most = std::max(most, one.left - rules.copyTail * blocks[one.stream->block()].time);
    return most;
  }

  /// To the next end of a block, or begin or end of copying an own piece.
  void advance() {
    const bool copying = copies();
    const double rate = deviceRate(), held = inFront();
    const bool computes = !device.empty() && rate > 0;
    double first = 0; // of those that compute, until one ends
    if (computes)
      first = std::ranges::min(device, {}, &Running::left).left / rate;
    double time = computes ? first : std::numeric_limits<double>::infinity();
    if (held > 0)
      time = std::min(time, held / rate);
    const auto moves = [&](Link link) { return link != Link::Ranks || held <= 0; };
    for (const auto &[link, running] : links)
      if (moves(link))
        time = std::min(time, running.copy > 0 ? running.copy : running.left);
    now += time;
    for (auto &[link, running] : links)
      count(link, running, time, copying);
    if (computes)
      finishDevice(first <= time, time * rate);
    for (auto one = links.begin(); one != links.end();) {
      const double moved = moves(one->first) ? time : 0;
      const bool ends = one->second.left <= moved;
      one->second.left -= moved;
      one->second.copy = std::max(0.0, one->second.copy - moved);
      if (ends)
        finish(*one->second.stream);
      one = ends ? links.erase(one) : std::next(one);
    }
  }

  /// Adds what an exchange has kept from computing for `time`; `copying`: by copying an own piece.
  void count(Link link, const Running &running, double time, bool copying) {
    BlockSpan &exchange = timeline.blocks[running.stream->block()];
    const bool idle = device.empty() || (copying && rules.copyTail <= 0);
    exchange.alone += idle ? time : 0;
    if (copying)
      exchange.exposed += idle && link == Link::Ranks ? time : 0;
    else if (idle)
      exchange.exposed += time / static_cast<double>(links.size());
    else if (link == Link::Ranks)
      exchange.exposed += (1 - overlap) * time;
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
  std::map<Link, Running> links;
  StreamTimeline timeline;
};

} // namespace

StreamTimeline predictTimeline(std::span<const TimedBlock> blocks, const DeviceRules &rules) {
  return Simulation(blocks, rules).run();
}

} // namespace hydra::support
