// The pool runs every task once, by a static partition, and carries exceptions to its caller.
#include "runtime/cpu/ThreadPool.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace hydra::runtime;

TEST(ThreadPool, RunsEveryTaskOnceWithTheSameWorkers) {
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t tasks : {0, 1, 2, 3, 7, 8, 100}) {
      std::vector<unsigned> first;
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
        std::vector<unsigned> workers(static_cast<size_t>(tasks));
        pool.parallelFor(tasks, [&](int64_t task, unsigned worker) {
          ++runs[static_cast<size_t>(task)];
          workers[static_cast<size_t>(task)] = worker;
        });
        for (const std::atomic<int> &count : runs)
          EXPECT_EQ(count, 1);
        for (size_t i = 0; i < workers.size(); ++i) {
          EXPECT_LT(workers[i], threads);
          if (i > 0) {
            EXPECT_GE(workers[i], workers[i - 1]) << "shares are ranges";
          }
        }
        if (repeat == 0)
          first = workers;
        EXPECT_EQ(workers, first);
      }
    }
  }
}

TEST(ThreadPool, SharesDifferByAtMostOneTask) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> runs(3);
  pool.parallelFor(11, [&](int64_t, unsigned worker) { ++runs[worker]; });
  for (const std::atomic<int> &count : runs) {
    EXPECT_GE(count, 3);
    EXPECT_LE(count, 4);
  }
}

TEST(ThreadPool, CarriesTheExceptionOfTheLowestWorker) {
  ThreadPool pool(4);
  for (int repeat = 0; repeat < 100; ++repeat) {
    try {
      pool.parallelFor(4, [](int64_t task, unsigned) {
        if (task >= 1)
          throw std::runtime_error(std::to_string(task));
      });
      FAIL() << "no exception came through";
    } catch (const std::runtime_error &error) {
      EXPECT_STREQ(error.what(), "1");
    }
    std::atomic<int> runs = 0; // the pool is as good as new
    pool.parallelFor(8, [&](int64_t, unsigned) { ++runs; });
    EXPECT_EQ(runs, 8);
  }
}

TEST(ThreadPool, WakesAfterSleeping) {
  ThreadPool pool(2);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2)); // far beyond the spinning
    std::atomic<int> runs = 0;
    pool.parallelFor(2, [&](int64_t, unsigned) { ++runs; });
    EXPECT_EQ(runs, 2);
  }
}

TEST(ThreadPool, WaitsForASlowWorker) {
  ThreadPool pool(2);
  std::atomic<bool> done = false;
  pool.parallelFor(2, [&](int64_t task, unsigned) {
    if (task == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done = true;
    }
  });
  EXPECT_TRUE(done);
}

TEST(ThreadPool, RefusesImpossibleSizes) {
  EXPECT_THROW(ThreadPool(0), hydra::support::Error);
  EXPECT_THROW(ThreadPool(ThreadPool::maxThreads + 1), hydra::support::Error);
}

TEST(ThreadPool, DISABLED_Benchmark) {
  using Clock = std::chrono::steady_clock;
  ThreadPool pool(2);
  const auto best = [&](std::chrono::microseconds pause) {
    double seconds = 1e9;
    for (int i = 0; i < 2000; ++i) {
      const auto resume = Clock::now() + pause;
      while (Clock::now() < resume)
        ;
      const auto begin = Clock::now();
      pool.parallelFor(2, [](int64_t, unsigned) {});
      seconds = std::min(seconds, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return seconds * 1e6;
  };
  for (const int pause : {0, 10, 40, 200})
    std::printf("empty loop %3d us after the last: %6.2f us\n", pause,
                best(std::chrono::microseconds(pause)));
}
