// Runs of programs that are started behind one that is under way, on a GPU that takes its time.
#include "runtime/cuda/CudaExecutor.h"
#include "test/unit/cuda/driver/OnFakeDriver.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::test;
using hydra::planfile::SegmentKind;

namespace {

/// An executor with a tensor that stands for what a program is given and leaves, and another.
class StartedRuns : public OnFakeDriver {
protected:
  void SetUp() override {
    PlanBuilder builder = forGpu();
    tensor = builder.tensor("tensor", {kElements}, SegmentKind::persistent);
    other = builder.tensor("other", {kElements}, SegmentKind::persistent);
    few = builder.tensor("few", {4}, SegmentKind::persistent);
    const uint32_t whole = builder.tensor("whole", {6}, SegmentKind::persistent);
    turned = builder.view("turned", {2, 3}, {1, 2}, SegmentKind::persistent,
                          builder.plan.tensors[whole]->offset);
    file.emplace(loaded(std::move(builder)));
    executor = makeCudaExecutor(*file, {.graph = false});
  }
  void TearDown() override {
    executor.reset();
    OnFakeDriver::TearDown();
  }

  void write(float value) {
    const std::vector<float> values(kElements, value);
    executor->write(tensor, std::as_bytes(std::span(values)));
  }
  float read(uint32_t which) {
    std::vector<float> values(kElements);
    executor->read(which, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values.front(), values.back());
    return values.front();
  }
  void start() { executor->start(0, std::array{tensor}); }

  static constexpr int64_t kElements = 300'000; // a quarter of what is written without waiting
  uint32_t tensor = 0, other = 0, few = 0, turned = 0;
  std::optional<PlanFile> file;
  std::unique_ptr<Executor> executor;
};

} // namespace

TEST_F(StartedRuns, LeaveTheirOutputsToThoseBehind) {
  ASSERT_TRUE(executor->startsAhead(0));
  write(1);
  start();
  for (int i = 2; i < 9; ++i) {
    write(float(i));
    start();
    executor->finish();
    EXPECT_EQ(read(tensor), float(i - 1));
  }
  executor->finish();
  EXPECT_EQ(read(tensor), 8.0F);
  // Nothing is under way: this is what is there.
  write(9);
  executor->run(0);
  EXPECT_EQ(read(tensor), 9.0F);
}

TEST_F(StartedRuns, TakeMoreThanIsWrittenWithoutWaiting) {
  for (int i = 0; i < 5; ++i) {
    for (int again = 0; again < 5; ++again)
      write(float(10 * i + again));
    start();
    if (i == 0)
      continue;
    executor->finish();
    EXPECT_EQ(read(tensor), float(10 * i - 6));
  }
  executor->finish();
  EXPECT_EQ(read(tensor), 44.0F);
}

TEST_F(StartedRuns, TakeWhatIsWrittenBehindTheEndOfAnother) {
  write(1);
  start();
  write(2);
  executor->finish();
  std::array<float, 4> more = {7, 7, 7, 7};
  executor->write(few, std::as_bytes(std::span(more)));
  executor->run(0);
  EXPECT_EQ(read(tensor), 2.0F);
}

TEST_F(StartedRuns, LeaveOutputsThatAreNotDense) {
  std::array<float, 6> values = {1, 2, 3, 4, 5, 6}, found{};
  executor->write(turned, std::as_bytes(std::span(values)));
  executor->start(0, std::array{turned});
  const std::array<float, 6> others{};
  executor->write(turned, std::as_bytes(std::span(others)));
  executor->start(0, std::array{turned});
  executor->finish();
  executor->read(turned, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found, values);
  executor->finish();
}

TEST_F(StartedRuns, WriteOverCopies) {
  write(1);
  start();
  executor->finish();
  write(2);
  EXPECT_EQ(read(tensor), 2.0F);
}

TEST_F(StartedRuns, AreTwoAtMostAndNothingElseIsReadBesideThem) {
  write(1);
  start();
  EXPECT_THROW(read(other), std::logic_error);
  std::array<std::byte, 4> bytes{};
  EXPECT_THROW(executor->readRange(other, 0, bytes), std::logic_error);
  EXPECT_THROW(executor->writeRange(other, 0, bytes), std::logic_error);
  EXPECT_THROW(executor->clearRange(other, 0, 4), std::logic_error);
  EXPECT_THROW(executor->run(0), std::logic_error);
  start();
  EXPECT_THROW(start(), std::logic_error);
  EXPECT_THROW(write(1), std::logic_error);
  executor->finish();
  EXPECT_EQ(read(tensor), 1.0F);
  EXPECT_THROW(read(other), std::logic_error);
  executor->finish();
  EXPECT_THROW(executor->finish(), std::logic_error);
  read(other);
}

TEST_F(StartedRuns, MayBeUnderWayWhenAllEnds) {
  write(1);
  start();
  write(2);
  start();
}

TEST(StartAhead, OnlyWhereTheHostHasNoPartInPrograms) {
  PlanBuilder builder = forGpu();
  const auto owner = static_cast<int32_t>(builder.variable("w", {1000}));
  const uint32_t moment = builder.variable("w.m", {1000}, 0, owner);
  builder.plan.variables[moment]->tensor = builder.tensor("w.m", {1000}, SegmentKind::host);
  const PlanFile offloaded = loaded(std::move(builder)), plain = loaded(forGpu());
  EXPECT_FALSE(makeCudaExecutor(offloaded, {.graph = false})->startsAhead(0));
  EXPECT_FALSE(makeCudaExecutor(plain, {.graph = false, .check = true})->startsAhead(0));
  EXPECT_FALSE(makeCudaExecutor(plain, {.graph = false, .poison = true})->startsAhead(0));
  const auto executor = makeCudaExecutor(plain, {.graph = false});
  EXPECT_TRUE(executor->startsAhead(0));
  executor->setProfiling(true);
  EXPECT_FALSE(executor->startsAhead(0));
}
