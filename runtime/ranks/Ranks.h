// What a session needs of the other processes that run the same plan.
#pragma once

#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// What one rank has to say about what comes next, and what is decided for all of them: the values
/// of the lowest rank that has any.
struct Vote {
  int signal = 0;    ///< that came, or 0
  std::string error; ///< why this rank cannot go on; empty: it can
};

/// Thrown out of whatever waits when the run has ended because of another rank. Who ended it, or
/// the lowest rank that is left, says why.
class RunEnded : public support::Error {
public:
  RunEnded() : Error("the run has ended on another rank") {}
};

/// Bytes did not reach another rank, or did not come from it: what follows when a rank is gone.
class CommunicationError : public support::Error {
public:
  using Error::Error;
};

/// The ranks of a run, seen from one of them, outside of the steps of a plan. All ranks make the
/// same calls in the same order. All but `post` wait for others, and throw RunEnded.
class Ranks {
public:
  virtual ~Ranks() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  /// Rank 0 prints, logs and saves.
  bool leads() const { return rank() == 0; }

  /// Hands in the vote of this rank on what comes next; does not wait, so that work can go on while
  /// rank 0 decides.
  virtual void post(const Vote &vote) = 0;
  /// What was decided on the oldest vote whose decision was not collected.
  virtual Vote collect() = 0;
  /// Votes and waits for the decision; throws Error with the error of any rank.
  void decide(const std::string &error) {
    post({.signal = 0, .error = error});
    if (const Vote decision = collect(); !decision.error.empty())
      throw support::Error(decision.error);
  }

  /// Rank 0 gets the bytes of each rank, in their order; others nothing.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) = 0;

  /// Throws Error, naming rank 0 and the other one, when the ranks do not all have the same list of
  /// names and values.
  virtual void agree(const std::vector<std::pair<std::string, std::string>> &values) = 0;

  /// For what is said when a rank dies: steps made, and the checkpoint to resume from.
  virtual void noteStep(int64_t step) = 0;
  virtual void noteCheckpoint(const std::filesystem::path &path) = 0;

  /// This rank has met an error and will report it, after it has saved what can be saved: what
  /// other ranks report meanwhile no longer matters.
  virtual void leave() = 0;
};

} // namespace hydra::runtime
