// The scores of the token behind a text, by the programs of a plan.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "runtime/run/Sampling.h"

#include <memory>
#include <span>
#include <vector>

namespace hydra::runtime {

/// A text that grows, as token ids.
struct Sequence {
  std::vector<int32_t> tokens;
  bool ended = false;
  size_t read = 0;            // tokens that were read
  std::vector<double> scores; // of what comes behind them, where they were asked for
  int32_t best = 0;           // else the id that has the highest, the first of equal ones
};

/// What of the next token is asked for: the scores of all ids, or the best one alone, which
/// programs that read on find on the device.
enum class Wanted { scores, best };

/// What choosing the next token asks for, and the choice (Sampling.h).
Wanted wantedFor(const SamplingOptions &options);
int32_t nextToken(const Sequence &text, const SamplingOptions &options, double u);

class NextScores {
public:
  virtual ~NextScores() = default;

  /// How many sequences it reads at a time.
  virtual size_t sequences() const = 0;
  /// Ids are in [0, limit()).
  virtual int64_t limit() const = 0;
  /// How many tokens a sequence can have; 0: any number, of which only the last ones count.
  virtual int64_t context() const = 0;

  /// Reads the tokens of sequences that are not ended and were not read yet, and gives each what is
  /// wanted of the token that comes next. Always the same sequences, at most `sequences()`. Throws
  /// Error where a score is no number.
  virtual void read(std::span<Sequence> texts, Wanted wanted) = 0;
};

/// By the programs that read on from what they keep, or, where the plan has none, by the one that
/// reads a whole window of tokens again for each. Throws Error where it has neither, or they are
/// not as expected.
std::unique_ptr<NextScores> makeNextScores(const PlanFile &file, Executor &executor);

} // namespace hydra::runtime
