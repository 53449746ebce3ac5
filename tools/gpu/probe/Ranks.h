// One process a GPU on one host: what the processes share, how they meet, and who watches them.
// None of them may touch CUDA before it is forked. What was measured lies in shared memory and
// outlives a rank that fails or hangs.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

constexpr int maxRanks = 8;

struct Shared {
  pthread_barrier_t barrier;
  std::atomic<int64_t> beat[maxRanks]; // milliseconds of the steady clock
  char stage[maxRanks][160], error[maxRanks][512];
  alignas(64) std::byte message[maxRanks][256];
  size_t rows;
  int gpus, wrongRows;
  char machine[4096], row[768][512]; // JSON objects
};

inline int64_t milliseconds() {
  using namespace std::chrono;
  return duration_cast<std::chrono::milliseconds>(steady_clock::now().time_since_epoch()).count();
}

class Ranks {
public:
  const int rank, size;

  Ranks(Shared &shared, int rank, int size) : rank(rank), size(size), shared(shared) {}

  /// Says what this rank is about to do; the watchdog counts from here.
  [[gnu::format(printf, 2, 3)]] void stage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(shared.stage[rank], sizeof shared.stage[rank], format, arguments);
    va_end(arguments);
    beat();
  }
  void beat() { shared.beat[rank] = milliseconds(); }
  void barrier() {
    beat();
    pthread_barrier_wait(&shared.barrier);
    beat();
  }

  /// One value of every rank, known to all.
  template <typename T> std::vector<T> exchange(const T &mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof shared.message[0]);
    std::memcpy(shared.message[rank], &mine, sizeof mine);
    barrier();
    std::vector<T> all(size);
    for (int r = 0; r < size; ++r)
      std::memcpy(&all[r], shared.message[r], sizeof(T));
    barrier();
    return all;
  }
  double max(double mine) {
    double most = mine;
    for (double value : exchange(mine))
      most = std::isnan(value) || value > most ? value : most;
    return most;
  }
  uint64_t sum(uint64_t mine) {
    uint64_t total = 0;
    for (uint64_t value : exchange(mine))
      total += value;
    return total;
  }

  /// What was measured and where it was, as JSON objects; rank 0's are kept.
  void add(const std::string &row, bool wrong) {
    if (rank != 0)
      return;
    if (shared.rows == std::size(shared.row) || row.size() >= sizeof shared.row[0])
      throw std::runtime_error("the shared memory is too small for this row: " + row);
    std::strcpy(shared.row[shared.rows++], row.c_str());
    shared.wrongRows += wrong;
  }
  void describe(const std::string &machine) {
    std::snprintf(shared.machine, sizeof shared.machine, "%s", machine.c_str());
  }

private:
  Shared &shared;
};

/// Runs `body` in `count` processes. Returns an empty text, or one line that says which rank
/// failed, and how: by its own error, by a signal, without progress for `silence` seconds, or past
/// `limit` seconds in all. Then all are killed.
inline std::string runRanks(Shared &shared, int count, const std::function<void(int)> &body,
                            int silence = 60, int limit = 350) {
  int64_t begin = milliseconds();
  std::array<pid_t, maxRanks> processes{};
  pthread_barrierattr_t attributes;
  if (pthread_barrierattr_init(&attributes) ||
      pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) ||
      pthread_barrier_init(&shared.barrier, &attributes, count))
    return "no barrier between processes";
  std::string failure;
  for (int rank = 0; rank < count; ++rank) {
    shared.beat[rank] = begin;
    processes[rank] = fork();
    if (processes[rank] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        body(rank);
      } catch (const std::exception &error) {
        snprintf(shared.error[rank], sizeof shared.error[rank], "%s", error.what());
        _exit(1);
      }
      fflush(nullptr);
      _exit(0);
    }
    if (processes[rank] < 0)
      failure = "fork: " + std::string(strerror(errno));
  }
  auto where = [&](int rank) {
    std::string name = "rank " + std::to_string(rank);
    return name + (shared.stage[rank][0] ? " in: " : " at its start") + shared.stage[rank];
  };
  for (int living = count; living > 0 && failure.empty();) {
    usleep(20000);
    int quietest = 0;
    for (int rank = 0; rank < count && failure.empty(); ++rank) {
      int status = 0;
      if (shared.beat[rank] < shared.beat[quietest])
        quietest = rank;
      if (processes[rank] == 0 || waitpid(processes[rank], &status, WNOHANG) != processes[rank])
        continue;
      processes[rank] = 0;
      shared.beat[rank] = INT64_MAX;
      --living;
      if (WIFSIGNALED(status))
        failure = where(rank) + ": ended by signal " + std::to_string(WTERMSIG(status));
      else if (WEXITSTATUS(status))
        failure = where(rank) + ": " + shared.error[rank];
    }
    int64_t now = milliseconds();
    if (failure.empty() && living > 0 && now - shared.beat[quietest] > silence * 1000)
      failure = where(quietest) + ": no progress for " + std::to_string(silence) + " s";
    else if (failure.empty() && living > 0 && now - begin > limit * 1000)
      failure = where(0) + ": not done after " + std::to_string(limit) + " s";
  }
  for (pid_t process : processes)
    if (process > 0) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  return failure;
}
