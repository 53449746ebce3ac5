// The token behind a text, by the programs of a plan.
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
  uint32_t number = 0; // whose random numbers it has,
  uint32_t drawn = 0;  // and how many of them were used
  bool ended = false;
  size_t read = 0;  // tokens that were read
  int32_t next = 0; // what was drawn to come behind them
};

class NextTokens {
public:
  virtual ~NextTokens() = default;

  /// How many sequences it reads at a time.
  virtual size_t sequences() const = 0;
  /// Ids are in [0, limit()).
  virtual int64_t limit() const = 0;
  /// How many tokens a sequence can have; 0: any number, of which only the last ones count.
  virtual int64_t context() const = 0;

  /// Reads the tokens of sequences that are not ended and were not read yet, and draws for each the
  /// token that comes next, by random number `drawn`. Always the same sequences, at most
  /// `sequences()`. Throws Error where a score is no number.
  virtual void read(std::span<Sequence> texts) = 0;
};

/// By the programs that read on from what they keep, and draw where they run, or, where the plan
/// has none, by the one that reads a whole window of tokens again for each, in that
/// form if it has it. Throws Error where it has neither, or they are not as expected.
std::unique_ptr<NextTokens> makeNextTokens(const PlanFile &file, Executor &executor,
                                           const SamplingOptions &sampling, uint64_t seed,
                                           ProgramForm form = ProgramForm::own);

} // namespace hydra::runtime
