// When work that takes long is spoken of.
#include "runtime/run/LongWork.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using hydra::runtime::LongWork;
using namespace std::chrono_literals;

namespace {

/// What stands on standard error after a quarter of 4 GiB was done at each of these seconds.
std::string saidAt(const std::vector<std::chrono::milliseconds> &times, bool speaks = true) {
  constexpr uint64_t quarter = uint64_t{1} << 30;
  testing::internal::CaptureStderr();
  const LongWork::Clock::time_point begin = LongWork::Clock::now();
  LongWork work("saving run/step-00000500", 4 * quarter, speaks);
  for (const std::chrono::milliseconds time : times)
    work.add(quarter, begin + time);
  work.finish(begin + times.back());
  return testing::internal::GetCapturedStderr();
}

} // namespace

TEST(LongWork, SaysNothingWhereItTakesLessThanTwoSeconds) {
  EXPECT_EQ(saidAt({500ms, 1000ms, 1500ms, 1990ms}), "");
}

TEST(LongWork, SaysHowFarItIsAfterTwoSecondsAndThenEveryFive) {
  EXPECT_EQ(saidAt({1000ms, 4000ms, 8900ms, 10'000ms}),
            "hydra-run: saving run/step-00000500: 50% of 4.00 GiB, 512 MiB/s\n"
            "hydra-run: saving run/step-00000500: 100% of 4.00 GiB, 410 MiB/s\n"
            "hydra-run: saving run/step-00000500: 4.00 GiB in 10.0 s\n");
}

TEST(LongWork, OnlyOneRankSpeaks) { EXPECT_EQ(saidAt({4000ms, 20'000ms}, false), ""); }
