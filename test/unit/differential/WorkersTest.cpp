// Processes that crash, hang, throw and print: what becomes of it, and that the rest goes on.
#include "test/fuzz/differential/Workers.h"

#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

namespace hydra::test {

namespace {

/// Every job has four parts; some of them end badly.
class Trouble final : public JobRunner {
public:
  uint32_t parts(uint64_t) override { return 4; }
  Verdict run(uint64_t job, uint32_t part) override {
    if (job == 3 && part == 1)
      std::raise(SIGSEGV);
    if (job == 4 && part == 2)
      std::this_thread::sleep_for(std::chrono::hours(1));
    if (job == 5 && part == 3) {
      std::fprintf(stderr, "Assertion `x' failed\n");
      std::abort();
    }
    if (job == 6 && part == 0)
      throw std::bad_alloc();
    if (job == 7)
      return {Outcome::Wrong, "two\nlines", 0.25};
    return {};
  }
};

} // namespace

TEST(Workers, ReportEveryPartOfEveryJob) {
  Trouble trouble;
  std::map<std::pair<uint64_t, uint32_t>, Verdict> verdicts;
  WorkerOptions options;
  options.processes = 2;
  options.limit = std::chrono::milliseconds(500);
  options.lifetime = 3;
  const uint64_t done = runJobs(trouble, 1, 11, options, [&](const Report &report) {
    EXPECT_TRUE(verdicts.emplace(std::pair(report.job, report.part), report.verdict).second);
  });
  EXPECT_EQ(done, 10u);
  EXPECT_EQ(verdicts.size(), 40u);
  const auto at = [&](uint64_t job, uint32_t part) { return verdicts[{job, part}]; };
  EXPECT_EQ(at(3, 1).outcome, Outcome::Crashed);
  EXPECT_EQ(at(3, 1).detail, "Segmentation fault");
  EXPECT_EQ(at(4, 2).outcome, Outcome::Hung);
  EXPECT_EQ(at(5, 3).outcome, Outcome::Crashed);
  EXPECT_EQ(at(5, 3).detail, "Aborted: Assertion `x' failed");
  EXPECT_EQ(at(6, 0).outcome, Outcome::Crashed);
  EXPECT_EQ(at(7, 2).outcome, Outcome::Wrong);
  EXPECT_EQ(at(7, 2).detail, "two?lines");
  EXPECT_EQ(at(7, 2).severity, 0.25);
  for (uint32_t part : {0u, 2u, 3u})
    EXPECT_EQ(at(3, part).outcome, Outcome::Right);
}

} // namespace hydra::test
