// The pool's protocol: publish the loop, count up `generation`, run a share, wait for `pending`.
#include "runtime/cpu/ThreadPool.h"

#include "runtime/cpu/Affinity.h"
#include "runtime/support/Error.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

using namespace hydra::runtime;
using hydra::support::fail;

namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

} // namespace

/// Returns once `word` differs from `old`. A loop of one step of a plan takes some ten
/// microseconds, waking a sleeping thread about as long: spinning longer would only burn cores.
void ThreadPool::waitWhileEqual(const std::atomic<uint32_t> &word, uint32_t old) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds spinTime{50};
  constexpr int checksPerRound = 32;
  const Clock::time_point end = Clock::now() + spinTime;
  do {
    for (int i = 0; i < checksPerRound; ++i) {
      if (word.load(std::memory_order_acquire) != old)
        return;
      relax();
    }
    if (!bound)
      ::sched_yield();
  } while (Clock::now() < end);
  while (word.load(std::memory_order_acquire) == old)
    word.wait(old, std::memory_order_acquire);
}

ThreadPool::ThreadPool(unsigned threads) : bound(threads > 1 && threads == usableProcessors()) {
  if (threads < 1 || threads > maxThreads)
    fail("{} threads asked for; expected 1 to {}", threads, maxThreads);
  errors.resize(threads);
  workers.reserve(threads - 1);
  if (bound)
    bindToProcessor(0);
  for (unsigned worker = 1; worker < threads; ++worker) {
    try {
      workers.emplace_back([this, worker] { workerLoop(worker); });
    } catch (const std::system_error &error) {
      stop();
      fail("cannot start thread {} of {} that run the plan: {}; a smaller --threads, or a higher "
           "limit of threads (ulimit -u), would help",
           worker + 1, threads, error.code().message());
    }
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  quitting = true;
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  for (std::thread &worker : workers)
    worker.join();
  workers.clear();
  if (bound)
    bindToAllProcessors();
}

void ThreadPool::parallelFor(int64_t tasks, FunctionRef<void(int64_t, unsigned)> fn) {
  if (tasks <= 0)
    return;
  if (workers.empty() || tasks == 1) {
    for (int64_t task = 0; task < tasks; ++task)
      fn(task, 0);
    return;
  }
  body = &fn;
  taskCount = tasks;
  pending.store(static_cast<uint32_t>(workers.size()), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  runShare(0);
  for (uint32_t left; (left = pending.load(std::memory_order_acquire)) != 0;)
    waitWhileEqual(pending, left);
  const auto failed = std::find_if(errors.begin(), errors.end(), [](const auto &e) { return !!e; });
  if (failed == errors.end())
    return;
  std::exception_ptr first;
  std::swap(first, *failed);
  std::fill(errors.begin(), errors.end(), nullptr);
  std::rethrow_exception(first);
}

void ThreadPool::runShare(unsigned worker) noexcept {
  const int64_t count = threads();
  // (worker * tasks) / count without overflow.
  const int64_t quotient = taskCount / count, remainder = taskCount % count;
  const auto begin = [&](int64_t w) { return w * quotient + w * remainder / count; };
  try {
    for (int64_t task = begin(worker); task < begin(worker + 1); ++task)
      (*body)(task, worker);
  } catch (...) {
    errors[worker] = std::current_exception();
  }
}

void ThreadPool::workerLoop(unsigned worker) {
  if (bound)
    bindToProcessor(worker);
  else
    bindToAllProcessors(); // the starter may be bound by another pool
  // threads() is read only after the first change of `generation`, when the vector is complete.
  for (uint32_t seen = 0;;) {
    waitWhileEqual(generation, seen);
    seen = generation.load(std::memory_order_acquire);
    if (quitting)
      return;
    runShare(worker);
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1)
      pending.notify_one();
  }
}
