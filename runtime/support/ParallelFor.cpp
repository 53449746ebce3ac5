// Threads that count tasks off.
#include "runtime/support/ParallelFor.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

void hydra::support::parallelFor(unsigned threads, int64_t tasks,
                                 const std::function<void(int64_t task)> &work) {
  if (tasks <= 0)
    return;
  const auto count = static_cast<size_t>(std::clamp<int64_t>(tasks, 1, std::max(1U, threads)));
  std::atomic<int64_t> next = 0;
  std::vector<std::exception_ptr> errors(count);
  const auto share = [&](size_t thread) {
    try {
      for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
        work(task);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    helpers.reserve(count - 1);
    try {
      for (size_t thread = 1; thread < count; ++thread)
        helpers.emplace_back(share, thread);
    } catch (const std::system_error &) {
      // No more threads to be had: those that there are take all tasks.
    }
    share(0);
  }
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
}
