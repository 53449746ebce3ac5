// The content rules: who wrote the bytes that a step reads, and what arguments of a step may share.
#include "test/unit/plan/DamageCase.h"

namespace hydra::test {

using namespace planfile;

namespace {

/// Buffers x, y and z of 64 bytes; `over` is a fourth one in the place of x.
struct ContentVerifier : testing::Test {
  ContentVerifier() {
    x = buffer("x", builder.tensor("x", {16}));
    y = buffer("y", builder.tensor("y", {16}));
    z = buffer("z", builder.tensor("z", {16}));
    over = buffer("over", builder.tensorAt("over", {16}, SegmentKind::transient, 0));
    upper = builder.view("x", {8}, {1}, SegmentKind::transient, 0);
    lower = builder.view("x", {8}, {1}, SegmentKind::transient, 32);
    for (uint32_t view : {upper, lower})
      builder.plan.tensors[view]->buffer = builder.plan.tensors[x]->buffer;
  }

  uint32_t buffer(const char *, uint32_t tensor) {
    builder.plan.tensors[tensor]->buffer = ++buffers;
    return tensor;
  }

  std::string errorWith(Blocks body) {
    builder.program("train", std::move(body));
    std::string error = errorOf(builder);
    builder.plan.programs.clear();
    return error;
  }

  PlanBuilder builder;
  uint32_t buffers = 0;
  uint32_t x, y, z, over, upper, lower;
};

std::unique_ptr<BlockT> copy(uint32_t from, uint32_t to) {
  return step("copy", {reads(from), writes(to)});
}
std::unique_ptr<BlockT> fill(uint32_t to) { return step("fill", {writes(to)}); }

} // namespace

TEST_F(ContentVerifier, ReadsFindWhatTheirBufferWasGiven) {
  EXPECT_EQ(errorWith(blocks(fill(x), copy(x, y), fill(over), copy(over, z))), "");
  EXPECT_EQ(errorWith(blocks(fill(x), fill(over), copy(x, y))),
            "plan.fb: programs[0].blocks[2].step: needs x, but byte 0 of the transient segment "
            "holds over");
}

TEST_F(ContentVerifier, ReadsFindWhatWasWritten) {
  EXPECT_EQ(errorWith(blocks(fill(upper), fill(lower), copy(x, y))), "");
  EXPECT_EQ(errorWith(blocks(fill(upper), copy(x, y))),
            "plan.fb: programs[0].blocks[1].step: reads x, but nothing has written byte 32 of the "
            "transient segment");
}

TEST_F(ContentVerifier, AStepLeavesWhatItReads) {
  EXPECT_EQ(errorWith(blocks(fill(x), copy(x, over))),
            "plan.fb: programs[0].blocks[1].step: needs x, but byte 0 of the transient segment "
            "holds over");
}

TEST_F(ContentVerifier, TheEndOfAnIterationIsTheBeginningOfTheNext) {
  EXPECT_EQ(errorWith(blocks(fill(x), loop(1, {}, blocks(copy(x, y), fill(over))))), "");
  EXPECT_EQ(errorWith(blocks(fill(x), loop(2, {}, blocks(copy(x, y), fill(over))))),
            "plan.fb: programs[0].blocks[1].loop.blocks[0].step: needs x, but byte 0 of the "
            "transient segment holds over");
}

TEST_F(ContentVerifier, CasesOfASwitchBeginAlike) {
  const uint32_t count = builder.tensor("count", {}, SegmentKind::transient, DType::i32);
  const auto cases = [&](bool reads) {
    std::vector<Blocks> all;
    all.push_back(blocks(fill(over)));
    all.push_back(reads ? blocks(copy(x, y)) : blocks(fill(y)));
    return all;
  };
  EXPECT_EQ(errorWith(blocks(fill(x), choose(count, cases(true)))), "");
  EXPECT_EQ(errorWith(blocks(fill(x), choose(count, cases(false)), copy(y, z), copy(x, z))), "");
}

TEST_F(ContentVerifier, ArgumentsOfACallShareNothingThatIsWritten) {
  EXPECT_EQ(errorWith(blocks(fill(x), copy(upper, lower))), "");
  const uint32_t middle = builder.view("x", {8}, {1}, SegmentKind::transient, 16);
  builder.plan.tensors[middle]->buffer = builder.plan.tensors[x]->buffer;
  EXPECT_EQ(errorWith(blocks(fill(x), copy(upper, middle))),
            "plan.fb: programs[0].blocks[1].step: arguments 0 (x) and 1 (x) share bytes, and 1 is "
            "written");
}

TEST_F(ContentVerifier, KernelsWorkInPlaceOnTheSameElementsOnly) {
  const uint32_t kernel = builder.kernel("k", 2);
  const uint32_t other = builder.view("other", builder.plan.tensors[x]->shape,
                                      builder.plan.tensors[x]->strides, SegmentKind::transient,
                                      builder.plan.tensors[x]->offset);
  builder.plan.tensors[other]->buffer = builder.plan.tensors[x]->buffer;
  EXPECT_EQ(errorWith(blocks(fill(x), launch("k", kernel, 1, 1, {reads(x), writes(other)}))), "");
  EXPECT_EQ(errorWith(blocks(fill(x), launch("k", kernel, 1, 1, {reads(x), writes(x)}))), "");
  EXPECT_EQ(errorWith(blocks(fill(x), launch("k", kernel, 1, 1, {reads(x), writes(upper)}))),
            "plan.fb: programs[0].blocks[1].step: arguments 0 (x) and 1 (x) share bytes, and 1 is "
            "written");
}

TEST_F(ContentVerifier, ChunksOfOneSequenceAreComparedWithinAnIteration) {
  const uint32_t sequence = builder.tensor("s", {4, 16});
  const uint64_t offset = builder.plan.tensors[sequence]->offset;
  const uint32_t first = builder.view("s", {8}, {1}, SegmentKind::transient, offset),
                 second = builder.view("s", {8}, {1}, SegmentKind::transient, offset + 32);
  for (uint32_t tensor : {sequence, first, second})
    builder.plan.tensors[tensor]->buffer = 9;
  const std::vector<LoopStride> both = {{first, 64}, {second, 64}};
  EXPECT_EQ(errorWith(blocks(fill(sequence), loop(4, both, blocks(copy(first, second))))), "");
  const uint32_t next = builder.view("s", {8}, {1}, SegmentKind::transient, offset + 64);
  builder.plan.tensors[next]->buffer = 9;
  EXPECT_EQ(errorWith(blocks(fill(sequence), loop(4, {{first, 64}}, blocks(copy(first, next))))),
            "plan.fb: programs[0].blocks[1].loop.blocks[0].step: arguments 0 (s) and 1 (s) share "
            "bytes, and 1 is written");
}

} // namespace hydra::test
