// Text from a trained model: one token after the other, by the plan's program `logits`.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace hydra::runtime {

struct GenerateOptions {
  int64_t tokens = 200;     // to add
  double temperature = 1.0; // 0: always the most probable token, the lowest id among equals
  int64_t topK = 0;         // choose among the k most probable ones; 0: among all
  uint64_t seed = 0;
};

/// Continues `prompt`, handing over each token as it is chosen. The model sees the last S tokens, S
/// being the length that program `logits` was compiled for; every token costs one run of it. The
/// same plan, parameters, prompt and options give the same tokens.
///
/// Throws Error when the plan has no such program, the prompt is empty or has an id that the model
/// does not know, or a score is not finite.
void generate(const PlanFile &file, Executor &executor, std::vector<int32_t> prompt,
              const GenerateOptions &options, const std::function<void(int32_t)> &emit);

} // namespace hydra::runtime
