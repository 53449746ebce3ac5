// What restricts the choice of the next token, as a run is told.
#pragma once

#include "runtime/support/Sampling.h"

#include <algorithm>
#include <cstdint>

namespace hydra::runtime {

/// In this order.
struct SamplingOptions {
  double repetitionPenalty =
      1.0; // divides positive scores of ids that the text has, multiplies negative ones
  double temperature = 1.0; // divides the scores; 0: always the best, the lowest id among equals
  int64_t topK = 0;         // the k best; 0: all
  double topP = 1.0;        // the best of them that have this probability together
  double minP = 0.0;        // those with this part of the best one's probability

  support::SamplingSettings settings() const {
    constexpr int64_t exact = int64_t{1} << 24; // in f32
    return {static_cast<float>(temperature), static_cast<float>(std::min(topK, exact)),
            static_cast<float>(topP), static_cast<float>(minP),
            static_cast<float>(repetitionPenalty)};
  }
};

} // namespace hydra::runtime
