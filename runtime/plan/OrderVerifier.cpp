// Race detection over a static program: vector clocks for the order, an interval map for the bytes.
//
// Blocks are taken in list order, which events respect. Each segment is a map from disjoint
// intervals to the accesses that later ones must still be compared with. Once an access is known to
// come after an older one and takes its place (a write to all of its bytes, or a read where the
// older one was a read), the older one is dropped: whoever is ordered behind the newer is ordered
// behind both. So an interval holds at most about one access per stream.
#include "runtime/plan/OrderVerifier.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

namespace hydra::runtime {

using namespace planfile;

namespace {

/// Number of leading blocks of each stream, as positions in the list plus one, that have ended
/// before the current block starts.
using Clock = std::vector<uint32_t>;

/// One of the accesses that an interval remembers.
struct Seen {
  uint32_t block;
  uint32_t stream;
  ByteAccess access;
};

struct Interval {
  uint64_t end;
  std::vector<Seen> seen;
};

/// By first byte; intervals are disjoint and not empty.
using IntervalMap = std::map<uint64_t, Interval>;

class OrderVerifier {
public:
  OrderVerifier(const Plan &plan, const BlockList &blocks, const Path &owner)
      : plan(plan), blocks(blocks), owner(owner) {
    uint32_t streams = 0;
    for (const Block *block : blocks)
      streams = std::max(streams, block->stream() + 1);
    clocks.assign(streams, Clock(streams, 0));
  }

  void verify(const LoopNest &loops) {
    std::vector<ByteAccess> accesses;
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      const Block &block = *blocks.Get(i);
      Clock &clock = clocks[block.stream()];
      if (block.waits())
        for (const uint32_t event : *block.waits())
          merge(clock, signalled.at(event));
      accesses.clear();
      collectAccesses(plan, block, loops, accesses);
      for (const ByteAccess &access : accesses)
        record({i, block.stream(), access}, clock);
      clock[block.stream()] = i + 1;
      if (block.signals() >= 0)
        signalled[block.signals()] = clock;
    }
  }

private:
  static void merge(Clock &clock, const Clock &other) {
    for (size_t i = 0; i < clock.size(); ++i)
      clock[i] = std::max(clock[i], other[i]);
  }

  /// Makes an interval boundary at `byte` if one interval holds both of its sides.
  static void split(IntervalMap &map, uint64_t byte) {
    auto behind = map.upper_bound(byte);
    if (behind == map.begin())
      return;
    const auto before = std::prev(behind);
    if (before->first == byte || before->second.end <= byte)
      return;
    map.emplace_hint(behind, byte, before->second);
    before->second.end = byte;
  }

  /// Compares with everything seen at the bytes of `now`, then remembers it there.
  void record(const Seen &now, const Clock &clock) {
    IntervalMap &map = segments[static_cast<size_t>(now.access.segment)];
    const auto [begin, end] = std::pair(now.access.bytes.begin, now.access.bytes.end);
    split(map, begin);
    split(map, end);
    uint64_t reached = begin;
    bool alone = true; // nothing older is left at these bytes
    for (auto at = map.lower_bound(begin); at != map.end() && at->first < end; ++at) {
      if (reached < at->first)
        map.emplace_hint(at, reached, Interval{at->first, {now}});
      std::vector<Seen> &seen = at->second.seen;
      std::erase_if(seen, [&](const Seen &old) { return compare(old, now, clock); });
      alone &= seen.empty();
      seen.push_back(now);
      reached = at->second.end;
    }
    if (reached < end)
      map.emplace(reached, Interval{end, {now}});
    if (alone) {
      map.erase(map.lower_bound(begin), map.lower_bound(end));
      map.emplace(begin, Interval{end, {now}});
    }
  }

  /// Throws if the two conflict and are not ordered; true if `now` takes the place of `old`.
  bool compare(const Seen &old, const Seen &now, const Clock &clock) {
    const bool takesPlace =
        (now.access.writes() || !old.access.writes()) && covers(now.access.bytes, old.access.bytes);
    if (old.block == now.block)
      return takesPlace;
    const bool ordered = clock[old.stream] > old.block;
    if (!ordered && (old.access.writes() || now.access.writes()) &&
        overlap(old.access.bytes, now.access.bytes))
      failConflict(old, now);
    return ordered && takesPlace;
  }

  [[noreturn]] void failConflict(const Seen &old, const Seen &now) {
    const auto nameOf = [&](const Seen &seen) {
      return plan.tensors()->Get(seen.access.tensor)->name()->string_view();
    };
    failAt(Path(owner, "blocks", now.block),
           "{} {} on stream {}, while blocks[{}] {} {} on stream {}, with bytes of the {} segment "
           "in common; expected an event between them",
           now.access.writes() ? "writes" : "reads", nameOf(now), now.stream, old.block,
           old.access.writes() ? "writes" : "reads", nameOf(old), old.stream,
           EnumNameSegmentKind(now.access.segment));
  }

  const Plan &plan;
  const BlockList &blocks;
  const Path &owner;
  std::vector<Clock> clocks; // of the next block of each stream
  std::unordered_map<int32_t, Clock> signalled;
  std::array<IntervalMap, static_cast<size_t>(SegmentKind::MAX) + 1> segments;
};

} // namespace

void verifyOrder(const Plan &plan, const BlockList &blocks, const LoopNest &loops,
                 const Path &owner) {
  const auto onFirstStream = [&](const Block *block) {
    return block->stream() == blocks.Get(0)->stream();
  };
  if (!std::all_of(blocks.begin(), blocks.end(), onFirstStream))
    OrderVerifier(plan, blocks, owner).verify(loops);
}

} // namespace hydra::runtime
