// What a session needs of the other processes that run the same plan.
#pragma once

#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
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

/// What a rank says of itself, which the other ranks of its group have to say too.
struct Claim {
  std::string name, value;
  uint64_t group = 0;
};

/// A checkpoint, and the step after which it was saved.
struct SavedStep {
  int64_t step = 0;
  std::filesystem::path path;
};

/// An error that all ranks throw at the same place.
class CommonError : public support::Error {
public:
  using Error::Error;
};

/// The ranks of a run, seen from one of them, outside of the steps of a plan. All ranks make the
/// same calls in the same order. Where they wait for others they throw RunEnded.
class Ranks {
public:
  virtual ~Ranks() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  /// Rank 0 prints, logs and saves.
  bool leads() const { return rank() == 0; }
  /// As messages call it: `rank 1 (host node7, pid 4711)`.
  virtual std::string name() const = 0;

  /// Hands in the vote of this rank on what comes next; does not wait, so that work can go on while
  /// rank 0 decides.
  virtual void post(const Vote &vote) = 0;
  /// What was decided on the oldest vote whose decision was not collected.
  virtual Vote collect() = 0;
  /// Votes and waits for the decision; throws CommonError with the error of any rank, which ends
  /// the run.
  void decide(const std::string &error) {
    post({.signal = 0, .error = error});
    if (const Vote decision = collect(); !decision.error.empty())
      throw CommonError(decision.error);
  }

  /// Rank 0 gets the bytes of each rank, in their order; others nothing.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) = 0;
  /// All get the bytes of rank 0, which are few.
  virtual std::vector<std::byte> broadcast(std::span<const std::byte> bytes) = 0;
  /// Waits until all ranks are here. Throws CommonError with the error of the lowest rank that has
  /// one; the run may go on.
  void meet(const std::string &error) {
    const std::string own = error.empty() || leads() ? error : name() + ": " + error;
    std::vector<std::byte> first;
    for (std::vector<std::byte> &piece : gather(std::as_bytes(std::span(own))))
      if (first.empty())
        first = std::move(piece);
    first = broadcast(first);
    if (!first.empty())
      throw CommonError(std::string(reinterpret_cast<const char *>(first.data()), first.size()));
  }

  /// Throws Error, naming two ranks, when those of a group have other values, or when lists of
  /// names differ.
  virtual void agree(const std::vector<Claim> &claims) = 0;

  /// For what is said when a rank dies: steps made, which others learn by its next vote, and the
  /// checkpoint to resume from.
  virtual void noteStep(int64_t step) = 0;
  virtual void noteCheckpoint(const SavedStep &checkpoint) = 0;
  /// How to look for a newer one: a rank may die after it has finished a checkpoint, and before it
  /// could say so. Called when the line is made, on a thread of the ranks' own.
  virtual void lookForCheckpoints(std::function<std::optional<SavedStep>()> newest) = 0;

  /// This rank has met an error and will report it, after it has saved what can be saved: what
  /// other ranks report meanwhile no longer matters.
  virtual void leave() = 0;
};

} // namespace hydra::runtime
