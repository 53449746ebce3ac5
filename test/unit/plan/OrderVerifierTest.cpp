// The ordering rule: by hand, and on random programs against a check of all pairs of blocks.
#include "runtime/support/Error.h"
#include "test/support/PlanBuilder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace hydra::test {

using namespace planfile;
using namespace runtime;

namespace {

/// Three tensors of one row each in the transient segment.
struct OrderVerifier : testing::Test {
  OrderVerifier() {
    a = builder.tensor("a", {16});
    b = builder.tensor("b", {16});
    flag = builder.tensor("flag", {}, SegmentKind::transient, DType::i32);
  }

  std::string errorWith(Blocks body) {
    ProgramT &program = builder.program("train", std::move(body));
    program.streams = 4;
    program.events = 8;
    std::string error;
    try {
      builder.load();
    } catch (const support::Error &caught) {
      error = caught.what();
    }
    builder.plan.programs.clear();
    return error;
  }

  PlanBuilder builder;
  uint32_t a, b, flag;
};

std::unique_ptr<BlockT> on(uint32_t stream, std::unique_ptr<BlockT> block,
                           std::vector<uint32_t> waits = {}, int32_t signals = -1) {
  block->stream = stream;
  block->waits = std::move(waits);
  block->signals = signals;
  return block;
}

constexpr const char *kConflict =
    "plan.fb: programs[0].blocks[1]: reads a on stream 1, while blocks[0] writes a on stream 0, "
    "with bytes of the transient segment in common; expected an event between them";

} // namespace

TEST_F(OrderVerifier, NeedsAnEventBetweenStreams) {
  EXPECT_EQ(errorWith(blocks(on(0, step("fill", {writes(a)})), on(1, step("copy", {reads(a)})))),
            kConflict);
  EXPECT_EQ(errorWith(blocks(on(0, step("fill", {writes(a)}), {}, 3),
                             on(1, step("copy", {reads(a)}), {3}))),
            "");
  EXPECT_EQ(errorWith(blocks(on(2, step("fill", {writes(a)})), on(2, step("copy", {reads(a)})))),
            "");
}

TEST_F(OrderVerifier, LetsReadersRunTogetherButNotWithTheNextWriter) {
  const auto body = [&](std::vector<uint32_t> waits) {
    return blocks(on(0, step("fill", {writes(a)}), {}, 0), on(1, step("copy", {reads(a)}), {0}, 1),
                  on(2, step("copy", {reads(a)}), {0}, 2),
                  on(0, step("fill", {writes(a)}), std::move(waits)));
  };
  EXPECT_EQ(errorWith(body({1, 2})), "");
  for (const std::vector<uint32_t> &waits : {std::vector<uint32_t>{1}, {2}, {}})
    EXPECT_NE(errorWith(body(waits)), "");
}

TEST_F(OrderVerifier, FollowsEventsThroughOtherStreams) {
  EXPECT_EQ(errorWith(blocks(
                on(0, step("fill", {writes(a)}), {}, 0), on(1, step("fill", {writes(b)}), {0}),
                on(1, step("fill", {writes(b)}), {}, 1), on(2, step("copy", {reads(a)}), {1}))),
            "");
}

TEST_F(OrderVerifier, AnEventCoversOnlyWhatCameBeforeIt) {
  EXPECT_NE(
      errorWith(blocks(on(0, step("fill", {writes(b)}), {}, 0), on(0, step("fill", {writes(a)})),
                       on(1, step("copy", {reads(a)}), {0}))),
      "");
}

TEST_F(OrderVerifier, SeesPartsOfTensors) {
  const auto transient = SegmentKind::transient;
  const uint64_t offset = builder.plan.tensors[a]->offset;
  const uint32_t head = builder.view("head", {8}, {1}, transient, offset);
  const uint32_t tail = builder.view("tail", {8}, {1}, transient, offset + 32);
  const uint32_t middle = builder.view("middle", {2}, {1}, transient, offset + 28);
  const uint32_t even = builder.view("even", {8}, {2}, transient, offset);
  const uint32_t odd = builder.view("odd", {8}, {2}, transient, offset + 4);
  const auto together = [&](uint32_t x, uint32_t y) {
    return errorWith(blocks(on(0, step("fill", {writes(x)})), on(1, step("fill", {writes(y)}))));
  };
  EXPECT_EQ(together(head, tail), "");
  EXPECT_NE(together(head, middle), "");
  EXPECT_NE(together(middle, tail), "");
  EXPECT_EQ(together(even, odd), "");
  EXPECT_NE(together(even, tail), "");
  // A slice that is written later does not hide one that was written before.
  EXPECT_NE(errorWith(blocks(on(0, step("fill", {writes(even)})),
                             on(1, step("fill", {writes(odd)}), {}, 0),
                             on(2, step("copy", {reads(a)}), {0}))),
            "");
}

TEST_F(OrderVerifier, LoopsAndSwitchesTouchWhatIsInside) {
  const auto inside = [&](uint32_t tensor) { return blocks(step("fill", {writes(tensor)})); };
  const auto cases = [&](uint32_t first, uint32_t second) {
    std::vector<Blocks> result;
    result.push_back(inside(first));
    result.push_back(inside(second));
    return result;
  };
  EXPECT_NE(errorWith(blocks(on(0, loop(3, {}, inside(a))), on(1, step("copy", {reads(a)})))), "");
  EXPECT_EQ(
      errorWith(blocks(on(0, loop(3, {}, inside(a)), {}, 0), on(1, step("copy", {reads(a)}), {0}))),
      "");
  EXPECT_NE(errorWith(blocks(on(0, choose(flag, cases(b, a))), on(1, step("copy", {reads(a)})))),
            "");
  EXPECT_NE(
      errorWith(blocks(on(0, step("fill", {writes(flag)})), on(1, choose(flag, cases(b, a))))), "");
  EXPECT_EQ(errorWith(blocks(on(0, choose(flag, cases(b, b))), on(1, step("copy", {reads(a)})))),
            "");
}

