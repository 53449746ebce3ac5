// --generate: prompts in, text out.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "runtime/run/Trainer.h"
#include "runtime/text/Tokenizer.h"
#include "tools/hydra-run/Options.h"

#include <functional>

namespace hydra {

/// What encodes the prompts: `given`, the tokenizer of a file, or where that is null, what
/// --tokenizer or the plan's vocabulary says. Throws Error where neither tells tokens from text,
/// and where the model knows fewer ids than the tokenizer has.
std::unique_ptr<text::Tokenizer> promptTokenizer(const RunOptions &options,
                                                 const runtime::PlanFile &file,
                                                 std::unique_ptr<text::Tokenizer> given);

/// Throws Error where the plan has no program that writes text, and for prompts that it does not
/// take. Runs nothing.
void checkTexts(const RunOptions &options, const runtime::PlanFile &file,
                runtime::Executor &executor, const text::Tokenizer &tokenizer);

/// Writes every prompt and what continues it to standard output: a single one token by token,
/// several one below the other, each as soon as it and those before it are complete. Returns
/// lines about it for standard error. Throws Error as runtime::generate does.
std::string generateText(const RunOptions &options, const runtime::PlanFile &file,
                         runtime::Executor &executor, const text::Tokenizer &tokenizer,
                         uint64_t seed);

/// The same texts, which are returned, of a model that is being trained; once `interrupted`, those
/// that go on are cut. Throws Error as runtime::generate does.
std::vector<runtime::TextSample> sampleTexts(const RunOptions &options,
                                             const runtime::PlanFile &file,
                                             runtime::Executor &executor,
                                             const text::Tokenizer &tokenizer, uint64_t seed,
                                             const std::function<bool()> &interrupted);

/// All that the choice of tokens depends on besides prompts and seed, for ranks to compare.
std::string generationText(const RunOptions &options);

} // namespace hydra
