// Several GPUs: runs of programs that the ranks of a plan start behind those under way.
#include "runtime/cuda/CudaExecutor.h"
#include "test/unit/cuda/driver/OnFakeDriver.h"
#include "test/unit/ranks/TestRanks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::test;
using hydra::planfile::SegmentKind;

#ifdef HYDRA_FAKE_NCCL // whose headers this build has found

namespace {

class SeveralRanks : public OnFakeDriver {};

} // namespace

TEST_F(SeveralRanks, StartRunsBehindThoseUnderWay) {
  PlanBuilder builder = forGpu();
  hydra::planfile::AllGatherT gather;
  gather.axis = builder.axis("data", 2);
  const uint32_t given = builder.tensor("given", {2}, SegmentKind::persistent);
  const uint32_t all = builder.tensor("all", {4}, SegmentKind::persistent);
  builder.program("train", blocks(call(gather, {reads(given), writes(all)})));
  const PlanFile file = builder.load();
  expectNoErrors(asRanks(2, [&](Channel &channel) {
    const auto executor = makeCudaExecutor(file, {.graph = false, .ranks = &channel});
    const auto give = [&](float value) {
      const std::array values = {value, value};
      executor->write(given, std::as_bytes(std::span(values)));
    };
    const auto read = [&](uint32_t tensor) {
      std::vector<float> values(tensor == all ? 4 : 2);
      executor->read(tensor, std::as_writable_bytes(std::span(values)));
      return values.back();
    };
    ASSERT_TRUE(executor->startsAhead(0));
    give(5);
    executor->start(0, std::array{given, all});
    give(6);
    executor->start(0, std::array{given, all});
    executor->finish();
    EXPECT_EQ(read(given), 5.0F);
    const float received = read(all);
    channel.decide("");
    EXPECT_GT(fakeDriverState().waiting, 0U); // on both: nobody has waited for the second run
    channel.decide("");
    executor->finish();
    EXPECT_EQ(read(given), 6.0F);
    EXPECT_EQ(read(all), received);
  }));
}

#endif
