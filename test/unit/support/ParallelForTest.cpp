// Tasks that threads share: each once, and errors come back.
#include "runtime/support/ParallelFor.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

using namespace hydra::support;

TEST(ParallelFor, RunsEachTaskOnce) {
  for (const unsigned threads : {0U, 1U, 2U, 5U, 100U})
    for (const int64_t tasks : {-1, 0, 1, 2, 97}) {
      std::vector<std::atomic<int>> runs(97);
      parallelFor(threads, tasks, [&](int64_t task) { ++runs[static_cast<size_t>(task)]; });
      for (int64_t task = 0; task < 97; ++task)
        EXPECT_EQ(runs[static_cast<size_t>(task)], task < tasks ? 1 : 0);
    }
}

TEST(ParallelFor, ThrowsWhatATaskThrows) {
  EXPECT_THROW(parallelFor(3, 20,
                           [](int64_t task) {
                             if (task == 11)
                               fail("task {}", task);
                           }),
               Error);
}
