// The control channel: small messages between the ranks of a run, over TCP, by way of rank 0.
#pragma once

#include "runtime/ranks/Ranks.h"
#include "runtime/ranks/World.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Bytes by name, which all ranks see.
class Store {
public:
  virtual ~Store() = default;
  virtual void set(const std::string &key, const std::vector<std::byte> &value) = 0;
  /// Waits until some rank has set it. Throws RunEnded.
  virtual std::vector<std::byte> get(const std::string &key) = 0;
};

/// A thread of its own sends, receives, and tells rank 0 that this process is alive. When a rank
/// has died, says nothing for the limit, or has failed, whatever waits here throws RunEnded on all
/// ranks, and two seconds later a process that has not ended by itself is ended with status 1. The
/// line that says why is printed once, by rank 0 or by the lowest rank that is left.
class Channel final : public Ranks, public Store {
public:
  /// Rank 0 listens, others connect, for up to `limit`, which is also how long a rank may be
  /// silent. Throws Error when the port is taken, rank 0 does not answer, ranks are missing, or do
  /// not agree in their number or version; RunEnded when another rank says so.
  Channel(const World &world, std::chrono::milliseconds limit);
  /// To be called after `finish` or `end`; otherwise others take this rank for dead.
  ~Channel() override;
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  uint32_t rank() const override;
  uint32_t size() const override;
  std::string name() const override;
  void post(const Vote &vote) override;
  Vote collect() override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override;
  std::vector<std::byte> broadcast(std::span<const std::byte> bytes) override;
  void agree(const std::vector<Claim> &claims) override;
  void noteStep(int64_t step) override;
  void noteCheckpoint(const SavedStep &checkpoint) override;
  void lookForCheckpoints(std::function<std::optional<SavedStep>()> newest) override;
  void set(const std::string &key, const std::vector<std::byte> &value) override;
  std::vector<std::byte> get(const std::string &key) override;

  /// How long a rank may be silent from now on.
  void setLimit(std::chrono::milliseconds limit);
  /// The number of the address by which this machine reaches rank 0, or is reached.
  std::string localAddress() const;
  /// The name of this machine, by which others know who shares it.
  std::string host() const;
  /// Ranks on this machine, this one included.
  uint32_t neighbours() const;
  /// Those of them that may use the same processors.
  uint32_t sharers() const;

  /// What this rank waits in from now on, for messages and to notice that nobody gets on; empty: it
  /// works. Nothing is copied: `activity` outlives the wait.
  struct Wait {
    const char *what = nullptr; ///< such as all_gather
    const char *axis = nullptr; ///< null: of no axis, and the numbers below mean nothing
    uint64_t number = 0; ///< among all collectives of the run
    uint64_t bytes = 0;
    const char *place = ""; ///< in the model
  };
  void waitIn(const Wait &wait);
  void work();
  /// Waits in something for as long as it lives; without a channel nobody learns of it.
  class Waiting {
  public:
    Waiting(Channel *channel, const Wait &wait) : channel(channel) {
      if (channel)
        channel->waitIn(wait);
    }
    ~Waiting() {
      if (channel)
        channel->work();
    }
    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

  private:
    Channel *channel;
  };

  /// Rank 0 is about to end with an error of its own, which it will report by `end`.
  void leave() override;
  /// Waits until all ranks are here. Throws RunEnded.
  void finish();
  /// This rank ends because of `error`: the others learn it. Returns the line that this rank has to
  /// print, which is empty when another one does.
  std::string end(const std::exception &error);

private:
  class State;
  std::unique_ptr<State> state;
};

} // namespace hydra::runtime
