// The connections of a control channel, their thread, and what the program waits for.
#pragma once

#include "runtime/ranks/Channel.h"
#include "runtime/ranks/Connection.h"
#include "runtime/ranks/Hub.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <sys/types.h>

namespace hydra::runtime {

class Channel::State {
public:
  using Clock = Hub::Clock;

  State(const World &world, std::chrono::milliseconds limit);
  ~State();
  State(const State &) = delete;
  State &operator=(const State &) = delete;

  /// Reaches the other ranks. Throws as the channel's constructor does.
  void begin();
  void toHub(Message message);
  void onThread(std::function<void()> work) { asio::post(io, std::move(work)); }
  /// Waits until `ready`, which is asked under the lock. Throws RunEnded.
  template <typename Ready> std::unique_lock<std::mutex> await(const Ready &ready) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ready() || ended; });
    if (!ready())
      throw RunEnded();
    return lock;
  }
  void awaitEnd() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended; });
  }
  /// Waits until the system has what was sent; not for long.
  void flush();
  /// The line that this rank has to print, once. It is made late: what was being saved when another
  /// rank died may be there by now.
  std::string takeLine();
  /// The run has ended, on the thread; without a line another rank says why.
  void conclude(const Ending &why);

  const World world;
  Clock::duration limit; // of the thread, once it runs
  const Introduction own;
  std::unique_ptr<Hub> hub; // rank 0; on the thread alone

  /// The program waits for others, unless it has said already what it waits in.
  class Waiting {
  public:
    Waiting(State &state, const char *what) : state(state) {
      const std::lock_guard lock(state.mutex);
      isOwn = !state.wait.what;
      if (isOwn)
        state.beginWait({.what = what});
    }
    ~Waiting() {
      const std::lock_guard lock(state.mutex);
      if (isOwn)
        state.wait = {};
    }
    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

  private:
    State &state;
    bool isOwn;
  };
  void beginWait(const Channel::Wait &begun) {
    wait = begun;
    waitBegin = Clock::now();
  }

  // Of both threads, under the mutex.
  std::mutex mutex;
  std::condition_variable changed;
  bool seen = false, welcomed = false, goodbye = false, ended = false, lineTaken = false;
  Ending ending; // its line is empty until the run has ended, and where another rank says why
  std::string localAddress;
  uint32_t neighbours = 1, sharers = 1;
  std::deque<Vote> decisions;
  std::deque<Hub::Pieces> gathered;
  uint64_t taken = 0;
  uint64_t broadcasts = 0; // of the program's own thread
  std::map<std::string, std::vector<std::byte>> values;
  std::optional<SavedStep> checkpoint;
  std::function<std::optional<SavedStep>()> newestCheckpoint;
  int64_t step = -1, stepOfRankZero = -1; // the last that was ended
  Channel::Wait wait;
  Clock::time_point waitBegin;

private:
  void listen();
  void connect();
  [[noreturn]] void failWithoutRankZero(const std::string &problem) const;
  void accept();
  void receive(const std::shared_ptr<Connection> &connection, const Message &message);
  void deliver(const Message &message);
  void send(uint32_t rank, const Message &message);
  void scheduleTick();
  void tick(Clock::time_point now);
  void noteStop(Clock::time_point now);
  void watchParent();
  void passSignal();
  void watchRankZero(Clock::time_point now);
  std::optional<SavedStep> lookForCheckpoint();
  void beat();

  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> guard{io.get_executor()};
  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer timer;
  std::vector<std::shared_ptr<Connection>> connections; // by rank; of others than 0, to it alone
  std::thread thread;

  // Of the thread.
  std::string rankZero = "rank 0";
  bool speaks = world.speaks; // if rank 0 cannot
  std::optional<Clock::time_point> lost;
  Clock::time_point heard = Clock::now(), beaten{}, ticked = Clock::now();
  std::optional<Clock::time_point> deadline; // of this process
  pid_t parent;                              // that launched it; 0: none, or it is gone
};

} // namespace hydra::runtime
