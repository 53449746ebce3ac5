// Predicted time lines against what follows from them, and by hand.
#include "runtime/support/StreamTimeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

using namespace hydra::support;

namespace {

TimedBlock compute(uint32_t stream, double time, std::vector<uint32_t> waits = {},
                   int32_t signals = -1) {
  return {.stream = stream, .waits = std::move(waits), .signals = signals, .time = time};
}
TimedBlock exchange(double time, std::vector<uint32_t> waits = {}, int32_t signals = -1) {
  return {
      .stream = 3, .waits = std::move(waits), .signals = signals, .time = time, .exchange = true};
}

} // namespace

TEST(StreamTimeline, WithoutExchangesStreamsShareTheDevice) {
  const std::vector<TimedBlock> blocks = {compute(0, 2, {}, 0), compute(1, 3, {0}), compute(0, 4),
                                          compute(2, 5)};
  const StreamTimeline timeline = predictTimeline(blocks);
  EXPECT_EQ(timeline.total, 14);
  EXPECT_EQ(timeline.exposed, 0);
  EXPECT_EQ(timeline.blocks[3].begin, 0 + 2)
      << "ready from the beginning, behind what stands before";
  EXPECT_EQ(timeline.blocks[1].begin, 7);
}

TEST(StreamTimeline, WhatRunsBesideAnExchangeHidesIt) {
  // 0..10 computes, 10..40 is exchanged, beside it 10..25 computes; the reader waits.
  const std::vector<TimedBlock> blocks = {compute(0, 10, {}, 0), exchange(30, {0}, 1),
                                          compute(0, 15), compute(0, 5, {1})};
  const StreamTimeline timeline = predictTimeline(blocks);
  EXPECT_EQ(timeline.compute, 30);
  EXPECT_EQ(timeline.wire, 30);
  EXPECT_EQ(timeline.exposed, 15);
  EXPECT_EQ(timeline.total, 45);
  EXPECT_EQ(timeline.blocks[1].exposed, 15);
  EXPECT_EQ(timeline.blocks[3].begin, 40);
}

TEST(StreamTimeline, AReaderOnAStreamOfItsOwnLetsTheOthersGoOn) {
  const std::vector<TimedBlock> blocks = {compute(0, 10, {}, 0), exchange(30, {0}, 1),
                                          compute(1, 5, {1}), compute(0, 15), compute(0, 25)};
  const StreamTimeline timeline = predictTimeline(blocks);
  EXPECT_EQ(timeline.exposed, 0);
  EXPECT_EQ(timeline.total, 55);
  EXPECT_EQ(timeline.blocks[2].begin, 50) << "the device is taken when the exchange has ended";
}

TEST(StreamTimeline, ExchangesFollowEachOther) {
  const std::vector<TimedBlock> blocks = {exchange(10), exchange(20), compute(0, 5)};
  const StreamTimeline timeline = predictTimeline(blocks);
  EXPECT_EQ(timeline.total, 30);
  EXPECT_EQ(timeline.blocks[0].exposed, 5);
  EXPECT_EQ(timeline.blocks[1].exposed, 20);
}

TEST(StreamTimeline, AnExchangeSlowsDownWhatRunsBesideIt) {
  // 0..10 computes; beside the exchange, 10..40, the next 15 take 30 at half the rate.
  const std::vector<TimedBlock> blocks = {compute(0, 10, {}, 0), exchange(30, {0}, 1),
                                          compute(0, 15), compute(0, 5, {1})};
  const StreamTimeline timeline = predictTimeline(blocks, 0.5);
  EXPECT_EQ(timeline.blocks[2].end, 40);
  EXPECT_EQ(timeline.total, 45);
  EXPECT_EQ(timeline.exposed, 15);
  EXPECT_EQ(timeline.blocks[1].alone, 0);
  EXPECT_EQ(predictTimeline(blocks, 0).total, 60) << "nothing is hidden";
}