TEST_F(OrderVerifier, LoopsTouchTheirTensorsInAllIterations) {
  const uint32_t element =
      builder.view("element", {1}, {1}, SegmentKind::transient, builder.plan.tensors[a]->offset);
  const auto body = [&](uint64_t count) {
    return blocks(
        on(0, loop(count, {LoopStride(element, 4)}, blocks(step("fill", {writes(element)})))),
        on(1, step("copy", {reads(b)})));
  };
  EXPECT_EQ(errorWith(body(16)), "");
  EXPECT_NE(errorWith(body(17)), "");
}

TEST_F(OrderVerifier, ChecksBodiesOnTheirOwn) {
  const auto body = [&](std::vector<uint32_t> waits) {
    return blocks(loop(2, {},
                       blocks(on(0, step("fill", {writes(a)}), {}, 0),
                              on(1, step("copy", {reads(a)}), std::move(waits)))));
  };
  EXPECT_EQ(errorWith(body({0})), "");
  EXPECT_EQ(errorWith(body({})),
            "plan.fb: programs[0].blocks[0].loop.blocks[1]: reads a on stream 1, while blocks[0] "
            "writes a on stream 0, with bytes of the transient segment in common; expected an "
            "event between them");
}

TEST_F(OrderVerifier, KnowsThatScalarsAreRead) {
  const uint32_t lr = builder.scalar("lr", 1);
  const uint32_t tensor = builder.plan.scalars[lr]->tensor;
  EXPECT_NE(errorWith(blocks(on(0, step("adamw", {builder.readsScalar(lr)})),
                             on(1, step("fill", {writes(tensor)})))),
            "");
}

namespace {

/// A random program, and whether it is free of races by looking at all pairs of blocks.
class RandomProgram {
public:
  RandomProgram(PlanBuilder &builder, uint64_t seed) : builder(builder), random(seed) {
    const size_t tensors = 2 + below(8);
    for (size_t i = 0; i < tensors; ++i)
      addTensor();
    const size_t count = 2 + below(10);
    const uint32_t streams = 1 + below(4);
    ProgramT &program = builder.program("train", {});
    program.streams = streams;
    program.events = count;
    for (size_t i = 0; i < count; ++i)
      program.blocks.push_back(addBlock(i, streams));
  }

  bool ordered() const {
    for (size_t j = 0; j < before.size(); ++j) {
      for (size_t i = 0; i < j; ++i)
        if (!before[j].count(i) && conflict(i, j))
          return false;
    }
    return true;
  }

private:
  uint64_t below(uint64_t bound) { return random() % bound; }

  /// A piece of a 4 x 8 matrix of bytes: some rows, some columns.
  void addTensor() {
    const uint64_t row = below(4), column = below(8);
    const int64_t rows = 1 + below(4 - row), columns = 1 + below(8 - column);
    builder.view("t", {rows, columns}, {8, 1}, SegmentKind::transient, row * 8 + column, DType::u8);
    builder.plan.segments[1] = Segment(32, 64);
    bytes.emplace_back();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        bytes.back().insert((row + i) * 8 + column + j);
  }

  std::unique_ptr<BlockT> addBlock(size_t position, uint32_t streams) {
    std::vector<Arg> args;
    for (size_t i = 0, count = 1 + below(2); i < count; ++i) {
      const uint32_t tensor = below(bytes.size());
      args.push_back(below(3) ? reads(tensor) : writes(tensor));
    }
    const uint32_t stream = below(streams);
    std::set<size_t> earlier;
    std::vector<uint32_t> waits;
    const auto follow = [&](size_t block) {
      earlier.insert(block);
      earlier.insert(before[block].begin(), before[block].end());
    };
    for (size_t i = 0; i < position; ++i) {
      if (streamOf[i] == stream)
        follow(i);
      else if (below(position) < 2) {
        waits.push_back(i);
        follow(i);
      }
    }
    streamOf.push_back(stream);
    before.push_back(std::move(earlier));
    argsOf.push_back(args);
    return on(stream, step("work", args), waits, position);
  }

  bool conflict(size_t i, size_t j) const {
    for (const Arg &x : argsOf[i]) {
      for (const Arg &y : argsOf[j]) {
        if (x.access() == Access::write || y.access() == Access::write) {
          for (const uint64_t byte : bytes[x.tensor()])
            if (bytes[y.tensor()].count(byte))
              return true;
        }
      }
    }
    return false;
  }

  PlanBuilder &builder;
  std::mt19937_64 random;
  std::vector<std::set<uint64_t>> bytes; // of each tensor
  std::vector<std::set<size_t>> before;  // of each block, all that it comes after
  std::vector<uint32_t> streamOf;        // of each block
  std::vector<std::vector<Arg>> argsOf;  // of each block
};

} // namespace

TEST(RandomPrograms, AreAcceptedExactlyWhenFreeOfRaces) {
  const uint64_t seed = std::random_device()();
  size_t accepted = 0, rejected = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    PlanBuilder builder;
    const RandomProgram program(builder, seed + i);
    std::string error;
    try {
      builder.load();
    } catch (const support::Error &caught) {
      error = caught.what();
      ASSERT_NE(error.find("expected an event between them"), std::string::npos) << error;
    }
    ASSERT_EQ(error.empty(), program.ordered()) << "seed " << seed + i << ": " << error;
    ++(error.empty() ? accepted : rejected);
  }
  EXPECT_GT(accepted, 1000u);
  EXPECT_GT(rejected, 1000u);
}

} // namespace hydra::test
