// What a run does with its session.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Checkpoint.h"
#include "runtime/run/Session.h"
#include "runtime/run/Trainer.h"
#include "tools/hydra-run/Options.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace hydra {

/// The texts of --sample-every, of so many tokens; they may be interrupted.
using SampleTexts = std::function<std::vector<runtime::TextSample>(
    int64_t tokens, const std::function<bool()> &interrupted)>;

/// Throws Error for flags that do not fit the steps that there are to make.
void checkTraining(const RunOptions &options, const runtime::Session &session);

/// Trains and says how it ended: the status of the program. `begin` is called once everything that
/// the run writes to is open.
int train(const RunOptions &options, const runtime::PlanFile &file, runtime::Executor &executor,
          runtime::Session &session, runtime::SessionOutputs *outputs, runtime::Ranks *ranks,
          const std::optional<runtime::Checkpoint> &checkpoint, const SampleTexts &sample,
          const std::function<void()> &begin);

/// One call of a plan that does not train: prints its small outputs, and writes all of them to
/// `outputs` unless that is null.
void callOnce(runtime::Session &session, runtime::SessionOutputs *outputs);

/// --bench and --profile: times steps, prints what they took, and writes what is asked for as JSON.
void repeat(const RunOptions &options, const runtime::PlanFile &file, runtime::Executor &executor,
            runtime::Session &session, uint32_t rank);

} // namespace hydra