TEST(StreamTimeline, NothingComputesWhileAnOwnPieceIsCopied) {
  // 0..10 computes; of the exchange, 10..40, 4 are the copy; beside the rest 15 take until 29.
  std::vector<TimedBlock> blocks = {compute(0, 10, {}, 0), exchange(30, {0}, 1), compute(0, 15),
                                    compute(0, 5, {1})};
  blocks[1].ownCopy = 4;
  const StreamTimeline timeline = predictTimeline(blocks);
  EXPECT_EQ(timeline.wire, 30) << "the copy is a part of the exchange";
  EXPECT_EQ(timeline.blocks[2].end, 29);
  EXPECT_EQ(timeline.total, 45);
  EXPECT_EQ(timeline.blocks[1].alone, 4 + 11);
  EXPECT_EQ(timeline.exposed, 15);
  // At half the rate 13 are done beside the other 26.
  const StreamTimeline slower = predictTimeline(blocks, 0.5);
  EXPECT_EQ(slower.blocks[2].end, 42);
  EXPECT_EQ(slower.total, 47);
  EXPECT_EQ(slower.blocks[1].alone, 4);
  EXPECT_EQ(slower.exposed, 4 + 13);
  blocks[1].ownCopy = 50;
  EXPECT_EQ(predictTimeline(blocks).total, 60) << "no more than all of the exchange";
}

TEST(StreamTimeline, AllThatRunsWaitsForAnOwnPiece) {
  // Side by side: the copy, 4..14, holds up what has 6 left and what has just begun.
  std::vector<TimedBlock> blocks = {compute(1, 4, {}, 0), compute(0, 10), exchange(12, {0}),
                                    compute(1, 3)};
  for (TimedBlock &block : blocks)
    block.use = block.share = 0.25;
  blocks[2].ownCopy = 10;
  const StreamTimeline timeline = predictTimeline(blocks, {.exclusive = 0});
  EXPECT_EQ(timeline.blocks[1].end, 20);
  EXPECT_EQ(timeline.blocks[3].end, 17);
  EXPECT_EQ(timeline.blocks[2].end, 16);
  EXPECT_EQ(timeline.blocks[2].alone, 10);
  EXPECT_EQ(timeline.total, 20);
}

TEST(StreamTimeline, AnOwnPieceIsCopiedBesideTheLastPartOfAKernel) {
  // 10..30 a kernel beside the exchange; from 28 on the copy of 4 runs beside it, then alone.
  std::vector<TimedBlock> blocks = {compute(0, 10, {}, 0), exchange(30, {0}, 1), compute(0, 20),
                                    compute(0, 3), compute(0, 5, {1})};
  blocks[1].ownCopy = 4;
  const DeviceRules rules{.copyTail = 0.1};
  StreamTimeline timeline = predictTimeline(blocks, rules);
  EXPECT_EQ(timeline.blocks[2].end, 30) << "it takes nothing from what runs";
  EXPECT_EQ(timeline.blocks[3].begin, 32) << "nothing begins until it has ended";
  EXPECT_EQ(timeline.blocks[1].end, 28 + 30) << "the exchange begins with it";
  EXPECT_EQ(timeline.blocks[1].alone, 2 + (58 - 35));
  EXPECT_EQ(timeline.blocks[1].exposed, timeline.exposed);
  EXPECT_EQ(timeline.total, timeline.compute + timeline.exposed);
  blocks[1].ownCopy = 1; // and ends beside it
  timeline = predictTimeline(blocks, rules);
  EXPECT_EQ(timeline.blocks[3].begin, 30);
  EXPECT_EQ(timeline.blocks[1].alone, 58 - 33);
}

TEST(StreamTimeline, ACopyWaitsForTheLastPartOfAllThatRun) {
  // 4..9 what has 6 of its 10 left; the copy, from 9 on, has what is behind the other kernel wait.
  std::vector<TimedBlock> blocks = {compute(1, 4, {}, 0), compute(0, 10), exchange(12, {0}),
                                    compute(1, 3), compute(1, 1)};
  for (TimedBlock &block : blocks)
    block.use = block.share = 0.25;
  blocks[2].ownCopy = 10;
  const StreamTimeline timeline = predictTimeline(blocks, {.exclusive = 0, .copyTail = 0.1});
  EXPECT_EQ(timeline.blocks[1].end, 10);
  EXPECT_EQ(timeline.blocks[3].end, 7) << "it has begun with the exchange";
  EXPECT_EQ(timeline.blocks[4].begin, 19);
  EXPECT_EQ(timeline.blocks[2].end, 21);
  EXPECT_EQ(timeline.blocks[2].alone, 9 + 1);
}

