// Text from a trained model: one token after the other.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "runtime/run/Sampling.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace hydra::runtime {

struct GenerateOptions {
  int64_t tokens = 200; // to add
  SamplingOptions sampling;
  uint64_t seed = 0;
  std::vector<int32_t> stop;           // a text ends in front of one of these
  ProgramForm form = ProgramForm::own; // of the program, where it has others
};

/// Why a text ends.
enum class TextEnd { tokens, stop, context, interrupted };

/// Continues every prompt, handing over each token as it is chosen, with the number of its prompt.
/// Programs that read on (hydrac --mode=generate) read every token once and have a context of so
/// many tokens; a plan without them reads the last S tokens again for each. The same plan,
/// parameters, prompts and options give the same tokens, and a prompt the same whatever the others
/// are. Once `interrupted`, which is asked for each token, all texts that go on end.
///
/// Throws Error when the plan has no such program, has fewer sequences at a time than there are
/// prompts, a prompt is empty, longer than the context or has an id that the model does not know,
/// or a score is not finite.
std::vector<TextEnd> generate(const PlanFile &file, Executor &executor,
                              const std::vector<std::vector<int32_t>> &prompts,
                              const GenerateOptions &options,
                              const std::function<bool()> &interrupted,
                              const std::function<void(size_t prompt, int32_t token)> &emit);

} // namespace hydra::runtime
