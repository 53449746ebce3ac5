// Whether several ranks are about to do the same.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/Channel.h"
#include "runtime/run/Executor.h"
#include "runtime/run/Session.h"
#include "tools/hydra-run/Options.h"

#include <chrono>
#include <cstdint>

namespace hydra {

/// Throws Error unless the plan is for so many ranks.
void checkRanks(const runtime::PlanFile &file, uint64_t ranks);

/// Throws Error when the ranks run other plans, or were given flags that do not fit together.
void agreeOnFlags(const RunOptions &options, const runtime::PlanFile &file,
                  runtime::Channel &channel);

/// Throws Error when ranks that the plan wants on one host are on several.
void agreeOnHosts(const runtime::PlanFile &file, runtime::Channel &channel);

/// Throws Error when the ranks begin at other places, with other parameters, or train on other
/// text.
void agreeOnBegin(const runtime::PlanFile &file, runtime::Executor &executor,
                  const runtime::Session &session, uint64_t samplingSeed,
                  runtime::Channel &channel);

/// How long a rank may be silent.
std::chrono::milliseconds rankLimit(const RunOptions &options, const runtime::PlanFile *file);

} // namespace hydra