TEST(StreamTimeline, NothingBeginsWhileAnOwnPieceIsCopied) {
  // 0..4 it is copied, 0..2 its reader's other value comes from the host; 4..9 the reader computes.
  std::vector<TimedBlock> blocks = {exchange(10),
                                    {.stream = 4,
                                     .waits = {},
                                     .signals = 0,
                                     .time = 2,
                                     .exchange = true,
                                     .link = Link::ToDevice,
                                     .ownCopy = 2},
                                    compute(0, 5, {0})};
  blocks[0].ownCopy = 4;
  const StreamTimeline timeline = predictTimeline(blocks);
  EXPECT_EQ(timeline.blocks[2].begin, 4);
  EXPECT_EQ(timeline.blocks[2].end, 9);
  EXPECT_EQ(timeline.total, 10);
  EXPECT_EQ(timeline.exposed, 5);
  EXPECT_EQ(timeline.blocks[0].exposed, 4 + 1);
  EXPECT_EQ(timeline.blocks[1].exposed, 0) << "what comes from the host has no own piece";
  EXPECT_EQ(timeline.blocks[1].alone, 2);
}

TEST(StreamTimeline, StepsSideBySideShareTheDevice) {
  // 4 and 10 alone.
  std::vector<TimedBlock> blocks = {compute(0, 4), compute(1, 10)};
  const auto total = [&](double exclusive) {
    return predictTimeline(blocks, {.exclusive = exclusive}).total;
  };
  EXPECT_EQ(total(0), 14) << "each has half until 8, then the other has 6 left";
  blocks[1].use = 0.5;
  EXPECT_DOUBLE_EQ(total(0), 4 * 1.5 + 6) << "at two thirds of their rates until 6";
  EXPECT_DOUBLE_EQ(total(0.5), 4 * 1.75 + 6);
  EXPECT_DOUBLE_EQ(total(1), 14);
  blocks[0].use = 0.2;
  EXPECT_DOUBLE_EQ(total(0), 10) << "together they use less than there is";
}

TEST(StreamTimeline, SideBySideStreamsAndEventsStillOrder) {
  std::vector<TimedBlock> blocks = {compute(0, 2, {}, 0), compute(1, 3, {0}), compute(0, 4)};
  for (TimedBlock &block : blocks)
    block.use = 0.1;
  const StreamTimeline timeline = predictTimeline(blocks, {.exclusive = 0});
  EXPECT_EQ(timeline.blocks[1].begin, 2);
  EXPECT_EQ(timeline.blocks[2].begin, 2);
  EXPECT_EQ(timeline.total, 6);
}

TEST(StreamTimeline, BothWaysToTheHostAreLinksOfTheirOwn) {
  // 0..10 arrives, 10..12 is worked on and 10..20 the next arrives; 12..22 the first goes back.
  const auto moves = [](Link link, uint32_t stream, std::vector<uint32_t> waits, int32_t signals) {
    return TimedBlock{.stream = stream,
                      .waits = std::move(waits),
                      .signals = signals,
                      .time = 10,
                      .exchange = true,
                      .link = link};
  };
  const std::vector<TimedBlock> blocks = {moves(Link::ToDevice, 4, {}, 0), compute(1, 2, {0}, 1),
                                          moves(Link::ToDevice, 4, {}, 2),
                                          moves(Link::ToHost, 5, {1}, -1), compute(1, 2, {2})};
  const StreamTimeline timeline = predictTimeline(blocks, 0.5);
  EXPECT_EQ(timeline.blocks[1].end, 12) << "a transfer takes nothing of the device";
  EXPECT_EQ(timeline.blocks[2].begin, 10);
  EXPECT_EQ(timeline.blocks[3].begin, 12);
  EXPECT_EQ(timeline.total, 22);
  EXPECT_EQ(timeline.compute, 4);
  EXPECT_EQ(timeline.wire, 30);
  EXPECT_EQ(timeline.exposed, 18);
  EXPECT_EQ(timeline.blocks[3].exposed, 4) << "half of the 8 in which nothing computes";
}

