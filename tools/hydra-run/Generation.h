// --generate: prompts in, text out.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "tools/hydra-run/Options.h"

namespace hydra {

/// Writes every prompt and what continues it to standard output: a single one token by token, several
/// one below the other, each as soon as it and those before it are complete. Throws Error as
/// runtime::generate does, and where the plan's tokens cannot be told from text.
void generateText(const RunOptions &options, const runtime::PlanFile &file,
                  runtime::Executor &executor, uint64_t seed);

/// All that the choice of tokens depends on besides prompts and seed, for ranks to compare.
std::string generationText(const RunOptions &options);

} // namespace hydra
