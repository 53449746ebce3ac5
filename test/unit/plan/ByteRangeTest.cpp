// Byte ranges of strided tensors, against sets of bytes.
#include "runtime/plan/ByteRange.h"
#include "test/support/PlanBuilder.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

using namespace hydra;
using namespace hydra::runtime;

namespace {

constexpr size_t kSegment = 4096;
using ByteSet = std::bitset<kSegment>;

struct Sample {
  ByteRange range;
  ByteSet bytes;
};

/// A random tensor inside the segment, under up to two loops, with the bytes it touches.
class Sampler {
public:
  explicit Sampler(uint64_t seed) : random(seed) {}

  Sample next() {
    while (true) {
      test::PlanBuilder builder;
      std::vector<int64_t> shape, strides;
      for (size_t i = 0, rank = below(4); i < rank; ++i) {
        shape.push_back(1 + below(4));
        strides.push_back(below(3) ? below(17) : 32);
      }
      std::vector<ByteStep> loops;
      for (size_t i = 0, count = below(3); i < count; ++i)
        loops.push_back({1 + below(4), (static_cast<int64_t>(below(65)) - 32) * 4});
      builder.view("x", shape, strides, planfile::SegmentKind::transient, 4 * below(kSegment / 4));
      builder.plan.segments[1] = planfile::Segment(kSegment * 64, 64);
      builder.program("eval", {});
      const PlanFile file = builder.load();
      const planfile::Tensor &tensor = *file.plan().tensors()->Get(0);
      const auto range = byteRange(tensor, loops);
      if (range && range->end <= kSegment)
        return {*range, bytesOf(tensor, loops)};
    }
  }

private:
  uint64_t below(uint64_t bound) { return random() % bound; }

  static ByteSet bytesOf(const planfile::Tensor &tensor, const std::vector<ByteStep> &loops) {
    std::vector<int64_t> starts = {static_cast<int64_t>(tensor.offset())};
    const auto repeat = [&](uint64_t count, int64_t bytes) {
      std::vector<int64_t> all;
      for (const int64_t start : starts)
        for (uint64_t i = 0; i < count; ++i)
          all.push_back(start + static_cast<int64_t>(i) * bytes);
      starts = std::move(all);
    };
    for (uint32_t i = 0; i < tensor.shape()->size(); ++i)
      repeat(tensor.shape()->Get(i), tensor.strides()->Get(i) * 4);
    for (const ByteStep &loop : loops)
      repeat(loop.count, loop.bytes);
    ByteSet set;
    for (const int64_t start : starts)
      for (int64_t byte = start; byte < start + 4; ++byte)
        set.set(byte);
    return set;
  }

  std::mt19937_64 random;
};

/// The bytes that a range stands for.
ByteSet bytesOf(const ByteRange &range) {
  ByteSet set;
  for (uint64_t byte = range.begin; byte < range.end; ++byte)
    if (range.pitch == 0 || (byte - range.begin) % range.pitch < range.width)
      set.set(byte);
  return set;
}

} // namespace

TEST(ByteRange, HoldsTheBytesOfTheTensorAndSaysWhenNoOthers) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  Sampler sampler(seed);
  size_t exact = 0, pitched = 0;
  for (int i = 0; i < 5000; ++i) {
    const Sample sample = sampler.next();
    const ByteSet stated = bytesOf(sample.range);
    ASSERT_TRUE((sample.bytes & ~stated).none());
    ASSERT_TRUE(sample.bytes.test(sample.range.begin) && sample.bytes.test(sample.range.end - 1));
    if (sample.range.exact) {
      ASSERT_EQ(sample.bytes, stated);
    }
    exact += sample.range.exact;
    pitched += sample.range.pitch != 0;
  }
  EXPECT_GT(exact, 1000u);
  EXPECT_GT(pitched, 500u);
}

TEST(ByteRange, OverlapIsMissedNeverAndCoverIsClaimedOnlyWhenTrue) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  Sampler sampler(seed);
  size_t disjointInside = 0, covered = 0;
  Sample previous = sampler.next();
  for (int i = 0; i < 20000; ++i) {
    const Sample sample = sampler.next();
    const bool shared = (sample.bytes & previous.bytes).any();
    const bool stated = overlap(sample.range, previous.range);
    ASSERT_EQ(stated, overlap(previous.range, sample.range));
    ASSERT_TRUE(stated || !shared);
    disjointInside += !stated && sample.range.begin < previous.range.end &&
                      previous.range.begin < sample.range.end;
    if (covers(sample.range, previous.range)) {
      ByteSet between;
      for (uint64_t byte = sample.range.begin; byte < sample.range.end; ++byte)
        between.set(byte);
      ASSERT_TRUE((previous.bytes & between & ~sample.bytes).none());
      covered += shared;
    }
    previous = sample;
  }
  EXPECT_GT(disjointInside, 0u);
  EXPECT_GT(covered, 0u);
}

TEST(ByteRange, ColumnSlicesOfOneMatrixAreDisjoint) {
  test::PlanBuilder builder;
  const auto transient = planfile::SegmentKind::transient;
  builder.tensorAt("qkv", {16, 12}, transient, 0);
  // Heads of q and k as [H, S, hd]; the last one is a row.
  builder.view("q", {2, 16, 2}, {2, 12, 1}, transient, 0);
  builder.view("k", {2, 16, 2}, {2, 12, 1}, transient, 16);
  builder.view("row", {12}, {1}, transient, 48);
  builder.program("eval", {});
  const PlanFile file = builder.load();
  std::vector<ByteRange> ranges;
  for (const planfile::Tensor *tensor : *file.plan().tensors())
    ranges.push_back(*byteRange(*tensor, {}));
  EXPECT_FALSE(overlap(ranges[1], ranges[2]));
  EXPECT_TRUE(overlap(ranges[1], ranges[3]));
  EXPECT_TRUE(covers(ranges[0], ranges[1]));
  EXPECT_FALSE(covers(ranges[1], ranges[0]));
  EXPECT_EQ(findOverlap(std::span(ranges).subspan(1, 2)), std::nullopt);
  EXPECT_EQ(findOverlap(ranges), std::pair(size_t{0}, size_t{1}));
}