TEST(StreamTimeline, RandomLists) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    std::vector<TimedBlock> blocks;
    int32_t events = 0;
    for (uint32_t i = 0, count = 1 + below(40); i < count; ++i) {
      TimedBlock block{
          .stream = below(3), .waits = {}, .time = 1.0 + below(16), .exchange = below(4) == 0};
      if (block.exchange) {
        block.link = std::array{Link::Ranks, Link::ToDevice, Link::ToHost}[below(3)];
        block.stream = 3 + static_cast<uint32_t>(block.link);
      }
      for (uint32_t waits = below(3); events > 0 && waits > 0; --waits)
        block.waits.push_back(below(static_cast<uint32_t>(events)));
      if (below(2) == 0)
        block.signals = events++;
      blocks.push_back(block);
    }
    const StreamTimeline timeline = predictTimeline(blocks);
    double last = 0, compute = 0, wire = 0, exposed = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const BlockSpan &span = timeline.blocks[i];
      EXPECT_EQ(span.end, span.begin + blocks[i].time);
      last = std::max(last, span.end);
      (blocks[i].exchange ? wire : compute) += blocks[i].time;
      exposed += span.exposed;
      for (size_t j = 0; j < i; ++j) {
        const BlockSpan &before = timeline.blocks[j];
        const bool awaited = std::ranges::count(blocks[i].waits, blocks[j].signals) > 0;
        if (blocks[j].stream == blocks[i].stream || (blocks[j].signals >= 0 && awaited)) {
          EXPECT_LE(before.end, span.begin) << "seed " << seed << ", " << j << " before " << i;
        }
        if (blocks[j].exchange == blocks[i].exchange && blocks[j].link == blocks[i].link) {
          EXPECT_TRUE(before.end <= span.begin || span.end <= before.begin) << "seed " << seed;
        }
      }
    }
    EXPECT_EQ(timeline.total, last) << "seed " << seed;
    EXPECT_EQ(timeline.compute, compute);
    EXPECT_EQ(timeline.wire, wire);
    EXPECT_EQ(timeline.exposed, exposed);
    EXPECT_NEAR(timeline.total, compute + exposed, 1e-9) << "seed " << seed;
    for (const double overlap : {0.0, 0.3}) {
      const StreamTimeline slower = predictTimeline(blocks, overlap);
      EXPECT_NEAR(slower.total, slower.compute + slower.exposed, 1e-9) << "seed " << seed;
      EXPECT_LE(slower.total, compute + wire + 1e-9) << "seed " << seed;
    }
    // Copies of own pieces are exposed, and what is beside them is no slower.
    std::vector<TimedBlock> copying = blocks;
    double own = 0;
    for (TimedBlock &block : copying)
      if (block.exchange && block.link == Link::Ranks)
        own += block.ownCopy = 0.5 * below(3);
    for (const double overlap : {0.0, 0.3, 1.0}) {
      const StreamTimeline slower = predictTimeline(copying, overlap);
      double alone = 0;
      for (const BlockSpan &span : slower.blocks)
        alone += span.alone;
      EXPECT_NEAR(slower.total, slower.compute + slower.exposed, 1e-9) << "seed " << seed;
      EXPECT_LE(slower.total, compute + wire + 1e-9) << "seed " << seed;
      EXPECT_GE(slower.exposed, own - 1e-9) << "seed " << seed;
      EXPECT_GE(alone, own - 1e-9) << "seed " << seed;
    }
    // Beside the last part of kernels they are exposed by less.
    for (const double tail : {0.2, 1.0}) {
      const StreamTimeline beside = predictTimeline(copying, {.overlap = 0.3, .copyTail = tail});
      EXPECT_NEAR(beside.total, beside.compute + beside.exposed, 1e-9) << "seed " << seed;
      EXPECT_LE(beside.total, compute + wire + 1e-9) << "seed " << seed;
    }
    // Side by side nothing takes longer than one by one, nor ends before its own stream can.
    double longest = 0;
    std::vector<double> streams(6);
    for (TimedBlock &block : blocks) {
      block.use = 0.25 * below(5);
      block.share = 0.25 * below(5);
      longest = std::max(longest, streams[block.stream] += block.time);
    }
    for (const double exclusive : {0.0, 0.4, 1.0}) {
      const StreamTimeline beside = predictTimeline(blocks, {.exclusive = exclusive});
      EXPECT_LE(beside.total, compute + wire + 1e-9) << "seed " << seed;
      EXPECT_GE(beside.total, longest - 1e-9) << "seed " << seed;
      for (size_t i = 0; i < blocks.size(); ++i)
        EXPECT_GE(beside.blocks[i].end, beside.blocks[i].begin + blocks[i].time - 1e-9);
    }
    // Where each occupies little, streams do not slow each other down.
    for (TimedBlock &block : blocks)
      block.use = block.share = 1.0 / 8;
    for (const StreamTimeline &beside = predictTimeline(blocks, {.exclusive = 1.0});
         const BlockSpan &span : beside.blocks) {
      const TimedBlock &block = blocks[static_cast<size_t>(&span - beside.blocks.data())];
      EXPECT_NEAR(span.end, span.begin + block.time, 1e-9) << "seed " << seed;
    }
    // Exchanges that take no time leave the sum of the others.
    for (TimedBlock &block : blocks)
      block.time = block.exchange ? 0 : block.time;
    EXPECT_EQ(predictTimeline(blocks).total, compute) << "seed " << seed;
  }
}
