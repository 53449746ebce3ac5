// One token out of the scores of all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hydra::runtime {

/// What restricts the choice, in this order.
struct SamplingOptions {
  double repetitionPenalty = 1.0; // divides positive scores of ids that the text has, multiplies negative ones
  double temperature = 1.0;       // divides the scores; 0: always the best, the lowest id among equals
  int64_t topK = 0;               // the k best; 0: all
  double topP = 1.0;              // the best of them that have this probability together
  double minP = 0.0;              // those with this part of the best one's probability
};

/// The id that `u` in [0, 1) picks from `scores`, of which there is one for each id; ids of `text` are
/// penalised. The same arguments give the same id on every machine that has the same exp.
int32_t sample(std::span<const double> scores, const SamplingOptions &options,
               std::span<const int32_t> text, double u);

} // namespace hydra::runtime
