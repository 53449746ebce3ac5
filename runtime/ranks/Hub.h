// What rank 0 does for all ranks: it passes on, decides, and notices who is missing.
#pragma once

#include "runtime/ranks/Message.h"
#include "runtime/ranks/Ranks.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// Who a rank is.
struct Introduction {
  int64_t version = 0; ///< of the messages, and of plans
  uint32_t rank = 0, size = 0;
  std::string host;
  int64_t pid = 0;
  std::string processors; ///< those that it may use, in any notation

  Message message() const;
  /// Throws Error when it is none.
  static Introduction of(const Message &message);
};

/// `rank 1 (host node7, pid 4711)`.
std::string describe(const Introduction &rank);

/// ` after step 812`; nothing for -1, of a rank that has not said.
std::string afterStepText(int64_t step);
/// Of ranks that are gone, and of those that say nothing: the lines of both ends.
std::string diedText(const std::string &who, int64_t step);
std::string silentText(const std::string &whoAndSteps, std::chrono::steady_clock::duration limit,
                       const std::string &waiting);

/// Why a run ends.
struct Ending {
  /// The line that says so. It is made late: of a rank that is gone, a checkpoint may prove a later
  /// step than it could tell. `proven`: the step of the newest checkpoint; -1: there is none.
  std::function<std::string(int64_t proven)> line;
  bool resumes = false; // the line is to say from where to resume

  /// Of a line that no checkpoint changes.
  static Ending of(const std::string &line, bool resumes = false) {
    return {.line = [line](int64_t) { return line; }, .resumes = resumes};
  }
};

/// Knows nothing of sockets, threads and clocks: it is told what comes in and how late it is, and
/// says what goes out.
class Hub {
public:
  /// How keys of values begin that every rank but 0 asks for exactly once.
  static constexpr std::string_view kBroadcast = "broadcast ";

  using Clock = std::chrono::steady_clock;
  using Pieces = std::vector<std::vector<std::byte>>;

  struct Callbacks {
    std::function<void(uint32_t rank, const Message &)> send; // also to rank 0
    std::function<void(Pieces)> gathered;                     // for rank 0
    /// The run has failed. Once, and nothing else is called after it.
    std::function<void(const Ending &ending)> over;
  };

  /// `limit`: after so long a rank that says nothing is lost. `own` is rank 0.
  Hub(const Introduction &own, Clock::duration limit, Clock::time_point now, Callbacks callbacks);

  void setLimit(Clock::duration duration) { limit = duration; }

  /// Another process says who it is. False: it is none of the run, which fails of it.
  bool arrive(const Introduction &rank, Clock::time_point now);
  bool complete() const { return missing == 0; }

  void receive(uint32_t rank, const Message &message, Clock::time_point now);
  /// The connection of a rank broke off.
  void lose(uint32_t rank, Clock::time_point now);
  /// Rank 0 is about to end the run itself, and to say why.
  void leave() { leaving = true; }
  /// Since when it is known that something is wrong, if it is.
  std::optional<Clock::time_point> troubledSince() const {
    return problem ? std::optional(problem->since) : std::nullopt;
  }
  /// To be called several times a second: problems wait a little for what may have caused them.
  void tick(Clock::time_point now);

private:
  struct Peer {
    std::optional<Introduction> who;
    Clock::time_point heard{};
    int64_t step = -1;    // the last that it has ended; -1: it has not said
    std::string activity; // what it waits in; empty: it works
    double waiting = 0;   // seconds in that
    bool bye = false;
    std::deque<Vote> votes;
    std::deque<std::vector<std::byte>> pieces;
  };
  struct Problem {
    Ending ending;
    Clock::time_point since;
    Clock::time_point due; // when it ends the run, unless a nearer cause shows up
    bool own = false;      // a rank's own error, which rank 0 may be about to meet as well
  };

  void fail(const Ending &ending);
  void suspect(const Ending &ending, Clock::time_point now, Clock::duration patience,
               bool own = false);
  /// Whether it is due, and rank 0 is not on its way to say it itself.
  bool isToBeTold(const Problem &known, Clock::time_point now) const;
  void vote(uint32_t rank, MessageReader &reader);
  void decide();
  void gather();
  void answer(uint32_t rank, const std::string &key);
  void broadcast(const Message &message);
  void welcome(Clock::time_point now);
  void checkSilence(Clock::time_point now);
  void checkDeadlock();
  std::string whoText(uint32_t rank) const;

  Callbacks callbacks;
  Clock::duration limit;
  std::vector<Peer> peers;
  Clock::time_point begun, ticked;
  size_t missing;
  size_t goodbyes = 0;
  bool ended = false, leaving = false;
  std::optional<Problem> problem;
  std::map<std::string, std::vector<std::byte>> store;
  std::map<std::string, uint32_t> answers; // of values that every rank but 0 asks for once
  std::map<std::string, std::vector<uint32_t>> waitingGets; // by key, the ranks
};

} // namespace hydra::runtime
