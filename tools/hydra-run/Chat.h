// --chat: lines of the standard input, and what the model answers.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "runtime/text/ChatTemplate.h"
#include "tools/hydra-run/Options.h"

namespace hydra {

/// The template that --chat-template names, or what the tokenizer's files say. Throws Error where
/// neither tells, or it has no place for --system.
text::ChatTemplate chatTemplate(const RunOptions &options, const text::Tokenizer &tokenizer);

/// Answers every line until `/exit` or the end of the input: the status of the program. Throws
/// Error as runtime::Conversation does.
int chat(const RunOptions &options, const runtime::PlanFile &file, runtime::Executor &executor,
         const text::Tokenizer &tokenizer, const text::ChatTemplate &shape, uint64_t seed);

} // namespace hydra
