// The one pool of threads of the CPU executor: parallel loops with a static partition.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace hydra::runtime {

/// A reference to a callable that outlives the call: no allocation, unlike std::function.
template <typename Signature> class FunctionRef;
template <typename Result, typename... Args> class FunctionRef<Result(Args...)> {
public:
  template <typename Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
  FunctionRef(Callable &&callable) // NOLINT(bugprone-forwarding-reference-overload)
      : object(const_cast<void *>(static_cast<const void *>(std::addressof(callable)))),
        call([](void *object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callable> *>(object))(args...);
        }) {}

  Result operator()(Args... args) const { return call(object, args...); }

private:
  void *object;
  Result (*call)(void *, Args...);
};

/// Threads that wait for loops to share. The calling thread is worker 0, so a pool of one thread
/// starts none.
///
/// Worker w of T runs the tasks [w*n/T, (w+1)*n/T) in rising order. Which worker runs a task must
/// not matter for the result: callers cut their work into tasks by shapes alone.
///
/// Waiting threads spin for about 50 microseconds and then sleep, so that back-to-back loops start
/// within a microsecond and an idle pool leaves its cores to others. A pool with one thread for
/// each processor binds them, the caller to the first: left to the scheduler, two threads of a pool
/// were seen to share a core for seconds, each spinning in the other's way (143 instead of 20 us a
/// loop). Threads of smaller pools are free, and let others run while they spin.
class ThreadPool {
public:
  /// Throws Error unless 1 <= threads <= maxThreads, or if the system gives no more threads.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  static constexpr unsigned maxThreads = 1024;

  unsigned threads() const { return static_cast<unsigned>(workers.size()) + 1; }

  /// Calls fn(task, worker) for each task in [0, tasks), and returns when all have ended. An
  /// exception ends the loop of its worker; the one of the lowest worker is thrown here after all
  /// have stopped. Not to be called from inside a task. Never allocates.
  void parallelFor(int64_t tasks, FunctionRef<void(int64_t task, unsigned worker)> fn);

private:
  void runShare(unsigned worker) noexcept;
  void workerLoop(unsigned worker);
  void stop();
  void waitWhileEqual(const std::atomic<uint32_t> &word, uint32_t old) const;

  // What to do, valid while `pending` is not zero.
  const FunctionRef<void(int64_t, unsigned)> *body = nullptr;
  int64_t taskCount = 0;
  bool quitting = false;
  bool bound = false;

  alignas(64) std::atomic<uint32_t> generation = 0; // counts loops: a change starts the workers
  alignas(64) std::atomic<uint32_t> pending = 0;    // workers that have not finished
  std::vector<std::exception_ptr> errors;           // one a worker
  std::vector<std::thread> workers;                 // numbers 1, 2, ...
};

} // namespace hydra::runtime
